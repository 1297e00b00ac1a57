package sim

import (
	"testing"
	"time"

	"lockproxy/quorum"
)

// addLate adds to the lock through the first proxy, while the third master is not to be reached, and what the second is sent comes
// so late. It returns how many rounds that took.
func (s *scene) addLate(ttl, late time.Duration) (rounds uint64) {
	s.t.Helper()
	e := s.proxies[0].life.engine
	before := e.Stats().Rounds.Count
	s.do(func() { s.links[0][2].block(up); s.links[0][1].slow = late })
	req := quorum.ExtendRequest{Key: quorum.Key{Name: resourceName(0)}, Token: "mine", TTL: ttl, Add: true}
	c := begin(e.Extend, req)
	s.sleep(time.Millisecond) // it is on its way
	s.do(func() { s.links[0][1].slow = 0 })
	s.expectHeld(<-c)
	rounds = e.Stats().Rounds.Count - before
	s.lose(2) // which misses it
	s.sleep(100 * time.Millisecond)
	return rounds
}

// The masters' clocks are minutes apart, and a packet is late.
func TestAnAdditionThatAMasterMakesLateTakesOneRound(t *testing.T) {
	for name, old := range map[string]bool{"Redis 7": false, "Redis 6, which has no PEXPIRETIME": true} {
		t.Run(name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.do(func() {
					for _, m := range s.servers {
						m.old = old
					}
				})
				s.lose(0, 1, 2)
				s.set(0, -3*time.Minute)
				s.sleep(time.Second)
				s.set(1, -9*time.Minute)
				s.sleep(time.Second)
				s.expectGranted(<-s.acquire(0, "mine", 4*time.Second, false))
				for range 5 {
					if n := s.addLate(time.Second, 100*time.Millisecond); n != 1 {
						t.Errorf("an addition took %d rounds", n)
					}
				}
			})
		})
	}
}

// A second round leaves nothing for the next addition to make even.
func TestWhatAnAdditionHasMadeEvenStaysSo(t *testing.T) {
	inScene(t, func(s *scene) {
		s.set(0, -3*time.Minute)
		s.sleep(time.Second)
		s.expectGranted(<-s.acquire(0, "mine", 4*time.Second, false))
		s.miss(func() { s.expectHeld(s.extend(0, "mine", 30*time.Second)) })
		for _, want := range []uint64{2, 1, 1} {
			if n := s.addLate(time.Second, 100*time.Millisecond); n != want {
				t.Errorf("an addition took %d rounds, want %d", n, want)
			}
		}
	})
}

// One master misses an extension. The other is so late to add to the lock that as much is left there, then, as on the first when
// that added to it.
func TestAMasterThatMissedAnExtensionIsNotHiddenByOneThatIsLate(t *testing.T) {
	config := sceneConfig
	config.Grace = 50 * time.Millisecond
	inSceneWith(t, 3, config, nil, func(s *scene) {
		const missed = 280 * time.Millisecond
		s.expectGranted(<-s.acquire(0, "mine", 4*time.Second, false))
		var began time.Duration
		s.miss(func() {
			began = s.now()
			s.expectHeld(s.extend(0, "mine", 3*time.Second+missed))
		})
		s.addLate(10*time.Second, missed)
		s.lose(1)
		s.do(func() { s.servers[1].stopped = true })
		s.sleep(began + 13*time.Second + missed - 50*time.Millisecond - s.now()) // its holder counts on it still
		s.expectNotGranted(<-s.acquire(1, "other", time.Second, false))
	})
}

// A key expires a few milliseconds later on one master than on the others. What is added brings the lock to ttl_max.
func TestAnAdditionUpToTheLongestTTLIsMadeOnEveryMaster(t *testing.T) {
	inScene(t, func(s *scene) {
		s.expectGranted(<-s.acquire(0, "mine", 4*time.Second, false))
		var before int64
		s.do(func() {
			m := s.servers[2]
			it, _ := m.store.get(0, resourceName(0), m.clock.millis(m.now()))
			it.expires += 3
			before = it.expires
			m.put(&session{}, resourceName(0), it)
		})
		s.expectHeld(s.extendBy(0, quorum.ExtendRequest{Key: quorum.Key{Name: resourceName(0)}, Token: "mine", TTL: 56 * time.Second, Add: true}))
		s.do(func() {
			m := s.servers[2]
			if it, _ := m.store.get(0, resourceName(0), m.clock.millis(m.now())); it.expires < before+50_000 {
				t.Errorf("it ends %d ms later there than before", it.expires-before)
			}
		})
	})
}
