package quorum

import (
	"time"

	"lockproxy/quorum/masters"
)

// A question is a command that no round waits for: of the engine's own. If a question is not answered, nothing comes of it.
type question struct {
	masters.Call
	batch  *batch          // in which the question is answered
	answer func(reply any) // called in the lane's loop, if the batch was vouched for; may be nil
}

func (l *lane) newQuestion(command []any, answer func(reply any)) *question {
	return &question{Call: masters.Call{Args: command}, batch: &l.batch, answer: answer}
}

// ask is an examiner's.
func (l *lane) ask(command []any, answer func(reply any)) {
	l.queue.push(l.newQuestion(command, answer), l.engine.waited())
}

// suspect is an examiner's.
func (l *lane) suspect() { l.suspected = true }

var heartbeatArgs = []any{"PING"}

// heartbeat makes the master say something: the proof of its batch says the rest.
func (l *lane) heartbeat() { l.ask(heartbeatArgs, nil) }

func (q *question) command() *masters.Call { return &q.Call }
func (q *question) keeps() time.Duration   { return 0 }
func (q *question) take(answerTime) bool   { return true }
func (q *question) lost(string)            {}
func (q *question) reply(instant) {
	if q.Err == nil && q.answer != nil && q.batch.unproven.none() {
		q.answer(q.Reply)
	}
}
