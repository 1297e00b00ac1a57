package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A report collects the figures that the ratios need.
type report struct {
	figures  []figure
	commands [][]string
	idleKB   float64
	reads    []readsFigure
	trips    []time.Duration // through the relays of each of farTrips
	sizes    []size
	sketch   sketchCost
	part     string // whose rows are measured now
}

// A figure is one row of the table.
type figure struct {
	part, what        string // what: set, pairs, hot, write, read …
	subject           string
	clients, pipeline int
	result            // the median of rounds
	rounds            []result
}

func (f figure) rate() float64 { return f.perSecond }

// rows measures and prints one row for each subject.
func (r *report) rows(w io.Writer, s settings, what string, clients, pipeline int, subjects []subject) error {
	results, err := compare(s, clients, pipeline, subjects)
	if err != nil {
		return err
	}
	for i, rounds := range results {
		res := median(rounds)
		r.figures = append(r.figures, figure{r.part, what, subjects[i].name, clients, pipeline, res, rounds})
		shape := fmt.Sprintf("%d clients", clients)
		if pipeline > 1 {
			shape += fmt.Sprintf(", -P %d", pipeline)
		}
		_, _ = fmt.Fprintf(w, "  %-5s  %-18s %-36s %9.0f/s   p50 %8s   p99 %8s%s\n",
			what, shape, subjects[i].name, res.perSecond, ms(res.p50), ms(res.p99), res.notes())
	}
	return nil
}

// notes tells what only some parts measure.
func (r result) notes() string {
	text := ""
	if r.lost > 0.01 {
		text += fmt.Sprintf("   (%.1f %% were not set!)", 100*r.lost)
	}
	if r.handP50 > 0 {
		text += fmt.Sprintf("   hand-over p50 %8s   p99 %8s", ms(r.handP50), ms(r.handP99))
	}
	if r.most > 0 {
		text += fmt.Sprintf("   clients have %.2f to %.2f of the mean", r.fewest, r.most)
	}
	if r.spent.master != (cpu{}) {
		text += fmt.Sprintf("   µs: proxy %5.1f + %4.1f   a master %5.1f + %4.1f   client %5.1f + %4.1f",
			r.spent.proxy.user, r.spent.proxy.system, r.spent.master.user, r.spent.master.system, r.spent.client.user, r.spent.client.system)
	}
	return text
}

func ms(d time.Duration) string { return fmt.Sprintf("%.3fms", float64(d)/float64(time.Millisecond)) }

func (r *report) printMachine(w io.Writer, s settings) {
	_, _ = fmt.Fprintf(w, "%s\n%d rounds of about %v for each figure; medians\n", machine(), s.rounds, s.duration)
}

// printCommands prints how to repeat the rows of redis-benchmark by hand.
func (r *report) printCommands(w io.Writer) {
	if len(r.commands) == 0 {
		return
	}
	_, _ = fmt.Fprintf(w, "\nThe commands (-n is chosen so that a round takes the duration):\n")
	for _, words := range r.commands {
		line := strings.NewReplacer(" -n 0 ", " -n N ").Replace(strings.Join(words, " "))
		_, _ = fmt.Fprintf(w, "  redis-benchmark %s\n", line)
	}
}

// A target is a ratio or a size to reach.
type target struct {
	what   string
	want   float64
	atMost bool
	unit   string
	got    func() (reached, bool)
}

// A reached is what a target came to: the median, and the rounds' lowest and highest if it was measured in rounds.
type reached struct {
	value    float64
	min, max float64
}

