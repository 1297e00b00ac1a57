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
