package sim

import (
	"testing"
	"time"

	"lockproxy/quorum"
)

// extend extends the lock on the resource through a proxy, counted from 0.
func (s *scene) extend(proxy int, token string, ttl time.Duration) quorum.Extended {
	c := make(chan quorum.Extended, 1)
	req := quorum.ExtendRequest{Key: quorum.Key{Name: resourceName(0)}, Token: token, TTL: ttl}
	s.proxies[proxy].life.engine.Extend(req, func(x quorum.Extended) { c <- x })
	return <-c
}

func (s *scene) expectHeld(x quorum.Extended) {
	s.t.Helper()
	if !x.Held {
		s.t.Errorf("not held: %+v", x)
	}
}

// Masters are restarted one after the other, each when the one before is back and may vote: whoever holds a lock all the time,
// and extends it, keeps it.
func TestALockThatIsExtendedOutlivesARestartOfEachMaster(t *testing.T) {
	inScene(t, func(s *scene) {
		const ttl = 2 * time.Second
		s.expectGranted(<-s.acquire(0, "mine", ttl, false))
		for master := range s.servers {
			s.fallBack(master, 0)
			for range 20 { // the quarantine is over by then
				s.sleep(ttl / 4)
				s.expectHeld(s.extend(0, "mine", ttl))
			}
		}
		s.expectHolders(0, "mmm")
	})
}

// gap lets a client hold a lock of which the last master has nothing, and its proxy know.
func (s *scene) gap(ttl time.Duration) {
	s.t.Helper()
	s.expectGranted(<-s.acquire(0, "mine", ttl, false))
	s.sleep(10 * time.Millisecond)
	s.remove(2)
	s.expectHeld(s.extend(0, "mine", ttl))
	s.expectHolders(10*time.Millisecond, "mm.")
}

// remove deletes the resource on masters.
func (s *scene) remove(masters ...int) {
	s.do(func() {
		for _, i := range masters {
			s.servers[i].remove(&session{}, resourceName(0))
		}
	})
}

func TestAMasterThatLacksALockIsGivenItByAnExtension(t *testing.T) {
	inScene(t, func(s *scene) {
		s.gap(10 * time.Second)
		s.expectHeld(s.extend(0, "mine", 10*time.Second))
		s.expectHolders(10*time.Millisecond, "mmm")
		s.remove(0) // now it has a vote
		s.expectHeld(s.extend(0, "mine", 10*time.Second))
	})
}

func TestALockThatIsGoneIsNotBroughtBackByAnExtension(t *testing.T) {
	inScene(t, func(s *scene) {
		s.gap(10 * time.Second)
		s.remove(0, 1)
		if x := s.extend(0, "mine", 10*time.Second); x.Held || !x.Absent {
			t.Errorf("want absent: %+v", x)
		}
		s.expectHolders(100*time.Millisecond, "...")
	})
}

// A master is stopped just before the extension comes, and goes on when the validity of the one before is over.
func TestNothingIsFilledByAnExtensionThatComesLate(t *testing.T) {
	inScene(t, func(s *scene) {
		const ttl = 5 * time.Second
		s.gap(ttl)
		s.sleep(ttl - 200*time.Millisecond)
		s.do(func() { s.servers[2].stopped = true })
		s.expectHeld(s.extend(0, "mine", time.Minute))
		s.sleep(250 * time.Millisecond)
		s.do(func() { s.servers[2].resume() })
		s.expectHolders(50*time.Millisecond, "mm.")
	})
}

func TestNothingIsFilledByAnExtensionThatIsAskedForLate(t *testing.T) {
	inScene(t, func(s *scene) {
		const ttl = 5 * time.Second
		s.gap(ttl)
		s.sleep(ttl)
		s.expectHeld(s.extend(0, "mine", time.Minute)) // masters keep the lock for longer than its validity
		s.expectHolders(50*time.Millisecond, "mm.")
	})
}

func TestNothingIsFilledWhereSomebodyElseHasAVote(t *testing.T) {
	inScene(t, func(s *scene) {
		s.gap(10 * time.Second)
		s.others(2)
		s.expectHeld(s.extend(0, "mine", 10*time.Second))
		s.expectHolders(10*time.Millisecond, "mmo")
	})
}
