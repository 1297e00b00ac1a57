package sim

import (
	"testing"
	"time"
)

// A clock is set back just before the horizon is extended there. Later a lock is taken with that master's vote, and the other
// master that granted it forgets.
func TestAHorizonIsNotTakenToLastLongerByAClockThatWasSetBack(t *testing.T) {
	inScene(t, func(s *scene) {
		s.set(1, -time.Minute)
		if a := <-s.acquire(0, "first", time.Second, false); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		s.release(0, "first")
		s.sleep(5 * time.Second)
		s.do(func() { s.links[0][2].block(up) })
		if a := <-s.acquire(0, "mine", 10*time.Second, false); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		s.flush(0)
		s.sleep(2 * time.Second)
		s.expectNotGranted(<-s.acquire(1, "other", time.Second, false))
	})
}
