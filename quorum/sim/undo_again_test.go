package sim

import (
	"testing"
	"time"

	"lockproxy/quorum"
)

// An undo that found nothing is repeated with the next heartbeats. By then its token has the lock again, and has extended it until the very
// millisecond in which the key of the undo was to expire.
func TestAnUndoThatIsRepeatedTakesNoVoteOfAnExtension(t *testing.T) {
	inScene(t, func(s *scene) {
		expires := func() (at, now int64) {
			s.do(func() {
				m := s.servers[0]
				now = m.clock.millis(m.now())
				it, _ := m.store.get(0, resourceName(0), now)
				at = it.expires
			})
			return at, now
		}
		s.others(1, 2)
		s.mute(0)
		if a := <-s.acquire(0, "mine", 20*time.Second, false); a.Lock != nil {
			t.Fatalf("granted: %+v", a)
		}
		undone, _ := expires()
		for _, token := range []string{"mine", "other"} {
			<-begin(func(token string, done func(quorum.Released)) {
				s.proxies[1].life.engine.Release(quorum.Key{Name: resourceName(0)}, token, done)
			}, token)
		}
		s.expectHolders(0, "...")
		s.breakOff(0)
		s.sleep(100 * time.Millisecond) // it is undone, in vain
		s.take(0, "mine")
		ttl := 20 * time.Second
		for range 100 {
			s.expectHeld(s.extend(0, "mine", ttl))
			at, _ := expires()
			if at == undone {
				break
			}
			ttl -= time.Duration(at-undone) * time.Millisecond * 99 / 100
		}
		if at, _ := expires(); at < undone-3 || at > undone+3 { // it cannot be the very one, as the rules are
			t.Fatalf("it expires at %d, not at about %d", at, undone)
		}
		s.expectHolders(3*time.Second, "mmm")
	})
}
