package quorum

import "time"

// An instant is a reading of the engine's clock: the time since the engine was made. A time.Duration is how long something takes.
type instant = time.Duration

// The engine's clock has three readings:
//
//	now      the monotonic clock, and the time for which this process is known to have stood still without that clock noticing
//	catchUp  the same, after a look at whether this machine has slept since: before a lock is promised
//	waited   now, less the time in which this process could not run: how long masters have had to answer (answer_clock.go).
//	         Validity is never measured by it

func (e *Engine) now() instant { return time.Since(e.started) + e.stood() }

// catchUp counts what this machine has slept (suspend.go), and returns what the clock shows then.
func (e *Engine) catchUp() instant {
	now := time.Now()
	raise(&e.suspended, int64(e.cfg.Slept(now)))
	return now.Sub(e.started) + e.stood()
}

func (e *Engine) waited() answerTime { return e.answers.at(e.now()) }

// stood is how much more now is than the monotonic clock shows.
func (e *Engine) stood() time.Duration { return time.Duration(e.slept.Load() + e.suspended.Load()) }

// timeAt returns when the engine's clock shows at.
func (e *Engine) timeAt(at instant) time.Time { return e.started.Add(at - e.stood()) }

// wall returns by how much this machine's wall clock shows more than now. Only status is computed from it.
func (e *Engine) wall() time.Duration { return time.Duration(time.Now().UnixNano()) - e.now() }
