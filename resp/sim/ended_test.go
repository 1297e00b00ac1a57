package sim

import (
	"runtime"
	"testing"
	"testing/synctest"
	"weak"

	"lockproxy/quorum"
	"lockproxy/quorum/sim"
)

// A world remembers its processes. What they had in memory it must not keep: in some worlds hundreds of them end.
func TestEnginesThatHaveEndedAreNotKept(t *testing.T) {
	var engines []weak.Pointer[quorum.Engine]
	most := 0
	watched := func(in sim.Inside) sim.Front {
		engines = append(engines, weak.Make(in.Engine))
		runtime.GC()
		kept := 0
		for _, e := range engines {
			if e.Value() != nil {
				kept++
			}
		}
		most = max(most, kept)
		return open(in)
	}
	synctest.Test(t, func(*testing.T) { sim.Run(sim.NewPlan(spoken(1152921504606846976+36)), watched, nil) })
	t.Logf("%d engines, up to %d of them in memory", len(engines), most)
	if len(engines) < 10 || most > len(engines)/2 {
		t.Errorf("of %d engines up to %d were in memory", len(engines), most)
	}
}