// printRatios prints each target with what was reached. A target whose figures were not measured is left out.
func (r *report) printRatios(w io.Writer, s settings) {
	n := slices.Max(s.sizes)
	proxy, redsync := fmt.Sprintf("lockproxy, %d masters", n), fmt.Sprintf("redsync, %d masters", n)
	well, paused := proxy+", all well", proxy+", one paused"
	p50 := func(f figure) float64 { return float64(f.p50) }
	p99 := func(f figure) float64 { return float64(f.p99) }
	targets := []target{
		{"SET, 50 clients: lockproxy to redsync", 4, false, "", r.ratio(figure.rate, key{"set", proxy, 50, 1}, key{"set", redsync, 50, 1})},
		{"SET, 50 clients: lockproxy to bare Redis", 0.4, false, "", r.ratio(figure.rate, key{"set", proxy, 50, 1}, key{"set", straight, 50, 1})},
		{"lock and unlock, 50 clients: lockproxy to redsync", 4, false, "", r.ratio(figure.rate, key{"pairs", proxy, 50, 1}, key{"pairs", redsync, 50, 1})},
		{"SET, 1 client: p50 of lockproxy to p50 of redsync", 1, true, "", r.ratio(p50, key{"set", proxy, 1, 1}, key{"set", redsync, 1, 1})},
		{"SET, 50 clients with -P 16: lockproxy to redsync without", 9, false, "", r.ratio(figure.rate, key{"set", proxy, 50, 16}, key{"set", redsync, 50, 1})},
		{"SET, one master paused: throughput to that with all well", 0.85, false, "", r.ratio(figure.rate, key{"set", paused, 50, 1}, key{"set", well, 50, 1})},
		{"SET, one master paused: p99 to that with all well", 2, true, "", r.ratio(p99, key{"set", paused, 50, 1}, key{"set", well, 50, 1})},
		{"lock and unlock, one master paused: throughput", 0.85, false, "", r.ratio(figure.rate, key{"pairs", paused, 50, 1}, key{"pairs", well, 50, 1})},
		{"lock and unlock, one master paused: p99", 2, true, "", r.ratio(p99, key{"pairs", paused, 50, 1}, key{"pairs", well, 50, 1})},
		{"one of 10,000 idle connections", 25, true, " KB", func() (reached, bool) { return reached{value: r.idleKB}, r.idleKB > 0 }},
	}
	targets = slices.Concat(targets, r.readsTargets(), r.upstreamTargets(), r.farTargets(), r.costTargets(n), r.watchedTargets(n))
	_, _ = fmt.Fprintf(w, "\nTargets, %d masters\n", n)
	for _, t := range targets {
		t.print(w)
	}
}

// upstreamTargets are those of what is passed through. Where all share the processors, a program that only copies bytes is what can be reached.
func (r *report) upstreamTargets() []target {
	ways := []struct {
		what, way, to string
		pipeline      int
		want          float64
	}{
		{"apart", through + string(apart), straight + string(apart), 1, 0.8},
		{"upstream", through, copied, 1, 0.9},
	}
	var targets []target
	for _, w := range ways {
		for _, command := range []string{"write one key", "write new keys", "read"} {
			targets = append(targets, target{fmt.Sprintf("%s, %s, 50 clients: to %s", w.what, command, w.to), w.want, false, "",
				r.ratio(figure.rate, key{command, w.way, 50, w.pipeline}, key{command, w.to, 50, w.pipeline})})
		}
	}
	return targets
}

func (t target) print(w io.Writer) {
	got, measured := t.got()
	if !measured {
		return
	}
	bound, met := "at least", got.value >= t.want
	if t.atMost {
		bound, met = "at most", got.value <= t.want
	}
	verdict := "met"
	if !met {
		verdict = "MISSED"
	}
	spread := ""
	if got.min < got.max {
		spread = fmt.Sprintf("%.2f to %.2f", got.min, got.max)
	}
	_, _ = fmt.Fprintf(w, "  %-70s %6.2f%-3s %-14s %-8s %5.2f  %s\n", t.what, got.value, t.unit, spread, bound, t.want, verdict)
}

// A key names a figure.
type key struct {
	what, subject     string
	clients, pipeline int
}

func (r *report) find(k key) (figure, bool) {
	for _, f := range r.figures {
		if f.what == k.what && f.subject == k.subject && f.clients == k.clients && f.pipeline == k.pipeline {
			return f, true
		}
	}
	return figure{}, false
}

// ratio compares two figures. If they were measured in the same rounds it is the median of the rounds' ratios: the
// machine may be faster in one round than in another, but that changes both.
func (r *report) ratio(of func(figure) float64, a, b key) func() (reached, bool) {
	return func() (reached, bool) {
		fa, okA := r.find(a)
		fb, okB := r.find(b)
		if !okA || !okB || of(fb) == 0 {
			return reached{}, false
		}
		if a.what != b.what || a.clients != b.clients || a.pipeline != b.pipeline {
			return reached{value: of(fa) / of(fb)}, true
		}
		ratios := make([]float64, len(fa.rounds))
		for i := range ratios {
			ratios[i] = of(figure{result: fa.rounds[i]}) / of(figure{result: fb.rounds[i]})
		}
		return reached{middle(ratios), slices.Min(ratios), slices.Max(ratios)}, true
	}
}
