// Package sim runs the worlds of quorum/sim whose clients speak the protocol: to servers of package resp, over engines and
// simulated masters. It wires them as cmd/lockproxy does, and is all that those worlds lack.
package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/quorum/sim"
	"lockproxy/resp"
	"lockproxy/script"
)

var (
	fixedFlag = flag.Uint64("fixed", 12, "how many fixed seeds to run")
	freshFlag = flag.Duration("fresh", 3*time.Second, "how long to run seeds that nobody has chosen")
	huntFlag  = flag.Uint64("hunt", 0, "look for a seed that fails among so many")
	firstFlag = flag.Uint64("first", 1, "the number of the first seed of a hunt")
	classes   = flag.String("classes", "spoken", "hunt among seeds of these classes, with + between them")
	_         = flag.String("aim", "", "not used: for hunts in package quorum/sim")
	seedFlag  sim.Seed
)

func init() { flag.TextVar(&seedFlag, "seed", sim.Seed{}, "replay this seed with a trace") }

// spoken returns a seed of a world in which clients speak.
func spoken(number uint64) sim.Seed { return sim.Seed{Classes: sim.Spoken, Number: number} }

// One processor, as in quorum/sim: the scheduler shall not choose.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}

// open is the front end of a process.
func open(in sim.Inside) sim.Front {
	return resp.New(resp.Config{
		TTLMax: in.TTLMax, Databases: in.Databases, Limits: resp.Limits{Write: in.Write}, Pause: in.Pause, Logger: in.Logger,
	}, in.Engine, script.NewCache(64), in.Hub)
}

// play runs one plan in a bubble of its own, which also finds goroutines that do not end.
func play(t *testing.T, p sim.Plan, trace func(string)) sim.Report {
	t.Helper()
	var r sim.Report
	synctest.Test(t, func(*testing.T) { r = sim.Run(p, open, trace) })
	return r
}

// expectNothing runs a seed and fails for each finding.
func expectNothing(t *testing.T, seed sim.Seed) sim.Counts {
	t.Helper()
	r := play(t, sim.NewPlan(seed), nil)
	for _, f := range r.Findings {
		t.Errorf("make sim SEED=%v: %v", seed, f)
	}
	return r.Counts
}

// TestReplay prints all that happens in one seed.
func TestReplay(t *testing.T) {
	if !seedFlag.In(sim.Spoken) {
		t.Skip("no -seed, or one of quorum/sim")
	}
	p := sim.NewPlan(seedFlag)
	fmt.Printf("%+v\n", p)
	r := play(t, p, func(line string) { fmt.Println(line) })
	fmt.Printf("%+v\nfaults: %v\n", r.Counts, r.Faults)
	for _, f := range r.Findings {
		t.Error(f)
	}
}

func TestFixedSeeds(t *testing.T) {
	sum := sim.Counts{}
	for i := range *fixedFlag {
		sum.Add(expectNothing(t, spoken(i+1)))
		sum.Add(expectNothing(t, spoken(i+1).OfKind(17*i+5)))
		queued := sim.Seed{Classes: sim.Spoken | sim.Queued, Number: i + 1}
		sum.Add(expectNothing(t, queued))
		sum.Add(expectNothing(t, queued.OfKind(17*i+5)))
	}
	t.Logf("%+v", sum)
	if sum.HandedOver == 0 {
		t.Error("no lock was handed over")
	}
	if sum.Granted*40 < sum.Attempts {
		t.Errorf("only %d of %d attempts were granted: the worlds are too broken to show anything", sum.Granted, sum.Attempts)
	}
}

// TestRegressions replays the seeds that ever failed.
func TestRegressions(t *testing.T) {
	for _, seed := range []sim.Seed{
		{Classes: sim.Fenced | sim.Mixed | sim.Several | sim.Moved | sim.Crowded | sim.Spoken, Number: 15558447190589265392}, // a reader of another proxy, with a shorter ttl_max, was told that it did not hold its lock, which most masters could not look at
		{Classes: sim.Voted | sim.Moved | sim.Crowded | sim.Spoken, Number: 3674937295934324845},                             // a reader's extension counted on masters where its own hold was over: a writer got the lock when the other readers had left
		{Classes: sim.Fenced | sim.Mixed | sim.Several | sim.Moved | sim.Crowded | sim.Spoken, Number: 15558447190609265407}, // a hold of a reader that was given back stayed: what was left of the lock's TTL, by another proxy's grace, was above ttl_max
		{Classes: sim.Several | sim.Spoken, Number: 1507337806320921545},                                                     // clocks drifted after WATCH, and EXEC said that a key which nobody had touched was another
		{Classes: sim.Crowded | sim.Spoken, Number: 1291393430322158138},                                                     // so it said where a master had run an extension late, and was slower than others to answer EXEC
	} {
		expectNothing(t, seed)
	}
}

func TestFreshSeeds(t *testing.T) {
	first := uint64(time.Now().UnixNano())
	n, sum, began := uint64(0), sim.Counts{}, time.Now()
	for ; time.Since(began) < *freshFlag; n++ {
		sum.Add(expectNothing(t, spoken(first+n).OfKind(n)))
	}
	t.Logf("%d seeds from %d in %v: %+v", n, first, time.Since(began).Round(time.Second), sum)
}

// TestHunt runs seeds until one fails, and says which: for make mutants.
func TestHunt(t *testing.T) {
	if *huntFlag == 0 {
		t.Skip("no -hunt")
	}
	of, err := sim.ParseClasses(*classes)
	if err != nil {
		t.Fatal(err)
	}
	for n := range *huntFlag {
		seed := sim.Seed{Classes: of, Number: *firstFlag + n}
		fmt.Println("seed", seed)
		if r := play(t, sim.NewPlan(seed), nil); len(r.Findings) > 0 {
			fmt.Println("found", r.Findings[0].Rule)
			return
		}
	}
}
