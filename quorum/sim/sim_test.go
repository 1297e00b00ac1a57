package sim

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	fixedFlag = flag.Int("fixed", 60, "how many fixed seeds to run")
	sameFlag  = flag.Int("same", 30, "how many seeds to run again")
	freshFlag = flag.Duration("fresh", 3*time.Second, "how long to run seeds that nobody has chosen")
	seedFlag  Seed
)

func init() { flag.TextVar(&seedFlag, "seed", Seed{}, "replay this seed with a trace") }

// One processor: what the scheduler may choose is then so little that a seed decides the rest.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}

// play runs one plan in a bubble of its own, which also finds goroutines that do not end.
func play(t *testing.T, p Plan, trace func(string)) Report {
	t.Helper()
	var r Report
	synctest.Test(t, func(*testing.T) { r = Run(p, nil, trace) })
	return r
}

// expectNothing runs a seed and fails for each finding.
func expectNothing(t *testing.T, seed Seed) Counts {
	t.Helper()
	r := play(t, NewPlan(seed), nil)
	for _, f := range r.Findings {
		t.Errorf("make sim SEED=%v: %v", seed, f)
	}
	return r.Counts
}

// TestReplay prints all that happens in one seed.
func TestReplay(t *testing.T) {
	if seedFlag == (Seed{}) || seedFlag.In(Spoken) {
		t.Skip("no -seed, or one of resp/sim")
	}
	p := NewPlan(seedFlag)
	fmt.Printf("%+v\n", p)
	r := play(t, p, func(line string) { fmt.Println(line) })
	fmt.Printf("%+v\nfaults: %v\n", r.Counts, r.Faults)
	for _, f := range r.Findings {
		t.Error(f)
	}
}

func TestFixedSeeds(t *testing.T) {
	sum, n, kinds := Counts{}, uint64(*fixedFlag), uint64(kinds)
	if raceEnabled { // it takes several times as long
		n, kinds = n/3, kinds/3
	}
	for i := range n {
		seed := Seed{Number: i + 1}
		sum.Add(expectNothing(t, seed))
		for kind := i; kind < kinds; kind += n { // all, one after the other
			sum.Add(expectNothing(t, seed.OfKind(kind)))
		}
	}
	t.Logf("%+v", sum)
	if sum.Behind == 0 {
		t.Error("no lane has had several batches under way")
	}
	if sum.Granted*40 < sum.Attempts {
		t.Errorf("only %d of %d attempts were granted: the worlds are too broken to show anything", sum.Granted, sum.Attempts)
	}
}

func TestFreshSeeds(t *testing.T) {
	first := uint64(time.Now().UnixNano())
	n := uint64(0)
	for began := time.Now(); time.Since(began) < *freshFlag; n++ {
		expectNothing(t, Seed{Number: first + n}.OfKind(n))
	}
	t.Logf("%d seeds from %d", n, first)
}

// TestRegressions replays every seed that ever failed, or would if a rule was broken.
func TestRegressions(t *testing.T) {
	for _, k := range keptSeeds(t, "regressions.txt") {
		expectNothing(t, k.seed)
	}
}

// A keptSeed is a line of a file of seeds: the version of the plans, the seed, and what it is kept for.
type keptSeed struct {
	seed Seed
	name string
}

// keptSeeds reads a file of seeds.
func keptSeeds(t *testing.T, file string) []keptSeed {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var kept []keptSeed
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		head, name, _ := strings.Cut(line, " ")
		version, text, _ := strings.Cut(head, ":")
		var seed Seed
		if err := seed.UnmarshalText([]byte(text)); err != nil || version != planVersion {
			t.Fatalf("%s: %q is no seed of plans %s: find it anew", file, head, planVersion)
		}
		kept = append(kept, keptSeed{seed, strings.TrimSpace(name)})
	}
	return kept
}

// TestASeedDecidesNearlyEverything runs worlds again, but for those with what chance decides (doc.go). The race detector
// mixes goroutines up on purpose: under it another process does this.
func TestASeedDecidesNearlyEverything(t *testing.T) {
	if raceEnabled {
		bin := filepath.Join(t.TempDir(), "calm.test")
		if out, err := exec.Command("go", "test", "-c", "-o", bin, ".").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		run := exec.Command(bin, "-test.run=^"+t.Name()+"$")
		run.Env = alone()
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	differ := 0
	for seed, n := (Seed{Number: 1}), 0; n < *sameFlag; seed.Number++ {
		p := NewPlan(seed)
		if slices.Contains(p.Faults, suspended) {
			continue
		}
		n++
		if Differs(func(trace func(string)) Report { return play(t, p, trace) }) {
			t.Logf("seed %v makes different worlds", seed)
			differ++
		}
	}
	if differ > 1 {
		t.Errorf("%d of %d seeds make different worlds", differ, *sameFlag)
	}
}

// alone is the environment of a process in which nothing but the seed is to decide.
func alone() []string {
	return append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GOGC=800")
}
