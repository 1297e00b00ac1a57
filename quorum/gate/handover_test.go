package gate

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/quorum"
)

// inLine has x hold the resource, and clients wait for it that x hands over to the first, so that a turn begins.
func inLine(t *testing.T, tokens []string, f func(w *world)) {
	t.Helper()
	inWorld(t, func(w *world) {
		w.hold("x", time.Minute)
		for _, token := range tokens {
			w.wait(token, time.Hour)
			time.Sleep(10 * time.Millisecond)
		}
		w.want(2)
		w.set(func() { w.mute = true })
		w.Gates.HandOver(key, "x", func(quorum.Released) {}) // the turn begins
		time.Sleep(5 * time.Millisecond)
		w.set(func() { w.mute = false })
		w.release(0, 1, 2)
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		w.set(func() { w.answers, w.tries = nil, nil })
		f(w)
	})
}

// set changes or reads the world.
func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) tried() (tokens []string) {
	w.set(func() { tokens = slices.Clone(w.tries) })
	return tokens
}

func (w *world) told() (answers []string) {
	w.set(func() { answers = slices.Clone(w.answers) })
	return answers
}

func (w *world) handed() (n int) {
	w.set(func() { n = w.handovers })
	return n
}

// latestBell is the name of the bells of the latest handover.
func (w *world) latestBell() string {
	w.Gates.mu.Lock()
	defer w.Gates.mu.Unlock()
	return fmt.Sprintf("%s%012x", w.names, w.Gates.handovers)
}

// giveBackBy releases the lock as a client of this proxy, and expects that the lock is handed over, or that it is not.
func (w *world) giveBackBy(token string, handsOver bool) {
	w.t.Helper()
	w.expectHandover(w.Gates.Release, token, handsOver)
}

func (w *world) expectHandover(release func(quorum.Key, string, func(quorum.Released)), token string, handsOver bool) {
	w.t.Helper()
	before := w.handed()
	release(key, token, func(r quorum.Released) {
		if !r.Held {
			w.t.Errorf("%s did not release", token)
		}
	})
	time.Sleep(5 * time.Millisecond)
	synctest.Wait()
	if got := w.handed() > before; got != handsOver {
		w.t.Errorf("%s: handed over %v, want %v", token, got, handsOver)
	}
}

func (w *world) expectHolder(want string) {
	w.t.Helper()
	synctest.Wait()
	w.set(func() {
		if w.holder != want {
			w.t.Errorf("%q holds the resource, want %q", w.holder, want)
		}
	})
}

func TestALockIsHandedOverInLineWithOneTryEach(t *testing.T) {
	inLine(t, []string{"a", "b", "c", "d"}, func(w *world) {
		for i, token := range []string{"a", "b", "c"} {
			w.expectHolder(token)
			w.giveBackBy(token, true)
			if len(w.tried()) != i+1 {
				t.Errorf("%d tries after %d handovers: %v", len(w.tried()), i+1, w.tried())
			}
		}
		w.expectHolder("d")
		time.Sleep(time.Millisecond)
		w.want(3, "b granted@47", "c granted@42", "d granted@37")
	})
}

// The bells of the release come when the next waiter is the head.
func TestBellsOfAHandoverAreLate(t *testing.T) {
	inLine(t, []string{"a", "b", "c"}, func(w *world) {
		w.set(func() { w.mute = true })
		w.giveBackBy("a", true)
		w.ringAs(w.latestBell(), 0, 1, 2)
		time.Sleep(50 * time.Millisecond)
		if len(w.tried()) != 1 {
			t.Errorf("tries: %v", w.tried())
		}
		w.expectHolder("b")
	})
}

