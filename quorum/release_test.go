package quorum

import (
	"testing"
	"testing/synctest"
	"time"
)

// A releaseBetween is a release that a lane turns away, or drops. An earlier attempt is answered just before or after missed has looked
// for what the master granted.
type releaseBetween struct {
	releaseRound
	before, after func()
}

func (r *releaseBetween) missed(en *entry) {
	r.before()
	r.releaseRound.missed(en)
	r.after()
}

// A lock is granted by two masters. The third master is stalled with the attempt, and answers while the release is being turned away.
func TestAnAttemptThatIsAnsweredWhileItsReleaseIsTurnedAwayIsUndone(t *testing.T) {
	nothing := func() {}
	for _, c := range []struct {
		name   string
		before bool // missed looks
	}{
		{name: "answered before the look", before: true},
		{name: "answered after the look"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				slow := w.fakes[2]
				slow.stall()
				if a := w.acquire(key, "mine", minute); a.Lock == nil {
					t.Fatalf("not granted: %+v", a)
				}
				time.Sleep(300 * time.Millisecond) // the lane is known to be late: it turns requests away
				answers := func() {
					slow.resume()
					time.Sleep(50 * time.Millisecond)
					synctest.Wait()
				}
				r := &releaseBetween{before: nothing, after: answers}
				if c.before {
					r.before, r.after = answers, nothing
				}
				released := make(chan Released, 1)
				r.key, r.token, r.done = Key{Name: key}, "mine", func(r Released) { released <- r }
				r.releases = &signature{name: key, token: "mine"}
				begin(w.Engine, r, r.key, r.runs(luaRelease, []string{key}, "mine"))
				if r := <-released; !r.Held {
					t.Fatalf("not released: %+v", r)
				}
				w.settle()
				w.expectHolders(key, "...")
			})
		})
	}
}

// The release and the attempt go to each master in one batch, in this order: one round trip later the next client has the lock.
func TestALockIsHandedOverInOneRoundTrip(t *testing.T) {
	for _, cfg := range []Config{oneByOne, {Grace: 400 * time.Millisecond, FarAway: time.Nanosecond}} {
		inWorldWith(t, 3, cfg, func(w *world) {
			if a := w.acquire(key, "mine", minute); a.Lock == nil {
				t.Fatalf("not granted: %+v", a)
			}
			w.settle()
			began := w.now()
			released, acquired := make(chan Released, 1), make(chan Acquired, 1)
			w.HandOver(HandOver{Token: "mine", Bell: "bell", Next: AcquireRequest{Key: Key{Name: key}, Token: "next", TTL: minute, WantFree: true}},
				func(r Released) { released <- r }, func(a Acquired) { acquired <- a })
			if r := <-released; !r.Held {
				t.Errorf("not released: %+v", r)
			}
			if a := <-acquired; a.Lock == nil {
				t.Errorf("not granted: %+v", a)
			}
			if took := w.now() - began; took > 3*time.Millisecond {
				t.Errorf("it takes %v, and a round trip 2 ms", took)
			}
			w.expectHolders(key, "nnn")
			if f := w.fakes[0]; f.ran("EVAL "+luaHandOver.text[:20]) != 1 {
				t.Errorf("the release was sent otherwise: %q", f.log)
			}
		})
	}
}
