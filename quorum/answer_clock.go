package quorum

import (
	"sync/atomic"
	"time"
)

// An answerClock measures how long the masters have had to answer. It is the monotonic clock less the time in which this
// process itself stood still: suspended, stopped, or without a processor. What the masters did not answer meanwhile is
// no failure of theirs. Validity is never measured by it.
type answerClock struct {
	ticked atomic.Int64 // instant of the latest tick
	stood  atomic.Int64 // how long the process has stood still before that
}

const (
	answerTick = 10 * time.Millisecond
	// standstill is how late a tick must be to mean that the process stood still.
	standstill = 3 * answerTick
)

// run ticks until done is closed.
func (c *answerClock) run(now func() instant, done <-chan struct{}) {
	t := time.NewTicker(answerTick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			at := now()
			c.stood.Store(int64(at - c.at(at)))
			c.ticked.Store(int64(at))
		case <-done:
			return
		}
	}
}

// at returns the reading for a moment of the monotonic clock. A tick that is overdue at that moment counts at once:
// after a standstill nobody knows who runs first.
func (c *answerClock) at(now instant) instant {
	late := now - instant(c.ticked.Load())
	stood := instant(c.stood.Load())
	if late > standstill {
		stood += late - answerTick
	}
	return now - stood
}
