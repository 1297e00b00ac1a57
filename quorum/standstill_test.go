package quorum

import (
	"strings"
	"testing"
	"time"
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
	w.acquit(time.Hour, time.Hour, 2*time.Second)
	if cause := w.observe(2*time.Second-1, 2*time.Second, time.Minute+time.Second, time.Minute+time.Second); !strings.Contains(cause, "stood still") {
		t.Errorf("told %q", cause)
	}
	if cause := w.observe(time.Hour+2*time.Second, time.Hour+2*time.Second, time.Hour+time.Minute+time.Second, time.Hour+time.Minute+time.Second); cause != "" {
		t.Errorf("told %q", cause)
	}
}
