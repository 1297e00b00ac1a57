package quorum

import (
	"sync/atomic"
	"time"

	"lockproxy/quorum/rules"
)

// An instant is a reading of the engine's clock: the time since the engine was made. A time.Duration is how long something takes.
type instant = time.Duration

// An engineClock is the clock of one engine. It has three readings:
//
//	now      the monotonic clock, and the time for which this process is known to have stood still unnoticed by that clock
//	catchUp  the same, after a look whether this machine has slept since: before a lock is promised
//	waited   now, less the time in which this process could not run: how long masters have had to answer.
//	         Validity is never measured by waited
type engineClock struct {
	started   time.Time                         // when the engine was made
	sleeps    func(now time.Time) time.Duration // as Config.Slept
	suspended atomic.Int64                      // how long this machine stood still, as sleeps told last
	slept     atomic.Int64                      // how long this process stood still besides, without any clock here noticing: rule 8
	answers   answerClock
}

func (c *engineClock) start(sleeps func(time.Time) time.Duration) {
	c.started, c.sleeps = time.Now(), sleeps
	c.suspended.Store(int64(sleeps(c.started)))
}

func (c *engineClock) now() instant { return time.Since(c.started) + c.stood() }

// catchUp counts the time that this machine has slept, and returns now.
func (c *engineClock) catchUp() instant {
	now := time.Now()
	//mutant: what the machine slept is not counted
	raise(&c.suspended, int64(c.sleeps(now)))
	return now.Sub(c.started) + c.stood()
}

func (c *engineClock) waited() answerTime { return c.answers.at(c.now()) }

// stood is by how much now is ahead of the monotonic clock.
func (c *engineClock) stood() time.Duration {
	return time.Duration(c.slept.Load() + c.suspended.Load())
}

// timeAt returns the time at which the engine's clock shows at.
func (c *engineClock) timeAt(at instant) time.Time { return c.started.Add(at - c.stood()) }

// wall returns by how much this machine's wall clock is ahead of now. Only status is computed from wall.
func (c *engineClock) wall() time.Duration { return time.Duration(time.Now().UnixNano()) - c.now() }

// An answerClock measures how long the masters have had to answer. It is the monotonic clock less the time in which this
// process itself stood still: suspended, stopped, or without a processor. The masters have not failed if they did not answer
// meanwhile. Validity is never measured by an answerClock.
type answerClock struct {
	ticked atomic.Int64 // instant of the latest tick
	stood  atomic.Int64 // how long the process has stood still before that
}

// An answerTime is a reading of an answerClock. Its type differs from an instant's, so that nobody compares the two.
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
// after a standstill any goroutine may run first.
func (c *answerClock) at(now instant) answerTime {
	late := now - instant(c.ticked.Load())
	stood := instant(c.stood.Load())
	if late > standstill {
		stood += late - answerTick
	}
	return answerTime(now - stood)
}

// While a machine is suspended, Go's monotonic clock (CLOCK_MONOTONIC) stands still, and the masters' clocks go on. So before a lock
// is promised, and with every batch, the engine's clock is moved forwards by the time of the suspend. The look is cheap: the wall
// clock counts suspends, too, and Go reads both clocks together. The system is asked only if the two clocks have come apart.
//
// Some systems have no clock that counts suspends, and a hypervisor may pause a machine without a word. Then only the masters'
// answers show the pause (rule 8).

// A suspends measures for how long this machine has been suspended.
type suspends struct {
	boot  func() (time.Duration, bool) // a clock that counts suspends, as the monotonic clock does not
	began time.Time
	base  time.Duration // boot less the monotonic clock, at the beginning
	ahead atomic.Int64  // the wall clock less the monotonic clock, when boot was asked last
	slept atomic.Int64  // since the beginning
}

// unslept is how far the wall clock and the monotonic clock may come apart before the system is asked. A suspend of this length may
// go unnoticed: the suspend is less than the drift of any lock.
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

// raise sets n to at least v, also while other goroutines raise n.
func raise(n *atomic.Int64, v int64) {
	for is := n.Load(); v > is && !n.CompareAndSwap(is, v); {
		is = n.Load()
	}
}

// ahead returns the wall clock at t less the monotonic clock, in ns.
func ahead(t time.Time, monotonic time.Duration) int64 { return t.UnixNano() - int64(monotonic) }

// ask returns the system's clock less the monotonic clock. The two are read one after the other, so the difference is too small, and
// the largest of three tries counts.
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
