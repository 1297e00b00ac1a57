package group

import (
	"fmt"
	"testing"
	"time"

	"lockproxy/quorum"
)

func named(name string) quorum.Key { return quorum.Key{Name: name} }

// counted returns the counts as text: of each group the refusals, the waits by outcome, and the holds with their sum.
func counted(g *Groups) map[string]string {
	all := map[string]string{}
	for _, c := range g.Counts() {
		all[c.Label] = fmt.Sprintf("%d refused, waits %d %d %d, holds %d of %s", c.Refused,
			c.Waited[Granted].Count, c.Waited[Refused].Count, c.Waited[Failed].Count, c.Held.Count, c.Held.Sum)
	}
	return all
}

func TestTheFirstPatternThatMatchesCounts(t *testing.T) {
	g := New([]Rule{{"a:b:*", "deep"}, {"a:*", "flat"}, {"x?", "deep"}})
	for name, times := range map[string]int{"a:b:1": 1, "a:1": 2, "xy": 4, "x": 8, "": 16} {
		for range times {
			g.Refuse(named(name))
		}
	}
	for label, want := range map[string]uint64{"deep": 1 + 4, "flat": 2, Other: 8 + 16} {
		for _, c := range g.Counts() {
			if c.Label == label && c.Refused != want {
				t.Errorf("%s: %d, want %d", label, c.Refused, want)
			}
		}
	}
	if n := len(g.Counts()); n != 3 {
		t.Errorf("%d groups", n)
	}
}

func TestWaitsAreCountedByTheirEnd(t *testing.T) {
	g := New([]Rule{{"*", "all"}})
	g.Wait(named("k"), Granted, time.Second)
	g.Wait(named("k"), Granted, time.Second)
	g.Wait(named("k"), Refused, time.Second)
	if got := counted(g)["all"]; got != "0 refused, waits 2 1 0, holds 0 of 0s" {
		t.Error(got)
	}
	if got := g.Counts()[0].Waited[Granted].Sum; got != 2*time.Second {
		t.Error(got)
	}
}

func TestAHoldIsCountedWhereBothEndsAreSeen(t *testing.T) {
	const none = "holds 0 of 0s"
	for _, c := range []struct {
		name         string
		granted, end string // tokens; - for no grant
		again        string // a second end, by this token
		want         string
	}{
		{"by its holder", "me", "me", "-", "holds 1 of 3s"},
		{"once", "me", "me", "me", "holds 1 of 3s"},
		{"by a command that names no token", "me", "", "-", "holds 1 of 3s"},
		{"of a grant without a token", "", "me", "-", "holds 1 of 3s"},
		{"by another token: the grant was of an earlier lock", "me", "you", "-", none},
		{"by another token, and then its own", "me", "you", "me", "holds 1 of 3s"},
		{"without a grant", "-", "me", "-", none},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := New([]Rule{{"k", "k"}})
			now := g.epoch.Add(24 * 60 * time.Hour) // the time in ms has more than 32 bits
			if c.granted != "-" {
				g.Grant(named("k"), c.granted, now)
			}
			g.End(quorum.Key{Name: "k", DB: 1}, "", now)
			g.End(named("kk"), "", now)
			for _, by := range []string{c.end, c.again} {
				if by != "-" {
					g.End(named("k"), by, now.Add(3*time.Second))
				}
			}
			if got := counted(g)["k"]; got != "0 refused, waits 0 0 0, "+c.want {
				t.Error(got)
			}
			if got := counted(g)[Other]; got != "0 refused, waits 0 0 0, holds 0 of 0s" {
				t.Error("of others: " + got)
			}
		})
	}
}

// A key in the place of another makes a hold go uncounted, and no hold is counted to another key.
func TestAFullTableCountsFewerHolds(t *testing.T) {
	g, now := New([]Rule{{"*", "all"}}), time.Now()
	const locks = 4 * grantsMax
	for i := range locks {
		g.Grant(named(fmt.Sprint(i)), "me", now)
	}
	for i := range locks {
		g.End(named(fmt.Sprint(i)), "me", now)
	}
	if n := g.Counts()[0].Held.Count; n < grantsMax*9/10 || n > grantsMax {
		t.Errorf("of %d holds %d are counted", locks, n)
	}
}

func TestWithoutRulesNothingIsCounted(t *testing.T) {
	g := New(nil)
	g.Refuse(named("k"))
	g.Wait(named("k"), Granted, 1)
	g.Grant(named("k"), "me", time.Now())
	g.End(named("k"), "me", time.Now())
	if g != nil || g.Counts() != nil {
		t.Error("there are groups")
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	g, key, now := New([]Rule{{"a:*", "a"}, {"job:*", "job"}}), named("job:7"), time.Now()
	if n := testing.AllocsPerRun(100, func() {
		g.Wait(key, Granted, time.Second)
		g.Grant(key, "me", now)
		g.End(key, "me", now)
		g.Refuse(key)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkALock is what a lock that is granted, refused to another client, and given back costs, behind patterns that do not match.
func BenchmarkALock(b *testing.B) {
	for _, patterns := range []int{1, 32} {
		b.Run(fmt.Sprint(patterns), func(b *testing.B) {
			var rules []Rule
			for i := range patterns - 1 {
				rules = append(rules, Rule{fmt.Sprint("lock:group", i, ":*"), fmt.Sprint(i)})
			}
			g, key, now := New(append(rules, Rule{"lock:*", "lock"})), named("lock:123456789012"), time.Now()
			b.ReportAllocs()
			for b.Loop() {
				g.Grant(key, "0123456789abcdef0123456789abcdef", now)
				g.Refuse(key)
				g.End(key, "0123456789abcdef0123456789abcdef", now)
			}
		})
	}
}

// The end of a hold is told by another goroutine than the next grant, and may be told late.
func TestAnEndBeforeTheGrantIsAnEarlierLocks(t *testing.T) {
	g := New([]Rule{{"*", "all"}})
	end := time.Now()
	g.Grant(named("k"), "same", end.Add(2*time.Millisecond))
	g.End(named("k"), "same", end)
	if got := g.Counts()[0].Held.Count; got != 0 {
		t.Errorf("%d holds are counted", got)
	}
	g.End(named("k"), "same", end.Add(30*24*time.Hour))
	if got := g.Counts()[0].Held.Count; got != 1 {
		t.Errorf("%d holds are counted", got)
	}
}
