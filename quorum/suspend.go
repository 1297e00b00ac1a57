package quorum

import (
	"sync/atomic"
	"time"

	"lockproxy/quorum/rules"
)

// While a machine is suspended, Go's monotonic clock (CLOCK_MONOTONIC) stands still, and the masters' clocks go on. So before a
// lock is promised, and with every batch, the engine's clock is moved forwards by the time of the suspend. The look is cheap: the
// wall clock counts suspends, too, and Go reads both clocks together. Only if the two have come apart is the system asked.
//
// Some systems have no clock that counts suspends, and a hypervisor may pause a machine without telling it. Then only the masters'
// answers show the pause (rule 8).

// A suspends measures for how long this machine has been suspended.
type suspends struct {
	boot  func() (time.Duration, bool) // a clock that counts suspends, as the monotonic clock does not
	began time.Time
	base  time.Duration // boot less the monotonic clock, when it began
	ahead atomic.Int64  // the wall clock less the monotonic one, when boot was asked last
	slept atomic.Int64  // since it began
}

// unslept is how far the wall clock and the monotonic one may come apart before the system is asked. A suspend of that length may
// go unnoticed: it is less than the drift of any lock.
const unslept = rules.ClockFloor / 4

func newSuspends() *suspends {
	s := &suspends{boot: bootTime, began: time.Now()}
	s.ahead.Store(ahead(s.began, 0))
	s.base, _ = s.ask()
	return s
}

// since returns for how long the machine has been suspended, from newSuspends until now.
func (s *suspends) since(now time.Time) time.Duration {
	was := s.ahead.Load()
	is := ahead(now, now.Sub(s.began))
	if moved := time.Duration(is - was); moved < -unslept || moved > unslept {
		if boot, ok := s.ask(); ok {
			raise(&s.slept, int64(boot-s.base))
			s.ahead.CompareAndSwap(was, is) // unless another goroutine has asked meanwhile: that is newer
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

// ahead returns the wall clock at t less the monotonic one, in ns.
func ahead(t time.Time, monotonic time.Duration) int64 { return t.UnixNano() - int64(monotonic) }

// ask returns the system's clock less the monotonic one. Reading one after the other makes that too small, so the largest of
// three tries counts.
func (s *suspends) ask() (time.Duration, bool) {
	best, known := time.Duration(0), false
	for range 3 { // another thread may run between the two readings
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
