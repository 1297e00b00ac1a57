package chaos

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"lockproxy/integration/harness"
)

var (
	duration = flag.Duration("duration", 0, "go on with faults for so long; 0: each of them once")
	control  = flag.Bool("control", false, "run the faults against redsync, too, and say what it loses")
	ttl      = flag.Duration("ttl", time.Second, "TTL of the workers' locks")
)

// proxyBinary is the lockproxy under test, built once.
var proxyBinary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if harness.HaveRedis() != nil {
		return m.Run() // every test that needs it says so itself, in deploy
	}
	dir, err := os.MkdirTemp("", "lockproxy-chaos-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		proxyBinary, err = harness.BuildProxy(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// A blow is a fault that befalls a number of masters or proxies, together or one after another.
type blow struct {
	fault
	victims  int
	together bool
}

func (b blow) String() string {
	switch {
	case b.proxy:
		return fmt.Sprintf("%s, %d of %d", b.name, b.victims, proxiesMax)
	case b.together:
		return fmt.Sprintf("%s, %d masters together", b.name, b.victims)
	}
	return fmt.Sprintf("%s, %d masters in turn", b.name, b.victims)
}

// pick returns the numbers of those that it befalls.
func (b blow) pick(d *deployment) []int {
	if b.proxy {
		return rand.Perm(len(d.proxies))[:b.victims]
	}
	return rand.Perm(len(d.masters))[:b.victims]
}

// apply does everything from prepare to heal, and returns when the last one has healed.
func (b blow) apply(d *deployment, victims []int) error {
	if b.prepare != nil {
		if err := each(victims, func(i int) error { return b.prepare(d, i) }); err != nil {
			return err
		}
		time.Sleep(lasting / 4) // for something to happen that is forgotten then
	}
	var after [mastersMax]time.Duration
	for n, i := range victims {
		if !b.together && n > 0 {
			after[i] = after[victims[n-1]] + between(0, 100*time.Millisecond)
		}
	}
	return each(victims, func(i int) error {
		time.Sleep(after[i])
		if err := b.hit(d, i); err != nil || b.heal == nil {
			return err
		}
		time.Sleep(b.lasts)
		return b.heal(d, i)
	})
}

// blows returns each fault once for a majority, as that is what can lose locks, and all masters restarted at once. A long
// run adds each fault for a minority, which is not to cost service.
func blows(long bool) []blow {
	var all []blow
	for _, f := range faults {
		switch {
		case f.proxy && long:
			all = append(all, blow{f, 1, true}, blow{f, proxiesMax, true})
		case f.proxy:
			all = append(all, blow{f, 1, true})
		case long:
			all = append(all, blow{f, 2, false}, blow{f, 3, false}, blow{f, 3, true})
		default:
			all = append(all, blow{f, 3, rand.IntN(2) == 0})
		}
	}
	all = append(all, blow{restartedEmpty, mastersMax, true})
	if long {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return all
}

// A finding is what one blow did.
type finding struct {
	blow
	tally
	causes   map[string]int // what probes saw instead of locks
	gone     []time.Duration
	strength time.Duration // from the blow to full strength
	errs     []error
}

// strike lets workers work, hits, waits for full strength, and lets them work on for a while.
func strike(t *testing.T, d *deployment, b blow, name string, clients func() []client) finding {
	t.Helper()
	f := finding{blow: b}
	if err := harness.Poll(readyMax, d.atFullStrength); err != nil {
		t.Fatalf("before: %v", err)
	}
	c, err := startCrew(t.TempDir(), name, *ttl, clients())
	if err != nil {
		t.Fatal(err)
	}
	s := watch(name, d.proxies)
	more := func(n int, what string) {
		before := c.now().locks
		f.errs = append(f.errs, harness.Poll(readyMax, func() error {
			if got := c.now().locks - before; got < n {
				return fmt.Errorf("%s, %d of %d locks", what, got, n)
			}
			return nil
		}))
	}
	more(6, "before")
	began := time.Now()
	victims := b.pick(d)
	f.errs = append(f.errs, b.apply(d, victims))
	f.errs = append(f.errs, harness.Poll(readyMax, d.atFullStrength))
	f.strength = time.Since(began)
	more(6, "after")
	f.causes, f.gone = s.finish()
	if b.tidy != nil {
		f.errs = append(f.errs, each(victims, func(i int) error { return b.tidy(d, i) }))
	}
	var causes map[string]int
	f.tally, causes, err = c.finish()
	f.errs = append(f.errs, err)
	f.errs = append(f.errs, c.history.check(time.Minute)...)
	t.Logf("%+v, unknown: %v", f.tally, causes)
	return f
}

func TestNoFaultCostsAnUpdate(t *testing.T) {
	t.Parallel() // it waits more than it works, as the others do
	d := deploy(t, proxiesMax, proxyFlags(*ttl)...)
	var found []finding
	goesOn := *duration > 0
	end := time.Now().Add(*duration)
	over := func() bool { return goesOn && time.Now().After(end) }
	for round := 0; round == 0 || goesOn && !over(); round++ {
		all := blows(goesOn)
		for n, b := range all {
			if over() {
				t.Logf("the time is over: %d of %d faults in round %d", n, len(all), round+1)
				break
			}
			t.Run(b.String(), func(t *testing.T) {
				f := strike(t, d, b, fmt.Sprintf("%d-%d", round, n), d.clients)
				found = append(found, f)
				demandNoLoss(t, f)
			})
		}
	}
	t.Log("\n" + table(found))
}

func demandNoLoss(t *testing.T, f finding) {
	t.Helper()
	wrong := f.errs
	if f.lost > 0 {
		wrong = append(wrong, fmt.Errorf("%d updates were lost", f.lost))
	}
	if err := errors.Join(wrong...); err != nil {
		t.Error(err)
	}
}

// The control: what the same faults cost the workers of a library that does without lockproxy.
func TestWhatFaultsCostRedsync(t *testing.T) {
	if !*control {
		t.Skip("only with -control; what redsync loses for certain is in forget_test.go")
	}
	d := deploy(t, 1, proxyFlags(*ttl)...)
	var found []finding
	wrong := 0
	for n, b := range blows(false) {
		if b.proxy {
			continue
		}
		t.Run(b.String(), func(t *testing.T) {
			f := strike(t, d, b, fmt.Sprintf("redsync-%d", n), d.directClients)
			found = append(found, f)
			if err := errors.Join(f.errs...); err != nil {
				wrong++
				t.Log(err)
			}
		})
	}
	t.Logf("%d of %d faults left a history that no lock can have\n%s", wrong, len(found), table(found))
}

// table sums up what was found by blow.
func table(found []finding) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "fault\tincrements\tlost\toverran\tabandoned\tdropped\tservice gone for\tall masters again after\tclients saw")
	var all tally
	for _, f := range found {
		all.add(f.sums)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%v\t%s\n", f.blow, f.increments, f.lost, f.overran, f.abandoned, f.dropped,
			round(f.gone), f.strength.Round(10*time.Millisecond), list(f.causes))
	}
	fmt.Fprintf(w, "%d faults\t%d\t%d\t%d\n", len(found), all.increments, all.lost, all.overran)
	_ = w.Flush()
	return text.String()
}

func round(all []time.Duration) string {
	var parts []string
	for _, d := range all {
		parts = append(parts, d.Round(10*time.Millisecond).String())
	}
	return strings.Join(parts, ", ")
}
