package quorum

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockproxy/quorum/vouch"
)

// With one master away, what the other two jump is a standstill of this process's own only if it is the same.
func TestClocksThatJumpDifferentlyAreNoStandstill(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		by     [2]time.Duration
		slow   time.Duration // until both have jumped, each answers after
		states string
	}{
		{[2]time.Duration{93 * ms, 133 * ms}, ms, "q.q"},
		{[2]time.Duration{93 * ms, 133 * ms}, 40 * ms, "q.q"}, // which says little of what it jumped
		{[2]time.Duration{133 * ms, 93 * ms}, 20 * ms, "q.q"},
		{[2]time.Duration{time.Hour, time.Hour + 90*time.Second}, ms, "q.q"}, // more than they drift in an hour
		{[2]time.Duration{93 * ms, 95 * ms}, ms, "c.c"},
		{[2]time.Duration{93 * ms, 93 * ms}, 20 * ms, "c.c"},
		{[2]time.Duration{time.Hour, time.Hour + 5*time.Second}, ms, "c.c"},
	} {
		inWorldWith(t, 3, Config{Grace: 20 * ms, DriftFactor: 0.005}, func(w *world) {
			w.fakes[1].leave()
			w.settle()
			jumping := []*fake{w.fakes[0], w.fakes[2]}
			for i, f := range jumping {
				f.setDelay(test.slow)
				f.step(test.by[i])
			}
			w.read(key)
			time.Sleep(200 * ms)
			for _, f := range jumping {
				f.setDelay(ms)
			}
			w.settle()
			if got := w.quarantined(); got != test.states {
				t.Errorf("jumps of %v, answers after %v: states %q, want %q", test.by, test.slow, got, test.states)
			}
		})
	}
}

// A master that is away while this process stands still is known as before when it is back.
func TestAStandstillHidesNoJumpOfAMasterThatIsAway(t *testing.T) {
	for besides, states := range map[time.Duration]string{0: "ccc", time.Second: "ccc", time.Minute: "ccq"} {
		inWorldWith(t, 3, Config{DriftFactor: 0.005, TTLMax: 2 * time.Hour}, func(w *world) {
			w.fakes[2].leave()
			w.settle()
			w.acquire(key, "mine", time.Hour) // the horizon: for so long a master is quarantined
			for _, f := range w.fakes {
				f.step(10 * time.Minute)
			}
			w.settle()
			w.expectStates("cc.")
			w.fakes[2].step(besides)
			w.fakes[2].comeBack()
			w.settle()
			if got := w.quarantined(); got != states {
				t.Errorf("%v besides: states %q, want %q", besides, got, states)
			}
		})
	}
}

// What was asked before the clock was put right is not compared with it.
func TestWhatWasAskedBeforeAStandstillWasKnownIsNoJump(t *testing.T) {
	w := watch{}
	w.observe(time.Second, time.Second, time.Minute, time.Minute)
	w.ignore()
	if _, cause := w.observe(2*time.Second, 3*time.Hour, time.Minute+time.Second, time.Minute+time.Second); !strings.Contains(cause, "stood still") {
		t.Errorf("while the clock is put right: told %q", cause)
	}
	w.clear(2*time.Second, time.Hour, time.Hour, time.Hour+2*time.Second)
	if _, cause := w.observe(time.Hour+time.Second, time.Hour+2*time.Second, time.Minute+time.Second, time.Minute+time.Second); !strings.Contains(cause, "stood still") {
		t.Errorf("told %q", cause)
	}
	if _, cause := w.observe(time.Hour+2*time.Second, time.Hour+2*time.Second, time.Hour+time.Minute+time.Second, time.Hour+time.Minute+time.Second); cause != "" {
		t.Errorf("told %q", cause)
	}
}

