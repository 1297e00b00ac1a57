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
		p := sim.NewPlan(spoken(i + 1).OfKind(i << 3)) // Voted, Several, Moved, and some Operated
		if sim.Differs(func(trace func(string)) sim.Report { return play(t, p, trace) }) {
			t.Logf("seed %v makes different worlds", p.Seed)
			differ++
		}
	}
	if differ > 1 {
		t.Errorf("%d of %d seeds make different worlds", differ, n)
	}
}
