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

// An answerTime is a reading of an answerClock. It is of another type than an instant, so that the two cannot be compared.
type answerTime time.Duration

func (t answerTime) plus(d time.Duration) answerTime  { return t + answerTime(d) }
func (t answerTime) since(u answerTime) time.Duration { return time.Duration(t - u) }

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
			c.tick(now())
		case <-done:
			return
		}
	}
}

func (c *answerClock) tick(now instant) {
	c.stood.Store(int64(now) - int64(c.at(now)))
	c.ticked.Store(int64(now))
}

// at returns the reading for a moment of the monotonic clock. A tick that is overdue at that moment counts at once:
// after a standstill nobody knows who runs first.
func (c *answerClock) at(now instant) answerTime {
	late := now - instant(c.ticked.Load())
	stood := instant(c.stood.Load())
	if late > standstill {
		stood += late - answerTick
	}
	return answerTime(now - stood)
}
