package quorum

import (
	"time"

	"lockproxy/quorum/masters"
)

// A question is a command that no round waits for: of the engine's own. If a question is not answered, nothing comes of it.
type question struct {
	masters.Call
	batch  *batch          // of the lane
	answer func(reply any) // called in the lane's loop, if the batch was vouched for; may be nil
}

func (q *question) command() *masters.Call { return &q.Call }
func (q *question) keeps() time.Duration   { return 0 }
func (q *question) take(answerTime) bool   { return true }
func (q *question) lost(string)            {}
func (q *question) reply(instant) {
	if q.Err == nil && q.answer != nil && q.batch.unproven.none() {
		q.answer(q.Reply)
	}
}
