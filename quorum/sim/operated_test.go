package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"lockproxy/quorum"
)

// A former server lives on when the others have told how long the quarantine of the later one lasts. Where that ends by ttl_max alone, it is
// no more by then.
func TestAFormerServerIsNoMoreWhenAQuarantineEndsByItself(t *testing.T) {
	for _, test := range []struct {
		name  string
		away  bool // another master
		after time.Duration
		lives bool
	}{
		{"all others tell", false, 5 * time.Second, true},
		{"all others tell, long ago", false, 2 * sceneConfig.TTLMax, true},
		{"too few others can be asked", true, sceneConfig.TTLMax - time.Second, true},
		{"too few others could be asked", true, sceneConfig.TTLMax + 5*time.Second, false},
	} {
		inScene(t, func(s *scene) {
			if test.away {
				s.do(func() { s.servers[0].crash(false) })
			}
			was := s.replace(2, nil, 0)
			s.do(func() { s.former = append(s.former, was) })
			s.sleep(test.after)
			if test.lives == was.down {
				t.Errorf("%s: it lives: %v, want %v", test.name, !was.down, test.lives)
			}
			if ended := !test.away || !test.lives; ended {
				s.expectStateVia(0, 2, quorum.Clean)
			}
		})
	}
}

// Of an even number of masters one address at a time leads to another server, of an odd number any.
func TestAddressesOfAnEvenNumberMoveOneByOne(t *testing.T) {
	for _, masters := range []int{3, 4} {
		inSceneOf(t, masters, func(s *scene) {
			r := rand.New(rand.NewPCG(1, 1))
			s.do(func() {
				for range 20 {
					moveAddress(s.World, r)
				}
				want := masters
				if masters == 4 {
					want = 1
				}
				if n := len(s.former); n != want {
					t.Errorf("of %d masters %d addresses lead elsewhere at once, want %d", masters, n, want)
				}
			})
		})
	}
}
