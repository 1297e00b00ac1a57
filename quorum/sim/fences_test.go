package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lockproxy/quorum"
)

// fenced begins an attempt that asks for a fence.
func (s *scene) fenced(proxy int, token string) <-chan quorum.Acquired {
	req := quorum.AcquireRequest{Key: quorum.Key{Name: resourceName(0)}, Token: token, TTL: 20 * time.Second, Fenced: true}
	return begin(s.proxies[proxy].life.engine.Acquire, req)
}

// expectFence asks for the newest fence of the resource.
func (s *scene) expectFence(want int64) {
	s.t.Helper()
	if v := s.newest(1); v.Err != nil || v.Fence != want {
		s.t.Errorf("the newest fence is %d, want %d (%v)", v.Fence, want, v.Err)
	}
}

// ahead is more than any clock shows in a scene.
const ahead = int64(1) << 51

// knows lets masters, counted from 0, know a fence, and nothing larger, in their epoch.
func (s *scene) knows(fence int64, masters ...int) {
	s.do(func() {
		for _, i := range masters {
			m := s.servers[i]
			m.put(&session{}, "lockproxy:fence", item{text: fmt.Sprintf("%d %s", fence, m.epoch())})
		}
	})
}

// differ lets the second master know less than the others, of which the third one answers last: what it keeps must be
// raised.
func (s *scene) differ() {
	s.knows(ahead, 0, 2)
	s.knows(1, 1)
	s.do(func() { s.links[0][2].slow = time.Millisecond })
}

// epoch is that of its canary.
func (s *server) epoch() string {
	canary, _ := s.get(&session{}, "lockproxy:canary")
	return strings.Fields(canary.text)[1]
}

// enter lets a master have come to another epoch, with the data that it has.
func (s *scene) enter(epoch string, master int) {
	s.do(func() {
		m := s.servers[master]
		canary, _ := m.get(&session{}, "lockproxy:canary")
		f := strings.Fields(canary.text)
		f[1] = epoch
		m.put(&session{}, "lockproxy:canary", item{text: strings.Join(f, " ")})
	})
}

// record is what lies beside the lock on a master.
func (s *scene) record(master int) (text string) {
	s.do(func() {
		it, _ := s.servers[master].get(&session{}, "lockproxy:fence:"+resourceName(0))
		text = it.text
	})
	return text
}

// stopWhenTaken stops masters as soon as each holds the lock: what comes after that waits.
func (s *scene) stopWhenTaken(masters ...int) {
	left := len(masters)
	for range 10000 {
		s.do(func() {
			for _, i := range masters {
				if m := s.servers[i]; !m.stopped {
					if _, ok := m.get(&session{}, resourceName(0)); ok {
						m.stopped = true
						left--
					}
				}
			}
		})
		if left == 0 {
			return
		}
		s.sleep(time.Microsecond)
	}
	s.t.Fatal("the lock is not taken")
}

func (s *scene) resume(master int) { s.do(s.servers[master].resume) }

func (s *scene) granted(c <-chan quorum.Acquired) quorum.Acquired {
	s.t.Helper()
	a := <-c
	if a.Lock == nil {
		s.t.Fatalf("not granted: %+v", a)
	}
	return a
}

func TestAFenceThatAQuorumKeepsAtOnceCostsNoFurtherRound(t *testing.T) {
	inScene(t, func(s *scene) {
		s.knows(ahead, 0, 1, 2)
		s.do(func() {
			for _, l := range s.links[0] {
				l.slow = 10 * time.Millisecond
			}
		})
		lock := func(n int, fenced bool) time.Duration {
			began := time.Now()
			req := quorum.AcquireRequest{Key: quorum.Key{Name: resourceName(n)}, Token: "mine", TTL: 20 * time.Second, Fenced: fenced}
			s.granted(begin(s.proxies[0].life.engine.Acquire, req))
			return time.Since(began)
		}
		round := lock(0, false)
		if took := lock(1, true); took > round*3/2 {
			t.Errorf("it took %v, and a lock without a fence %v", took, round)
		}
		s.sleep(100 * time.Millisecond)
		s.knows(1, 0, 1) // the proxy knows more
		if took := lock(2, true); took > round*3/2 {
			t.Errorf("where masters differ, it took %v, and a lock without a fence %v", took, round)
		}
	})
}

