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
