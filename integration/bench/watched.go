package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"lockproxy/integration/harness"
	"lockproxy/quorum"
	"lockproxy/resp/hot"
)

// A sketchCost is the time of one call of hot.Sketch.Add with the clock read before, as a refused attempt makes the call.
type sketchCost struct {
	same  time.Duration // for one key again and again
	other time.Duration // for a further key each time: each takes another key's place
}

// sketchAdds is how many calls are timed.
const sketchAdds = 1_000_000

// watchedPart measures the price of watching locks. The hottest keys cannot be switched off, so their cost is timed alone, beside the
// processor time of the refused attempts that pay for them: a granted attempt pays nothing. The audit log and the groups of locks are
// measured on and off.
func (f *fleet) watchedPart(s settings, r *report) (err error) {
	g := f.largest()
	logged, err := harness.StartProxy(f.bin, harness.Addrs(g.masters), "--audit-log", filepath.Join(f.dir, "audit.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, logged.Stop()) }()
	grouped, err := harness.StartProxy(f.bin, harness.Addrs(g.masters), "--lock-groups", "*=all")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, grouped.Stop()) }()
	refused := redisBenchmark(g.proxy.Addr, []string{"SET", "hot", "tok", "NX", "PX", strconv.FormatInt(ttl.Milliseconds(), 10)})
	err = r.rows(os.Stdout, s, refusedWhat, 50, 1, []subject{
		{name: g.name("lockproxy"), masters: g.masters, run: account{g.proxy, g.masters}.charged(refused)},
	})
	if err != nil {
		return err
	}
	err = r.rows(os.Stdout, s, auditWhat, 50, 1, []subject{
		{name: g.name("lockproxy"), masters: g.masters, run: account{g.proxy, g.masters}.charged(pairs(g.proxy.Addr))},
		{name: g.name("lockproxy") + ", audit log", masters: g.masters, run: account{logged, g.masters}.charged(pairs(logged.Addr))},
		{name: g.name("lockproxy") + ", groups", masters: g.masters, run: account{grouped, g.masters}.charged(pairs(grouped.Addr))},
	})
	if err != nil {
		return err
	}
	r.sketch = sketchCost{
		same:  timeOfAdd(func(int) string { return "job:7" }),
		other: timeOfAdd(func(i int) string { return "job:" + strconv.Itoa(i) }),
	}
	fmt.Printf("  noting a refused attempt for the hottest keys: %v for one key, %v for ever other keys\n", r.sketch.same, r.sketch.other)
	return nil
}

// The rows of the part.
const (
	refusedWhat = "SET NX, refused"
	auditWhat   = "SET NX, release; audit"
)

// timeOfAdd returns the mean time of a call. The names are made before the clock runs.
func timeOfAdd(name func(i int) string) time.Duration {
	var sketch hot.Sketch
	keys := make([]quorum.Key, 1024)
	for i := range keys {
		keys[i].Name = name(i)
	}
	began := time.Now()
	for i := range sketchAdds {
		sketch.Add(keys[i%len(keys)], 1, time.Now())
	}
	return time.Since(began) / sketchAdds
}

// watchedTargets are those of the part: of the proxy's time for a refused attempt, the hottest keys take less than 2 %.
func (r *report) watchedTargets(masters int) []target {
	share := func(of time.Duration) func() (reached, bool) {
		return func() (reached, bool) {
			attempt, ok := r.find(key{refusedWhat, fmt.Sprintf("lockproxy, %d masters", masters), 50, 1})
			if !ok || attempt.spent.server() == 0 {
				return reached{}, false
			}
			return reached{value: 100 * micros(of) / attempt.spent.server()}, true
		}
	}
	return []target{
		{"a refused attempt: the hottest keys' part of the proxy's time, one key", 2, true, " %", share(r.sketch.same)},
		{"a refused attempt: the same, ever other keys", 2, true, " %", share(r.sketch.other)},
	}
}
