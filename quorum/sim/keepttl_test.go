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
