package quorum

import (
	"slices"
	"sync"
	"time"
)

// A sweeper ends rounds, and other expirers, at their deadline. In a sweeper all deadlines are equally far away when added: an
// InstanceTimeout or, for fills, the longest InstanceTimeout of any proxy, which only grows. So expirers come due in the order of
// arrival, and a single timer serves all. The timer may be late by a fiftieth of an InstanceTimeout. An expirer that
// ends earlier by itself stays in the queue until it comes due.
type sweeper struct {
	engine *Engine
	wake   chan struct{}

	mu     sync.Mutex // guards all below
	queue  []due
	parked bool // the loop waits for wake
}

// An expirer is ended by expire. The sweeper may call expire after the expirer has ended: then expire ends nothing, but a round still fails
// the votes that are pending.
type expirer interface {
	expire()
}

// A due is the moment at which an expirer comes due.
type due struct {
	at answerTime
	of expirer
}

func newSweeper(e *Engine) *sweeper { return &sweeper{engine: e, wake: make(chan struct{}, 1)} }

// add has x expired at a moment.
func (s *sweeper) add(at answerTime, x expirer) {
	s.mu.Lock()
	s.queue = append(s.queue, due{at, x})
	parked := s.parked
	s.parked = false
	s.mu.Unlock()
	if parked {
		s.wake <- struct{}{}
	}
}

// run ends when done is closed; the queue's expirers are expired then.
func (s *sweeper) run(done <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	pause := s.engine.cfg.InstanceTimeout / 50 // under load, some round or other is always about to come due
	for {
		next, any := s.sweep(s.engine.waited())
		var due <-chan time.Time
		if any {
			timer.Reset(max(next, pause))
			due = timer.C
		}
		select {
		case <-due:
		case <-s.wake:
		case <-done:
			for any {
				_, any = s.sweep(1<<63 - 1)
			}
			return
		}
	}
}

// sweep expires all that are due, and returns the time until the next deadline, if there is one.
func (s *sweeper) sweep(now answerTime) (time.Duration, bool) {
	for {
		s.mu.Lock()
		n := 0
		for n < len(s.queue) && s.queue[n].at <= now {
			n++
		}
		if n == 0 {
			defer s.mu.Unlock()
			if s.parked = len(s.queue) == 0; s.parked {
				return 0, false
			}
			return s.queue[0].at.since(now), true
		}
		due := slices.Clone(s.queue[:n])
		s.queue = slices.Delete(s.queue, 0, n)
		s.mu.Unlock()
		for _, d := range due {
			d.of.expire()
		}
	}
}

// pending counts the expirers that have not come due.
func (s *sweeper) pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}
