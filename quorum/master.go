package quorum

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
)

// A master is one of the N, with all that its lanes know in common.
type master struct {
	masters.Master
	slot      int // in rosters
	watch     watch
	grants    grants // in all databases
	dropped   atomic.Uint64
	votes     [rules.Failed + 1]atomic.Uint64
	failures  [failureKinds]atomic.Uint64
	roundTrip atomic.Int64
	marked    atomic.Int64 // so many confirmed jumps are in every database's mark, by the lane of database 0

	mu          sync.Mutex // guards all below
	connections int        // that live
	info        masters.Info
	complained  map[string]instant // when the log was last told of errors in the master's answers, by code
}

// count counts a vote and, if it failed, why.
func (m *master) count(v rules.Vote, why FailureKind) {
	m.votes[v].Add(1)
	if v == rules.Failed {
		m.failures[why].Add(1)
	}
}

func (m *master) connected(info *masters.Info) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connections++
	m.info = *info
}

func (m *master) isConnected() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.connections > 0
}

// describe takes the master's account of itself now.
func (m *master) describe(info *masters.Info) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.info = *info
}

// told returns the master's latest account of itself.
func (m *master) told() masters.Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.info
}

func (m *master) disconnected() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connections--
}

// mayComplain says whether to tell the log of the code now, and notes the telling.
func (m *master) mayComplain(code string, now instant) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.complained[code]; ok && now-at < complainEvery {
		return false
	}
	if m.complained == nil {
		m.complained = map[string]instant{}
	}
	m.complained[code] = now
	return true
}

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

// complainEvery is the least time, for each code, between two lines of the log about an error that says something of the master.
const complainEvery = time.Minute

// complain tells the log of a master that is connected, in no quarantine, and answers with an error: nothing else shows it but
// counters. The text of the error stays out: the text may hold a client's words.
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

// A question is a command that no round waits for: of the engine's own. If a question is not answered, nothing comes of it.
type question struct {
	masters.Call
	lane   *lane
	answer func(reply any) // called in the lane's loop, if the batch was vouched for; may be nil
}

func (q *question) command() *masters.Call { return &q.Call }
func (q *question) keeps() time.Duration   { return 0 }
func (q *question) take(answerTime) bool   { return true }
func (q *question) lost(string)            {}
func (q *question) reply(instant) {
	if q.Err == nil && q.answer != nil && q.lane.batch.unproven.none() {
		q.answer(q.Reply)
	}
}
