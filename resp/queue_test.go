package resp

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"lockproxy/quorum"
)

// A command waits for the youngest one before it on a key of its own, however many keys each of them has.
func TestCommandsOnManyKeysWaitForThoseThatShareOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	waited := 0
	for range 3000 {
		s, _ := bareSession(newFakeEngine(), "", 0)
		var want *slot
		all := make([]*slot, 5)
		for i := range all {
			sl := s.newReply()
			sl.overlap, sl.left = overlapNone, 1
			sl.key = quorum.Key{DB: rng.IntN(2), Name: someName(rng)}
			for range rng.IntN(20) {
				sl.others = append(sl.others, someName(rng))
			}
			all[i] = sl
		}
		last := all[len(all)-1]
		for _, sl := range all[:len(all)-1] {
			s.push(sl)
			s.alone++
			for _, name := range append([]string{last.key.Name}, last.others...) {
				if sl.touches(quorum.Key{DB: last.key.DB, Name: name}) {
					want = sl
				}
			}
		}
		if got := s.conflict(last); got != want {
			t.Fatalf("%v %v waits for %v, want %v", last.key, last.others, got, want)
		}
		if want != nil {
			waited++
		}
	}
	if waited < 300 || waited > 2700 {
		t.Errorf("%d of 3000 wait: that shows little", waited)
	}
}

func someName(rng *rand.Rand) string { return fmt.Sprint("k", rng.IntN(200)) }