func TestAFenceIsMoreThanAnyOfAQuorumKnows(t *testing.T) {
	inScene(t, func(s *scene) {
		s.knows(ahead, 1, 2)
		s.knows(1, 0)
		a := s.granted(s.fenced(0, "mine"))
		if a.Fence != ahead+1 || a.Unfounded {
			t.Errorf("fence %d: %+v", a.Fence-ahead, a)
		}
		s.expectFence(a.Fence)
	})
}

// In a new deployment nobody knows of any fence. Those that grant are seeded with the first one.
func TestTheFirstFenceIsUnfounded(t *testing.T) {
	inScene(t, func(s *scene) {
		first := s.granted(s.fenced(0, "mine"))
		if !first.Unfounded {
			t.Errorf("founded on nothing: %+v", first)
		}
		s.expectFence(first.Fence)
		first.Lock.Abandon()
		s.sleep(10 * time.Millisecond)
		second := s.granted(s.fenced(1, "mine"))
		if second.Unfounded || second.Fence <= first.Fence {
			t.Errorf("%d after %d: %+v", second.Fence, first.Fence, second)
		}
		s.expectFence(second.Fence)
	})
}

// A master that grants is not seeded. Enough others are, so they are asked, and told its epoch: who keeps a fence there
// from then on does not count what it kept before.
func TestWhoIsAskedForFencesIsToldTheEpochs(t *testing.T) {
	inScene(t, func(s *scene) {
		s.knows(ahead, 1, 2)
		s.do(func() {
			for _, m := range s.servers { // proxies that start have told them
				m.remove(&session{}, "lockproxy:roster")
			}
			s.links[0][2].slow = 10 * time.Millisecond
		})
		a := s.granted(s.fenced(0, "mine"))
		if a.Unfounded || a.Fence != ahead+2 {
			t.Errorf("%+v", a)
		}
		s.sleep(100 * time.Millisecond)
		s.do(func() {
			epoch := s.servers[0].epoch()
			for i, m := range s.servers {
				roster, _ := m.get(&session{}, "lockproxy:roster")
				if f := strings.Fields(roster.text); len(f) != 3 || f[0] != epoch {
					t.Errorf("m%d has been told %q", i+1, roster.text)
				}
			}
			if seed, _ := s.servers[0].get(&session{}, "lockproxy:fence"); seed.text != fmt.Sprintf("%d %s", a.Fence, epoch) {
				t.Errorf("the master that granted knows %q, want %d", seed.text, a.Fence)
			}
		})
	})
}

// Fewer than enough masters that know the fences can be asked.
func TestAFenceRestsOnTheClockWhereTooFewMastersRemember(t *testing.T) {
	inScene(t, func(s *scene) {
		s.knows(ahead, 2)
		a := s.granted(s.fenced(0, "mine"))
		if !a.Unfounded || a.Fence <= ahead {
			t.Errorf("what one knows is to be heeded, and not to be relied on: %+v", a)
		}
	})
}

func TestAFenceGrowsThoughAllMastersHaveForgottenTheLast(t *testing.T) {
	inScene(t, func(s *scene) {
		first := s.granted(s.fenced(0, "mine"))
		for master := range 3 {
			s.flush(master)
		}
		s.sleep(2 * time.Minute) // until they have a vote again
		if second := s.granted(s.fenced(1, "yours")); !second.Unfounded || second.Fence <= first.Fence {
			t.Errorf("%d after %d, and the proxies' clocks agree: %+v", second.Fence, first.Fence, second)
		}
	})
}

func TestNoFenceIsGivenOutIfNoQuorumTellsWhatItKnows(t *testing.T) {
	inScene(t, func(s *scene) {
		taken := s.fenced(0, "mine")
		s.stopWhenTaken(1, 2)
		if a := <-taken; a.Err == nil {
			t.Errorf("granted, or refused: %+v", a)
		}
		s.resume(1)
		s.resume(2)
		s.expectHolders(time.Second, "...")
	})
}

// A raise that arrives when its master has forgotten, and knows the fences again, keeps nothing there.
func TestARaiseOfAnotherEpochKeepsNothing(t *testing.T) {
	lateRaiseKeepsNothing(t, func(s *scene) {
		s.enter("99", 1)
		s.knows(3*ahead, 1)
	})
}

// A raise keeps a fence only beside the lock that it is of.
func TestARaiseKeepsNothingBesideAnotherLock(t *testing.T) {
	lateRaiseKeepsNothing(t, func(s *scene) { s.others(1) })
}