// A clock that jumped and came back while nobody had judged has cost keys their lives, whoever stood still at the same time.
func TestAStandstillHidesNoJumpThatCameBack(t *testing.T) {
	const stood = 10 * time.Second
	for _, test := range []struct {
		steps  []time.Duration // of the first
		states string
	}{
		{[]time.Duration{stood}, "ccc"},
		{[]time.Duration{stood, time.Hour, -time.Hour}, "qcc"},
		{[]time.Duration{stood + time.Hour, -time.Hour}, "qcc"},
		{[]time.Duration{stood, -time.Hour, time.Hour}, "qcc"},
	} {
		inWorldWith(t, 3, Config{TTLMax: 2 * time.Hour}, func(w *world) {
			w.acquire(key, "mine", time.Hour)
			w.fakes[2].stall() // so that the monitor waits for its answer
			for _, f := range w.fakes[1:] {
				f.step(stood)
			}
			for _, by := range test.steps {
				w.fakes[0].step(by)
				w.read(key)
			}
			w.fakes[2].resume()
			w.settle()
			if got := w.quarantined(); got != test.states {
				t.Errorf("%v: states %q, want %q", test.steps, got, test.states)
			}
		})
	}
}

// A master that is met for the first time after a standstill says nothing of it, and its clock is known by ours as it was.
func TestAMasterThatIsMetAfterAStandstillDoesNotSayOtherwise(t *testing.T) {
	w, alarmed := watch{clock: vouch.Clock{Tolerance: time.Millisecond}}, 2*time.Second
	for _, at := range []instant{alarmed, alarmed + 1} {
		w.observe(at, at, at+time.Hour, at+time.Hour)
		jumps := []*vouch.Span{w.jumpSince(alarmed, 1), {Lo: time.Minute, Hi: time.Minute}, {Lo: time.Minute, Hi: time.Minute}}
		if by, own, sure := vouch.Standstill(jumps, 0, 0); by != time.Minute || !own || !sure {
			t.Errorf("%v: %v %v %v", at, by, own, sure)
		}
		if _, own, sure := vouch.Standstill(jumps[:2], 0, 0); own || !sure { // it is heard: the others are not waited for
			t.Errorf("of two: %v %v", own, sure)
		}
	}
	w.clear(alarmed, time.Minute, time.Minute, alarmed+time.Minute+2)
	at := alarmed + time.Minute + 3
	if _, cause := w.observe(at, at, at+time.Hour-time.Minute, at+time.Hour-time.Minute); cause != "" {
		t.Error(cause)
	}
}

// A clock that is too far away to have shown so short a standstill, or was asked when that could just be tolerated, does not
// say otherwise: or the masters that show it would be quarantined.
func TestAShortStandstillIsNoJumpOfThoseThatShowIt(t *testing.T) {
	const ms = time.Millisecond
	for _, far := range []time.Duration{4 * ms, 30 * ms} {
		for stood := 2 * ms; stood < 70*ms; stood += 3 * ms {
			inWorldWith(t, 3, Config{Grace: 20 * ms, DriftFactor: 0.0001}, func(w *world) {
				for i, d := range []time.Duration{ms / 4, ms / 4, far} {
					w.fakes[i].setDelay(d)
				}
				w.settle()
				w.acquire(key, "mine", minute)
				w.settle()
				for _, f := range w.fakes {
					f.step(stood)
				}
				w.settle()
				if got := w.quarantined()[:2]; got != "cc" {
					t.Errorf("stood for %v, the third %v away: states %q", stood, far, got)
				}
				if a := w.acquire("another", "mine", minute); a.Lock == nil {
					t.Errorf("stood for %v, the third %v away: %+v", stood, far, a)
				}
			})
		}
	}
}

// Who sees that a master's clock is known by ours as it is put right reads ours as it is then: what is set by the one and the
// other expires in time.
func TestTheClockIsPutRightBeforeTheMastersAreKnownByIt(t *testing.T) {
	e := &Engine{cfg: Config{}.withDefaults(), engineClock: engineClock{started: time.Now()}, masters: []*master{{}, {}}}
	first, last := &e.masters[0].watch, &e.masters[1].watch
	w := newMonitor(e)
	var enough atomic.Bool
	var putting sync.WaitGroup
	putting.Go(func() {
		for !enough.Load() {
			w.putRight(e.now(), time.Minute)
		}
	})
	for seen := 0; seen < 100 && !t.Failed(); {
		last.mu.Lock() // whoever puts right waits here when the first is known already
		begun, ended, shows := first.restarts.Load(), last.restarts.Load(), e.now()
		last.mu.Unlock()
		if begun != ended {
			seen++
		}
		if shows < time.Duration(begun)*time.Minute {
			t.Errorf("put right %d times, and shows %v", begun, shows)
		}
	}
	enough.Store(true)
	putting.Wait()
}
