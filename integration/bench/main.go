// Command bench compares, in one run on one machine, lockproxy, a bare Redis, redsync and other peers: throughput, latencies, processor
// time and memory.
//
// Every row is measured in several short rounds, and within a round all subjects take their turn, so that whatever
// else the machine does hits all alike; the figures, and the ratios, are medians over the rounds. What a row left on
// the masters is removed before the next. Nothing is asserted: the ratios at the end say what was aimed at and what was
// reached.
//
//	go run ./integration/bench [-rounds 5] [-duration 1s] [-only set,pairs,…] [-masters 3,5] [-json FILE] [-charts DIR]
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockproxy/integration/harness"
)

// Settings of a run.
type settings struct {
	rounds   int
	duration time.Duration
	only     []string
	sizes    []int  // numbers of masters
	json     string // file; "" for none
	charts   string // directory; "" for none
}

func main() {
	var s settings
	only := flag.String("only", strings.Join(partNames(), ","), "which parts to run")
	sizes := flag.String("masters", "3,5", "numbers of masters")
	flag.IntVar(&s.rounds, "rounds", 5, "rounds per row; the figures are medians")
	flag.DurationVar(&s.duration, "duration", time.Second, "about how long one subject runs in one round")
	flag.StringVar(&s.json, "json", "", "write all figures to this file")
	flag.StringVar(&s.charts, "charts", "", "write charts of the figures, as SVG, to this directory")
	flag.Parse()
	s.only = strings.Split(*only, ",")
	for _, name := range s.only {
		if !slices.Contains(partNames(), name) {
			fmt.Fprintf(os.Stderr, "bench: -only %s: want some of %s\n", name, strings.Join(partNames(), ","))
			os.Exit(2)
		}
	}
	for n := range strings.SplitSeq(*sizes, ",") {
		size, err := strconv.Atoi(n)
		if err != nil || size < 1 {
			fmt.Fprintf(os.Stderr, "bench: -masters %s: want numbers such as 3,5\n", *sizes)
			os.Exit(2)
		}
		s.sizes = append(s.sizes, size)
	}
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(s settings) error {
	for _, tool := range []string{"redis-server", "redis-benchmark"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w: install Redis, for example the packages redis-server and redis-tools", err)
		}
	}
	start := time.Now()
	f, err := startFleet(s.sizes)
	if err != nil {
		return err
	}
	defer f.stop()
	r := &report{}
	r.printMachine(os.Stdout, s)
	for _, part := range parts {
		if !slices.Contains(s.only, part.name) {
			continue
		}
		fmt.Printf("\n%s\n", part.title)
		r.part = part.name
		if err := part.run(f, s, r); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	r.printRatios(os.Stdout, s)
	r.printCommands(os.Stdout)
	fmt.Printf("\nTook %v.\n", time.Since(start).Round(time.Second))
	if s.json != "" {
		if err := r.writeJSON(s.json, s); err != nil {
			return err
		}
	}
	if s.charts != "" {
		return r.writeCharts(s.charts)
	}
	return nil
}

// A part is one section of the table.
type part struct {
	name, title string
	run         func(*fleet, settings, *report) error
}

var parts = []part{
	{"set", "SET key tok NX PX 30000, random keys", (*fleet).setPart},
	{"pairs", "lock and unlock: SET NX PX, then compare-and-delete; a latency is that of a pair", (*fleet).pairsPart},
	{"paused", "one of the masters paused (SIGSTOP), 50 clients", (*fleet).pausedPart},
	{"reads", "what others pay while one client reads or deletes many keys, or long ones", (*fleet).readsPart},
	{"upstream", "keys that are no locks: straight to a Redis, and to lockproxy with that upstream, all on the same processors", (*fleet).upstreamPart},
	{"idle", "idle connections", (*fleet).idlePart},
	{"far", "masters that are 1 and 5 ms away, behind relays that delay bytes; the proxy is near its clients", (*fleet).farPart},
	{"hot", "one key, for which all clients wait; a latency is that of a lock", (*fleet).hotPart},
	{"others", "other lock services, as they ship; 50 clients lock and unlock", (*fleet).othersPart},
	{"cost", "processor time of one lock, user + system", (*fleet).costPart},
	{"watched", "what watching costs: the hottest keys, the audit log, groups of locks; 50 clients", (*fleet).watchedPart},
	{"size", "memory of one thing", (*fleet).sizePart},
	// The last, as its processes stay where it puts them.
	{"apart", "keys that are no locks; the Redis and the load on one processor, the proxy on another", (*fleet).apartPart},
}

func partNames() []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

// A fleet is all that runs: one bare Redis, and groups of masters, each with its proxy.
type fleet struct {
	bin    string
	dir    string
	bare   *harness.Redis
	groups []*group
}

// A group is N masters, used by redsync directly and through the proxy.
type group struct {
	masters []*harness.Redis
	proxy   *harness.Proxy
}

func startFleet(sizes []int) (_ *fleet, err error) {
	f := &fleet{}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	if f.dir, err = os.MkdirTemp("", "lockproxy-bench-"); err != nil {
		return nil, err
	}
	if f.bin, err = harness.BuildProxy(f.dir); err != nil {
		return nil, err
	}
	if f.bare, err = harness.StartRedis(); err != nil {
		return nil, err
	}
	for _, n := range sizes {
		g := &group{}
		f.groups = append(f.groups, g)
		if g.masters, err = harness.StartRedises(n); err != nil {
			return nil, err
		}
		if g.proxy, err = harness.StartProxy(f.bin, harness.Addrs(g.masters)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *fleet) stop() {
	for _, g := range f.groups {
		if g.proxy != nil {
			if err := g.proxy.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, "bench: stop the proxy:", err)
			}
		}
		harness.StopAll(g.masters)
	}
	if f.bare != nil {
		f.bare.Stop()
	}
	_ = os.RemoveAll(f.dir)
}

// largest returns the group with the most masters, which the ratios are about.
func (f *fleet) largest() *group {
	return slices.MaxFunc(f.groups, func(a, b *group) int { return len(a.masters) - len(b.masters) })
}

func (g *group) name(subject string) string {
	return fmt.Sprintf("%s, %d masters", subject, len(g.masters))
}

// machine describes what the figures were measured on.
func machine() string {
	model := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d CPUs shared by everything, %s, %s", model, runtime.NumCPU(), runtime.GOOS, runtime.Version())
}
