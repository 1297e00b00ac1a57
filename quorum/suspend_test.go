package quorum

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A sleeper is a machine that sleeps, and knows for how long.
type sleeper struct{ slept atomic.Int64 }

func (s *sleeper) config() Config {
	return Config{Slept: func(time.Time) time.Duration { return time.Duration(s.slept.Load()) }}
}

// sleep is what the machine sleeps, seen by itself: its clock stands still, and the masters' go on.
func (s *sleeper) sleep(w *world, d time.Duration) {
	for _, f := range w.fakes {
		f.step(d)
	}
	s.slept.Add(int64(d))
}

func TestNothingIsPromisedForTheTimeThatTheMachineSlept(t *testing.T) {
	s := &sleeper{}
	inWorldWith(t, 3, s.config(), func(w *world) {
		for _, f := range w.fakes {
			f.setDelay(50 * time.Millisecond)
		}
		w.settle()
		time.AfterFunc(75*time.Millisecond, func() { s.sleep(w, time.Second) }) // the votes are on their way
		if a := w.acquire(key, "mine", time.Second); a.Lock != nil {
			t.Errorf("promised for %v", time.Until(a.Lock.Until()))
		}
		for _, f := range w.fakes {
			f.setDelay(0)
		}
		w.settle()
		w.expectStates("ccc")
		a := w.acquire(key, "mine", minute)
		if a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		before := a.Lock.Until()
		s.sleep(w, 400*time.Millisecond)
		if after := a.Lock.Until(); before.Sub(after) != 400*time.Millisecond {
			t.Errorf("until %v, and after 400 ms of sleep %v", before, after)
		}
		w.settle()
		x := w.extend(ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: minute})
		if !x.Held || !x.Lock.Until().Equal(x.Until) {
			t.Fatalf("not extended: %+v", x)
		}
		s.sleep(w, 400*time.Millisecond)
		if after := x.Lock.Until(); x.Until.Sub(after) != 400*time.Millisecond {
			t.Errorf("extended until %v, and after 400 ms of sleep %v", x.Until, after)
		}
		x.Lock.Abandon()
		w.settle()
		w.expectHolders(key, "mmm")
	})
}

func TestASleepIsFoundByTheWallClock(t *testing.T) {
	boot := time.Hour
	s := &suspends{began: time.Now(), boot: func() (time.Duration, bool) { return boot, true }}
	s.boot = func() (time.Duration, bool) { return boot + time.Since(s.began), true }
	s.ahead.Store(ahead(s.began, 0))
	s.base, _ = s.ask()
	boot += time.Minute // and nobody has a reason to look
	if d := s.since(time.Now()); d != 0 {
		t.Errorf("slept %v", d)
	}
	s.ahead.Add(-int64(time.Minute)) // the wall clock went on
	for range 2 {
		if d := s.since(time.Now()); d.Round(10*time.Millisecond) != time.Minute {
			t.Errorf("slept %v", d)
		}
	}
	s.ahead.Add(int64(time.Hour)) // it was set back
	if d := s.since(time.Now()); d.Round(10*time.Millisecond) != time.Minute {
		t.Errorf("slept %v", d)
	}
}

// Two may look at once, of whom the one that looked first is done last.
func TestWhoIsDoneLastDoesNotPutBackWhatAnotherHasSeen(t *testing.T) {
	s, first := &suspends{began: time.Now()}, true
	s.boot = func() (time.Duration, bool) {
		if first {
			first = false
			s.ahead.Add(-int64(time.Hour)) // the wall clock is set while this one looks, and another one sees that
			s.since(time.Now())
			s.ahead.Store(1) // what that one noted
		}
		return time.Since(s.began), true
	}
	s.ahead.Store(ahead(s.began, 0) - int64(time.Hour))
	s.since(time.Now())
	if s.ahead.Load() != 1 {
		t.Error("the wall clock is noted as it was before")
	}
}

func TestWhatIsRaisedNeverFalls(t *testing.T) {
	var n atomic.Int64
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for v := range int64(300_000) {
				raise(&n, 4*v+int64(i))
				if is := n.Load(); is < 4*v+int64(i) {
					t.Errorf("raised to %d, and it is %d", 4*v+int64(i), is)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestTheSystemTellsWhatItSlept(t *testing.T) {
	s := newSuspends()
	s.ahead.Add(int64(time.Minute)) // so that it is asked
	if d := s.since(time.Now()); d < 0 || d > time.Second {
		t.Errorf("slept %v, in a test", d)
	}
}

// BenchmarkCatchUp is what a promise costs more than without it; BenchmarkClock is what reading Go's clock costs alone.
func BenchmarkCatchUp(b *testing.B) {
	var c engineClock
	c.start(newSuspends().since)
	for b.Loop() {
		c.catchUp()
	}
}

func BenchmarkClock(b *testing.B) {
	var c engineClock
	c.start(newSuspends().since)
	for b.Loop() {
		c.now()
	}
}
