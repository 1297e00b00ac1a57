package quorum

import (
	"sync/atomic"
	"time"
)

// While a machine is suspended, Go's monotonic clock stands still (CLOCK_MONOTONIC), and the masters' clocks go on. So
// before a lock is promised, and with every batch, the engine's clock catches up with what was slept. It costs no more
// than a look at the clocks that Go reads: the wall clock counts a suspend, so the system is asked only when that has
// moved away from the monotonic one.
//
// Where a system has no clock that counts suspends, or a hypervisor pauses the machine and tells nobody, it shows in the
// masters' answers only: rule 8.

// A suspends measures for how long this machine has been suspended.
type suspends struct {
	boot  func() (time.Duration, bool) // a clock that counts suspends, as the monotonic clock does not
	began time.Time
	base  time.Duration // boot less the monotonic clock, at first
	ahead atomic.Int64  // the wall clock less the monotonic one, when boot was asked
	slept atomic.Int64
}

// unslept is how far the wall clock may come away from the monotonic one before the system is asked: less than the drift
// allows for, in any lock.
const unslept = clockFloor / 4

func newSuspends() *suspends {
	s := &suspends{boot: bootTime, began: time.Now()}
	s.ahead.Store(ahead(s.began, 0))
	s.base, _ = s.ask()
	return s
}

// since returns how long, at now, it has been suspended since newSuspends.
func (s *suspends) since(now time.Time) time.Duration {
	was := s.ahead.Load()
	is := ahead(now, now.Sub(s.began))
	if moved := time.Duration(is - was); moved < -unslept || moved > unslept {
		if boot, ok := s.ask(); ok {
			raise(&s.slept, int64(boot-s.base))
			s.ahead.CompareAndSwap(was, is) // not over what somebody has seen who asked later
		}
	}
	return time.Duration(s.slept.Load())
}

// raise sets n to at least v, whoever else does so at the same time.
func raise(n *atomic.Int64, v int64) {
	for is := n.Load(); v > is && !n.CompareAndSwap(is, v); {
		is = n.Load()
	}
}

// ahead is what the wall clock shows at t more than the monotonic one, in ns.
func ahead(t time.Time, monotonic time.Duration) int64 { return t.UnixNano() - int64(monotonic) }

// ask returns by how much the system's clock is ahead of the monotonic one, less what passes between looking at both.
func (s *suspends) ask() (time.Duration, bool) {
	best, known := time.Duration(0), false
	for range 3 { // somebody else may have the processor in between
		before := time.Since(s.began)
		boot, ok := s.boot()
		if !ok {
			return 0, false
		}
		after := time.Since(s.began)
		if more := boot - after; !known || more > best {
			best, known = more, true
		}
		if after-before < unslept/10 {
			break
		}
	}
	return best, known
}
