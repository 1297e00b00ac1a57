package sim

import (
	"testing"
	"time"
)

// set sets a clock, and returns by how much it was set.
func (s *scene) set(master int, by time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.servers[master]
	was := m.clock.lead(s.now()).by
	s.setClock(m, by)
	return time.Duration(m.clock.lead(s.now()).by - was).Round(time.Microsecond)
}

func TestAQuorumOfClocksIsNotSetAlikeAtOnce(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name  string
		first []time.Duration // of the first master
		pause time.Duration
		by    time.Duration // of the second
		alike bool
	}{
		{"alike", []time.Duration{900 * ms}, 0, 912 * ms, true},
		{"alike backwards", []time.Duration{-900 * ms}, 0, -912 * ms, true},
		{"alike in all", []time.Duration{-50 * ms, 1000 * ms}, 0, 912 * ms, true},
		{"in part, and that is not known yet", []time.Duration{-5000 * ms, 900 * ms}, 0, 912 * ms, true},
		{"clearly different", []time.Duration{900 * ms}, 0, 2000 * ms, false},
		{"the other way", []time.Duration{900 * ms}, 0, -900 * ms, false},
		{"before anybody has heard of it", []time.Duration{900 * ms}, ms, 900 * ms, true},
		{"when everybody has heard of it", []time.Duration{900 * ms}, 700 * ms, 900 * ms, false},
	} {
		inScene(t, func(s *scene) {
			for _, by := range test.first {
				s.set(0, by)
			}
			s.sleep(test.pause)
			if got := s.set(1, test.by); (got != test.by) != test.alike {
				t.Errorf("%s: set by %v, and then %v, when %v was asked for", test.name, test.first, got, test.by)
			}
		})
	}
}

// A proxy that has just started meets a clock that has gone ahead when the master has been marked for that, or by then could
// have been; in that case nothing is promised any more.
func TestAClockThatWentAheadIsMetWhenItsMasterIsMarked(t *testing.T) {
	for _, test := range []struct {
		name     string
		by       time.Duration
		severed  bool          // the other proxies
		met      time.Duration // at most
		marked   bool          // by then
		doubtful bool
	}{
		{"marked in time", time.Second, false, 700 * time.Millisecond, true, false},
		{"never marked", time.Second, true, aheadMarked + 400*time.Millisecond, false, true},
		{"by too little", time.Millisecond, true, 100 * time.Millisecond, false, false},
		{"backwards", -time.Second, true, 100 * time.Millisecond, false, false},
	} {
		inScene(t, func(s *scene) {
			s.do(s.proxies[1].kill)
			if a := <-s.acquire(0, "mine", 10*time.Second, false); a.Lock == nil {
				t.Fatalf("not granted: %+v", a)
			}
			if test.severed {
				s.do(func() {
					s.links[0][0].block(up)
					s.links[0][0].block(down)
				})
			}
			s.set(0, test.by)
			m, began := s.servers[0], s.now()
			was, _ := m.store.get(0, "lockproxy:canary", 0)
			s.do(s.proxies[1].boot)
			for met := false; !met; {
				s.sleep(time.Millisecond)
				s.do(func() { met = m.steps.asked[s.proxies[1].life] != 0 })
			}
			if took := s.now() - began; took > test.met {
				t.Errorf("%s: met after %v, want %v at most", test.name, took, test.met)
			}
			if canary, _ := m.store.get(0, "lockproxy:canary", 0); (canary.text != was.text) != test.marked {
				t.Errorf("%s: marked %v, want %v", test.name, !test.marked, test.marked)
			}
			if is := s.checker.doubtful[resourceName(0)] != 0; is != test.doubtful {
				t.Errorf("%s: doubtful %v, want %v", test.name, is, test.doubtful)
			}
		})
	}
}
