package quorum

import (
	"log/slog"
	"slices"
	"time"

	"lockproxy/quorum/masters"
)

// A target is where a lane leads: one master, and one database there.
type target struct {
	engine *Engine
	master *master
	db     int
}

// log writes a line about the master; in a database that no client uses, a line for debugging.
func (t target) log(level slog.Level, text string, more ...any) {
	if !t.engine.databases.isUsed(t.db) {
		level = slog.LevelDebug
	}
	t.engine.cfg.Logger.Log(t.engine.ctx, level, text, append([]any{"master", t.master.Addr(), "db", t.db}, more...)...)
}

// complainEvery is how often at most the log is told that a master answers with an error that says something of the master, for
// each code.
const complainEvery = time.Minute

// complain tells the log of a master that is connected, in no quarantine, and answers with an error: nothing else shows it but
// counters. The text of the error stays out: it may hold what a client sent.
func (t target) complain(err error, now instant) {
	code := codeOf(err.Error())
	if !slices.Contains(incapable, code) || !t.master.mayComplain(code, now) {
		return
	}
	t.log(slog.LevelWarn, "answers with an error: its votes fail", "error", code)
}

// withheld returns why votes do not count if the master did not answer a question of the engine's own as expected. An error in
// answer, as where the master's memory is full, is the cause, and goes to the log, too.
func (t target) withheld(kind FailureKind, text string, question *masters.Call, now instant) failure {
	if question.Err == nil {
		return failure{kind, text}
	}
	t.complain(question.Err, now)
	return failure{FailedError, text + ": " + failureText(question.Err)}
}
