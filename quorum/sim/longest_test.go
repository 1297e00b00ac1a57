package sim

import (
	"testing"
	"time"

	"lockproxy/quorum"
)

// One master misses an extension. Then the value is replaced by it and another, whichever were looked at before, and the third,
// which has extended the lock, misses that.
func TestATTLThatIsKeptIsThatOfAQuorum(t *testing.T) {
	for _, slow := range []time.Duration{0, 20 * time.Millisecond} {
		inScene(t, func(s *scene) {
			s.expectGranted(<-s.acquire(0, "mine", 4*time.Second, false))
			s.miss(func() {
				if x := s.extend(0, "mine", 30*time.Second); !x.Held {
					t.Fatalf("not extended: %+v", x)
				}
			})
			s.do(func() { s.links[0][0].slow = slow })
			lock := s.edit(0, quorum.Edit{Kind: quorum.Put, Value: "new", KeepTTL: true}, func() {
				s.do(func() { s.links[0][1].block(up) })
			})
			if left := time.Until(lock.Until()); left < 28*time.Second {
				t.Errorf("promised for %v", left)
			}
			s.expectHolders(4*time.Second, "nmn")
			s.release(1, "mine") // which is late
			s.expectNotGranted(<-s.acquire(1, "other", time.Second, false))
		})
	}
}

// One master misses an extension. The other is so late to tell how much is left of the lock that this is much less by then.
func TestATTLThatIsKeptIsNotWhatIsLeftWhenItWasTold(t *testing.T) {
	config := sceneConfig
	config.Grace = 50 * time.Millisecond
	inSceneWith(t, 3, config, nil, func(s *scene) {
		s.expectGranted(<-s.acquire(0, "mine", 4*time.Second, false))
		var began time.Duration
		s.miss(func() {
			began = s.now()
			s.expectHeld(s.extend(0, "mine", 6*time.Second))
		})
		s.do(func() {
			s.links[0][2].block(up)
			s.links[0][1].slow = 280 * time.Millisecond
			s.after(time.Millisecond, func() { s.links[0][1].slow = 0 })
		})
		s.edit(0, quorum.Edit{Kind: quorum.Put, Value: "new", KeepTTL: true}, func() {})
		s.lose(2)
		s.release(1, "mine") // which is late
		s.stop(1)
		s.sleep(began + 6*time.Second - 50*time.Millisecond - s.now()) // its holder counts on it still
		s.expectNotGranted(<-s.acquire(1, "other", time.Second, false))
	})
}

func TestATTLThatIsKeptAgainAndAgainEnds(t *testing.T) {
	inScene(t, func(s *scene) {
		s.expectGranted(<-s.acquire(0, "mine", time.Second, false))
		again := &quorum.WriteRequest{IfExists: true, KeepTTL: true}
		for began := s.now(); s.swapVia(0, again, "mine") != ""; {
			if s.now() > began+2*time.Second {
				t.Fatal("it lasts")
			}
		}
	})
}

// One master misses an extension, and is among those that tell how long the lock lasts.
func TestAnExpiryThatIsToBeGreaterDoesNotShortenTheLock(t *testing.T) {
	inScene(t, func(s *scene) {
		s.expectGranted(<-s.acquire(0, "mine", 4*time.Second, false))
		s.miss(func() {
			if x := s.extend(0, "mine", 30*time.Second); !x.Held {
				t.Fatalf("not extended: %+v", x)
			}
		})
		s.do(func() { s.links[0][1].slow = 5 * time.Millisecond }) // so the first master, which has missed the extension, is one of the first two to tell
		req := quorum.ExpireRequest{Key: quorum.Key{Name: resourceName(0)}, TTL: 10 * time.Second, Condition: quorum.IfGreater}
		if x := <-begin(s.proxies[0].life.engine.Expire, req); x.Err != nil {
			t.Fatal(x.Err)
		}
		s.sleep(12 * time.Second)
		s.expectNotGranted(<-s.acquire(1, "other", time.Second, false))
	})
}

// One master misses an extension, and has a vote in the addition after that; another misses the addition.
func TestAnAdditionIsToWhatAQuorumWasTold(t *testing.T) {
	inScene(t, func(s *scene) {
		s.expectGranted(<-s.acquire(0, "mine", 4*time.Second, false))
		s.miss(func() {
			if x := s.extend(0, "mine", 30*time.Second); !x.Held {
				t.Fatalf("not extended: %+v", x)
			}
		})
		s.do(func() { s.links[0][1].block(up) })
		began := s.now()
		if x := s.extendBy(0, quorum.ExtendRequest{Token: "mine", TTL: 10 * time.Second, Add: true}); !x.Held {
			t.Fatalf("not extended: %+v", x)
		}
		s.lose(1)
		s.sleep(began + 35*time.Second - s.now())
		s.expectNotGranted(<-s.acquire(1, "other", time.Second, false))
	})
}