// lateRaiseKeepsNothing lets something happen on the second master before the raise comes there.
func lateRaiseKeepsNothing(t *testing.T, happens func(s *scene)) {
	t.Helper()
	inScene(t, func(s *scene) {
		s.differ()
		taken := s.fenced(0, "mine")
		s.stopWhenTaken(1)
		s.granted(taken)
		before := s.record(1)
		happens(s)
		s.resume(1)
		s.sleep(10 * time.Millisecond)
		if after := s.record(1); after != before {
			t.Errorf("the record was %q, and is %q", before, after)
		}
	})
}

// The master that the fence came from is gone before it is raised, and one that was late has kept more beside the same lock.
func TestARaiseGoesFurtherThanAnyMasterOfTheLockHasKept(t *testing.T) {
	inScene(t, func(s *scene) {
		s.differ()
		s.knows(2*ahead, 2)
		taken := s.fenced(0, "mine")
		s.stopWhenTaken(1)
		if a := s.granted(taken); a.Fence <= 2*ahead {
			t.Errorf("fence %d", a.Fence)
		}
	})
}

// One of two masters that kept the fence has forgotten it, as the other one has been told by the time that it keeps it.
func TestAKeptFenceIsVoidWhenItsMasterHasForgotten(t *testing.T) {
	inScene(t, func(s *scene) {
		s.knows(ahead, 0) // so that the others must be raised
		s.knows(1, 1, 2)
		taken := s.fenced(0, "mine")
		s.stopWhenTaken(0, 1, 2)
		s.sleep(time.Millisecond)
		s.resume(1)
		s.sleep(time.Millisecond)
		s.do(func() {
			s.servers[2].put(&session{}, "lockproxy:roster", item{text: "0 99 0"})
		})
		s.resume(2)
		if a := <-taken; a.Lock != nil {
			t.Errorf("fence %d is on one master", a.Fence)
		}
	})
}

// Old data comes back, with the record of an old fence. It is of another epoch.
func TestARecordOfAnotherEpochCountsForNothing(t *testing.T) {
	inScene(t, func(s *scene) {
		s.knows(1, 0, 1, 2)
		a := s.granted(s.fenced(0, "mine"))
		s.expectFence(a.Fence)
		s.enter("99", 0)
		s.enter("99", 1)
		s.sleep(time.Second) // the proxies have found out
		s.expectFence(0)
	})
}

// A master in quarantine takes part, but keeps no record: what it knows of fences may be of long ago.
func TestAMasterThatDoesNotKnowTheFencesKeepsNoRecord(t *testing.T) {
	inScene(t, func(s *scene) {
		s.knows(1, 0, 1)
		s.granted(s.fenced(0, "mine"))
		s.sleep(10 * time.Millisecond)
		if text := s.record(2); text != "" {
			t.Errorf("%q", text)
		}
	})
}

func TestAFenceLastsAsLongAsItsExtendedLock(t *testing.T) {
	inScene(t, func(s *scene) {
		s.knows(1, 0, 1, 2)
		a := s.granted(s.fenced(0, "mine"))
		req := quorum.ExtendRequest{Key: quorum.Key{Name: resourceName(0)}, Token: "mine", TTL: time.Minute, Fenced: true}
		if x := <-begin(s.proxies[0].life.engine.Extend, req); !x.Held {
			t.Fatalf("not extended: %+v", x)
		}
		s.sleep(30 * time.Second)
		s.expectFence(a.Fence)
	})
}

// Of two masters that tell what they know, the other one has been told that the first has forgotten: they are too few.
func TestAMasterThatHasForgottenTellsOfNoFences(t *testing.T) {
	inScene(t, func(s *scene) {
		s.knows(ahead, 0, 2)
		s.do(func() {
			s.links[0][2].slow = 10 * time.Millisecond
			s.servers[2].put(&session{}, "lockproxy:roster", item{text: "99 0 0"})
		})
		if a := s.granted(s.fenced(0, "mine")); !a.Unfounded {
			t.Errorf("%+v", a)
		}
	})
}

// Else its vote for a fence would not count until some lock had the time to ask all masters.
func TestAMasterWhoseQuarantineEndsIsToldTheFences(t *testing.T) {
	inScene(t, func(s *scene) {
		s.knows(ahead, 0, 1, 2)
		s.flush(0)
		s.sleep(5 * time.Second)
		s.expectState(0, quorum.Clean)
		s.do(func() {
			m := s.servers[0]
			it, _ := m.get(&session{}, "lockproxy:fence")
			if want := fmt.Sprintf("%d %s", ahead, m.epoch()); it.text != want {
				t.Errorf("it knows %q, want %q", it.text, want)
			}
		})
	})
}