// The try of a handover fails, before the bells of its release or after: then they count.
func TestTheBellsOfAHandoverThatFailedCount(t *testing.T) {
	for _, late := range []bool{false, true} {
		for _, cause := range []error{&quorum.NoQuorum{}, errors.New("cause")} {
			inLine(t, []string{"a", "b"}, func(w *world) {
				w.set(func() { w.mute = late })
				w.set(func() { w.err = cause })
				w.Gates.Release(key, "a", func(quorum.Released) {})
				time.Sleep(1500 * time.Microsecond) // the release is over, the try is not
				synctest.Wait()
				if len(w.tried()) > 0 {
					t.Fatal("the try is over")
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
				w.set(func() { w.err = nil })
				if len(w.told()) > 0 {
					t.Errorf("late %v: told %v", late, w.told())
				}
				if late {
					time.Sleep(5 * time.Millisecond)
					w.ringAs(w.latestBell(), 0, 1, 2)
				}
				time.Sleep(5 * time.Millisecond)
				w.expectHolder("b")
				if len(w.tried()) != 2 {
					t.Errorf("late %v: tries: %v", late, w.tried())
				}
			})
		}
	}
}

// A bell of another release, during a handover, wakes the next waiter.
func TestBellsOfOtherReleasesDuringAHandoverCount(t *testing.T) {
	inLine(t, []string{"a", "b", "c"}, func(w *world) {
		w.Gates.Release(key, "a", func(quorum.Released) {})
		time.Sleep(1500 * time.Microsecond)
		w.ring(0, 1, 2) // as after a FORCEUNLOCK
		time.Sleep(time.Millisecond)
		w.expectHolder("b")
		if len(w.tried()) != 1 {
			t.Errorf("tries: %v", w.tried())
		}
		w.hold("", 0)
		time.Sleep(2 * time.Millisecond)
		w.expectHolder("c")
	})
}

func TestAWaitThatEndsDuringItsHandover(t *testing.T) {
	for _, fails := range []bool{false, true} {
		inLine(t, []string{"a"}, func(w *world) {
			b := w.wait("b", time.Hour)
			time.Sleep(10 * time.Millisecond)
			w.set(func() { w.answers, w.tries = nil, nil })
			w.Gates.HandOver(key, "a", func(quorum.Released) {})
			time.Sleep(500 * time.Microsecond)
			b.Cancel()
			synctest.Wait()
			if len(w.told()) > 0 {
				t.Errorf("told %v during the try", w.told())
			}
			if fails {
				w.set(func() { w.err = &quorum.NoQuorum{} })
			}
			time.Sleep(2 * time.Millisecond)
			want := "b granted@12"
			if fails {
				want = "b refused@12"
			}
			w.want(1, want)
		})
	}
}

// A release is open after some handovers, or after a while, even if each gate has but one waiter.
func TestTheWaitersOfOneProxyLetOthersHaveTheLock(t *testing.T) {
	for _, c := range []struct {
		hold time.Duration
		most int
	}{{0, turnHandovers}, {turnMost, 1}} {
		inLine(t, []string{"0"}, func(w *world) {
			for i := range 3 * (c.most + 1) {
				w.wait(fmt.Sprint(i+1), time.Hour)
				time.Sleep(c.hold + 5*time.Millisecond)
				w.expectHolder(fmt.Sprint(i))
				w.expectHandover(w.Gates.HandOver, fmt.Sprint(i), i%(c.most+1) != c.most)
			}
		})
	}
}

// The token of a release that cannot succeed hands nothing over, nor does a second release of one lock.
func TestOnlyTheHolderHandsOver(t *testing.T) {
	inLine(t, []string{"a", "b", "c"}, func(w *world) {
		for _, token := range []string{"x", "b", ""} {
			w.Gates.Release(key, token, func(quorum.Released) {})
			time.Sleep(5 * time.Millisecond)
		}
		if w.handed() > 0 {
			t.Error("handed over by others")
		}
		w.giveBackBy("a", true)
		w.Gates.Release(key, "a", func(quorum.Released) {})
		time.Sleep(5 * time.Millisecond)
		if w.handed() != 1 {
			t.Errorf("%d handovers", w.handed())
		}
	})
}

func TestOneReleaseHandsOverOnce(t *testing.T) {
	inLine(t, []string{"a", "b", "c"}, func(w *world) {
		for range 3 {
			w.Gates.HandOver(key, "a", func(quorum.Released) {})
		}
		time.Sleep(10 * time.Millisecond)
		w.expectHolder("b")
		if w.handed() != 1 {
			t.Errorf("%d handovers", w.handed())
		}
	})
}

// A waiter who has not heard the bells yet would hear nothing of the lock that is handed over.
func TestNobodyIsHandedALockBeforeItHearsTheBells(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hold("x", time.Minute)
		w.deaf = &quorum.NoQuorum{}
		w.pause = func(most time.Duration) time.Duration { return most }
		for i := range 20 {
			w.wait(fmt.Sprint(i), time.Minute)
		}
		time.Sleep(10 * time.Millisecond)
		for range 10 { // a turn would have begun
			w.hold("x", time.Minute)
			w.Gates.HandOver(key, "x", func(quorum.Released) {})
			time.Sleep(5 * time.Millisecond)
		}
		if w.handed() > 0 {
			t.Error("handed over")
		}
	})
}
