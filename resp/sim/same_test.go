//go:build !race

package sim

import (
	"testing"

	"lockproxy/quorum/sim"
)

// TestASeedDecidesNearlyEverything runs worlds again. The race detector mixes goroutines up on purpose.
func TestASeedDecidesNearlyEverything(t *testing.T) {
	const n = 8
	differ := 0
	for i := range uint64(n) {
		p := sim.NewPlan(sim.Spoken + i + 1 | i%2*sim.Voted | i/2%2*sim.Several | i/4%2*sim.Moved)
		if sim.Differs(func(trace func(string)) sim.Report { return play(t, p, trace) }) {
			t.Logf("seed %d makes different worlds", p.Seed)
			differ++
		}
	}
	if differ > 1 {
		t.Errorf("%d of %d seeds make different worlds", differ, n)
	}
}
