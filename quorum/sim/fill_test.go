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

// losesHalf takes the lock of which the last master has nothing away on the first. Somebody else takes it there and on the last,
// and the second is out of his reach: if the last forgot him and were filled, two of three would be the former holder's.
func (s *scene) losesHalf(ttl time.Duration) {
	s.t.Helper()
	s.remove(0)
	s.do(func() { s.links[1][1].block(up) })
	s.expectGranted(<-s.acquire(1, "other", ttl, false))
	s.expectHolders(10*time.Millisecond, "omo")
}

// expectLost extends the lock through a proxy that does not reach the master which somebody else holds.
func (s *scene) expectLost(proxy int) {
	s.t.Helper()
	s.do(func() {
		s.links[proxy][1].heal()
		s.links[proxy][0].block(up)
	})
	for range 2 {
		if x := s.extend(proxy, "mine", time.Minute); x.Held {
			s.t.Errorf("two hold it: %+v", x)
		}
	}
}

func (s *scene) flush(master int) {
	s.do(func() { s.servers[master].do(&session{}, []string{"FLUSHALL"}) })
}

func TestAMasterInQuarantineIsNotFilled(t *testing.T) {
	inScene(t, func(s *scene) {
		s.gap(time.Minute)
		s.losesHalf(time.Minute)
		s.flush(2)
		s.sleep(time.Second)
		s.mute(2) // its answer is not heard, so that nothing is undone
		s.expectLost(0)
		s.expectLost(1)
	})
}

// What fills the gap is on its way for so long that the master has forgotten somebody else's vote.
func TestAMasterThatHasForgottenIsNotFilled(t *testing.T) {
	inScene(t, func(s *scene) {
		s.gap(time.Minute)
		s.do(func() { s.links[0][2].slow = 150 * time.Millisecond })
		s.expectHeld(s.extend(0, "mine", time.Minute))
		s.mute(2)
		s.losesHalf(time.Minute)
		s.flush(2)
		s.sleep(time.Second)
		s.expectLost(1)
	})
}

// The same, where somebody else's vote is gone because the master's clock has jumped, which its answer shows.
func TestAMasterWhoseClockHasJumpedIsNotFilled(t *testing.T) {
	inScene(t, func(s *scene) {
		s.gap(time.Minute)
		s.do(func() { s.links[0][2].slow = 50 * time.Millisecond })
		s.expectHeld(s.extend(0, "mine", time.Minute))
		s.losesHalf(10 * time.Second)
		s.set(2, 20*time.Second)
		s.expectHolders(time.Second, "om.")
		s.do(func() { s.links[0][2].slow = 0 })
		s.expectLost(0)
	})
}

// Too few masters are in reach to tell that the lock is gone.
func TestALockThatMayBeGoneIsNotBroughtBackByAnExtension(t *testing.T) {
	inScene(t, func(s *scene) {
		s.gap(time.Minute)
		s.remove(0)
		s.do(func() { s.links[0][0].block(up) })
		for range 3 {
			if x := s.extend(0, "mine", time.Minute); x.Held {
				t.Errorf("it was gone: %+v", x)
			}
		}
		s.expectHolders(time.Second, ".m.")
	})
}
