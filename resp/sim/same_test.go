//go:build !race

package sim

import (
	"hash/fnv"
	"testing"

	"lockproxy/quorum/sim"
)

// TestASeedDecidesNearlyEverything runs worlds twice. The race detector mixes goroutines up on purpose.
func TestASeedDecidesNearlyEverything(t *testing.T) {
	const n = 8
	differ := 0
	for i := range uint64(n) {
		seed := sim.Spoken + i + 1 | i%2*sim.Voted | i/2%2*sim.Several | i/4%2*sim.Moved
		var traces [2]uint64
		for j := range traces {
			h := fnv.New64a()
			play(t, sim.NewPlan(seed), func(line string) { _, _ = h.Write([]byte(line)) })
			traces[j] = h.Sum64()
		}
		if traces[0] != traces[1] {
			t.Logf("seed %d made two different worlds", seed)
			differ++
		}
	}
	if differ > 1 {
		t.Errorf("%d of %d seeds made two different worlds", differ, n)
	}
}
