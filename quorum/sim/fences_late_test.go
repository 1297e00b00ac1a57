package sim

import (
	"testing"
	"time"

	"lockproxy/quorum"
)

func (s *scene) release(proxy int, token string) {
	c := make(chan quorum.Released, 1)
	s.proxies[proxy].life.engine.Release(quorum.Key{Name: resourceName(0)}, token, func(r quorum.Released) { c <- r })
	if r := <-c; r.Err != nil {
		s.t.Errorf("not released: %+v", r)
	}
}

func (s *scene) newest(proxy int) quorum.FenceView {
	c := make(chan quorum.FenceView, 1)
	s.proxies[proxy].life.engine.Fence(quorum.Key{Name: resourceName(0)}, func(v quorum.FenceView) { c <- v })
	return <-c
}

// The first lock's commands come late to one master: after the lock was released, and the next one was taken and released there.
func TestALateRaiseDoesNotBringAnOldFenceBack(t *testing.T) {
	inScene(t, func(s *scene) {
		s.knows(1, 0)
		s.knows(ahead, 1)
		s.knows(2*ahead, 2)
		s.do(func() { s.links[0][0].slow = 40 * time.Millisecond })
		first := s.granted(s.fenced(0, "one"))
		s.release(0, "one")
		s.do(func() { s.links[1][2].block(up) })
		second := s.granted(s.fenced(1, "two"))
		s.release(1, "two")
		if second.Fence <= first.Fence || first.Unfounded || second.Unfounded {
			t.Fatalf("%+v, then %+v", first, second)
		}
		s.sleep(250 * time.Millisecond)
		if v := s.newest(0); v.Fence == first.Fence {
			t.Errorf("the newest fence is %d, %v: but %d was given out after it", v.Fence, v.Err, second.Fence)
		}
	})
}

// Of four masters one is down, and one that is clean was never seeded. Three are a quorum, and two that are seeded are enough to
// ask, but not to keep a fence.
func TestALockOfFourMastersWithOneDownAndOneUnseeded(t *testing.T) {
	inSceneOf(t, 4, func(s *scene) {
		s.knows(1, 0, 1, 3)
		s.do(func() { s.servers[3].stopped = true })
		s.granted(s.fenced(0, "mine"))
	})
}

func TestALockOfTwoMastersOfWhichOneIsUnseeded(t *testing.T) {
	inSceneOf(t, 2, func(s *scene) {
		s.knows(1, 0)
		s.granted(s.fenced(0, "mine"))
	})
}

// One master was away when the first fence was given out, and is slower than the others. It is seeded all the same: so a lock's
// fence is known while another is away, and another may forget. Never is more than one away or in quarantine.
func TestAMasterThatWasAwayAtFirst(t *testing.T) {
	inScene(t, func(s *scene) {
		s.do(func() { s.servers[2].stopped = true })
		s.granted(s.fenced(0, "a"))
		s.release(0, "a")
		s.resume(2)
		s.sleep(10 * time.Second)
		s.do(func() { s.links[0][2].slow, s.links[1][2].slow = time.Millisecond, time.Millisecond })
		for range 20 {
			if a := s.granted(s.fenced(1, "c")); a.Unfounded {
				t.Errorf("unfounded: %+v", a)
			}
			s.release(1, "c")
			s.sleep(100 * time.Millisecond)
		}
		held := s.granted(s.fenced(0, "held"))
		s.do(func() { s.servers[0].stopped = true })
		if v := s.newest(0); v.Fence != held.Fence {
			t.Errorf("one master is away: FENCE %+v, want %d", v, held.Fence)
		}
		s.resume(0)
		s.sleep(time.Second)
		s.release(0, "held")
		s.do(func() { s.servers[0].do(&session{}, []string{"FLUSHALL"}) })
		s.sleep(90 * time.Second)
		if a := s.granted(s.fenced(0, "d")); a.Unfounded {
			t.Errorf("one of three forgot, and all are there: %+v", a)
		}
	})
}
