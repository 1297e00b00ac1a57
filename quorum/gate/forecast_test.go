package gate

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lockproxy/quorum/rules"
)

var start = time.Unix(1, 0)

const all = ^uint64(0)

func TestAQuorumOfBellsIsHeededAtOnceAndFewerAfterAWhile(t *testing.T) {
	for _, c := range []struct {
		bells string // masters; t: a try begins; w: it gets the lock; l: it does not, but is granted by master 2; .: 5 ms pass; >: it is 5 ms before w's lock expires
		want  string
	}{
		{"tw", "never"}, {"tw0", "later"}, {"tw01", "now"}, {"tw00", "later"}, {"tw012", "now"},
		{"tw01tw", "never"}, {"tw01tw2", "never"}, {"tw01tw22", "later"}, {"tw01tw20", "later"}, {"tw01tw210", "now"},
		{"tw01tw0", "later"}, {"tw012tw0", "later"}, {"tw012tw01", "now"}, {"tw01t2w", "never"}, {"tw01t20w", "later"},
		{"tw0tw", "never"}, {"tw0tw1", "later"}, {"tw0tw12", "now"},
		{"tl0tw1", "never"}, {"tl0tw12", "later"}, {"tl0tw120", "now"},
		{"tw0.0", "later"}, {"tw>0", "never"},
	} {
		var f forecast
		now := start
		for _, b := range c.bells {
			switch b {
			case '.':
				now = now.Add(5 * time.Millisecond)
			case '>':
				now = start.Add(time.Minute - 5*time.Millisecond)
			case 't':
				f.heed(2)
			case 'w':
				f.won(start.Add(time.Minute))
			case 'l':
				f.lost(start, []time.Duration{1, 1, 0}, all, 0, 0, 3)
			default:
				f.ring(int(b-'0'), now)
			}
		}
		if got := whenOf(f.at(2)); got != c.want {
			t.Errorf("%q: got %s, want %s", c.bells, got, c.want)
		}
	}
}

func whenOf(at time.Time) string {
	switch at.Sub(start) {
	case 0:
		return "now"
	case ringWait:
		return "later"
	case time.Minute:
		return "never"
	}
	return at.String()
}

// g: granted, and undone; 1, 2 and 3: refused, for so many seconds; x: refused, for 3 seconds, and not heard; f: told nothing.
func TestAfterARefusalItIsTriedWhenAQuorumIsFree(t *testing.T) {
	const soon, retry = 10 * time.Millisecond, 20 * time.Millisecond
	for _, c := range []struct {
		votes, before, during, after string // masters that rang before the try, during it, and later
		want                         time.Duration
	}{
		{"123", "", "", "", 2000}, {"321", "01", "", "", 2000}, {"333", "", "", "", 3000}, {"33f", "", "", "", 3000},
		{"3ff", "", "", "", 20}, {"fff", "", "", "", 20}, {"", "", "", "", 20}, {"3fg", "", "", "", 20}, {"3fg", "", "", "1", 20},
		{"33g", "", "", "", 3000}, {"33g", "", "", "2", 3000}, {"33g", "", "2", "22", 3000}, {"33g", "", "", "1", 10},
		{"33g", "", "1", "", 10}, {"33g", "", "", "01", 0}, {"33f", "", "", "2", 3000}, {"33f", "", "", "0", 20},
		{"131", "", "", "", 1000}, {"133", "", "", "", 3000}, {"133", "", "", "1", 1000}, {"133", "", "1", "", 1000},
		{"133", "01", "2", "", 1000}, {"133", "01", "1", "2", 0}, {"133", "", "", "01", 0},
		{"333gg", "", "", "34", 3000}, {"333g3", "", "", "", 3000}, {"333g3", "", "", "4", 3000}, {"333g3", "", "", "40", 10},
		{"122g3", "", "", "", 2000}, {"33x", "", "", "", 3000}, {"33x", "", "", "2", 3000}, {"33x", "", "", "0", 20},
		{"3gx", "", "", "", 20}, {"11x", "", "", "", 1000}, {"333xx", "", "", "1", 20}, {"3333x", "", "", "1", 3000},
	} {
		var told []time.Duration
		heard := all
		for m, v := range c.votes {
			told = append(told, map[rune]time.Duration{'g': 0, 'f': -1, '1': 1, '2': 2, '3': 3, 'x': 3}[v]*time.Second)
			if v == 'x' {
				heard &^= 1 << m
			}
		}
		n := max(len(told), 3)
		q := rules.Quorum(n)
		var f forecast
		ring := func(masters string) {
			for _, m := range masters {
				f.ring(int(m-'0'), start)
			}
		}
		ring(c.before)
		f.heed(q)
		ring(c.during)
		f.lost(start, told, heard, soon, retry, n)
		ring(c.after)
		if got := max(f.at(q).Sub(start), 0); got != c.want*time.Millisecond {
			t.Errorf("%+v: after %v", c, got)
		}
	}
}

// A lock is released again and again, each time on a quorum of masters; they release in the order of the releases, but
// some are late, and some miss one. Bells come in order from each master. Whatever the interleaving, when all is done
// and the resource is free, the waiter has it.
func TestNoReleaseIsMissed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 3, 5}).Draw(t, "masters")
		q := rules.Quorum(n)
		var f forecast
		f.heed(q)
		f.won(start.Add(ttl))
		now := start
		works := make([][]int, n) // by master: releases still to be run
		bells := make([]int, n)   // by master: bells on their way
		has := make([]bool, n)    // by master: the lock
		told := make([]time.Duration, n)
		release, trying := 0, 0 // trying: which release the try under way came after; 0: none under way
		held := true            // by somebody else
		goOn := func() {        // somebody holds the lock, and releases it on a quorum
			release++
			held = true
			for m := range has {
				has[m] = true
			}
			order := rapid.Permutation(numbers(n)).Draw(t, "masters of the release")
			for _, m := range order[:rapid.IntRange(q, n).Draw(t, "how many")] {
				works[m] = append(works[m], release)
			}
		}
		goOn()
		for turns := rapid.IntRange(1, 5).Draw(t, "releases"); turns > 0; {
			var events []string
			for m := range n {
				if len(works[m]) > 0 {
					events = append(events, fmt.Sprint("work", m))
				}
				if bells[m] > 0 {
					events = append(events, fmt.Sprint("bell", m))
				}
			}
			at := f.at(q)
			switch {
			case trying > 0:
				events = append(events, "result")
			case !at.After(now):
				events = append(events, "try")
			case at.Before(start.Add(ttl)):
				events = append(events, "time")
			}
			if len(events) == 0 {
				t.Fatalf("release %d, %v: the waiter sleeps on", release, has)
			}
			e := rapid.SampledFrom(events).Draw(t, "event")
			m := int(e[len(e)-1] - '0')
			switch e[:3] {
			case "wor":
				has[m] = has[m] && works[m][0] != release
				works[m] = works[m][1:]
				bells[m]++
			case "bel":
				bells[m]--
				f.ring(m, now)
			case "tim":
				now = at
			case "try":
				f.heed(q)
				trying = 1
				free := 0 // what the try finds
				for m := range has {
					if told[m] = ttl; !has[m] {
						told[m], free = 0, free+1
					}
				}
				held = free < q
			case "res":
				trying = 0
				if held {
					f.lost(now, told, all, 0, 0, n)
					break
				}
				f.won(start.Add(ttl))
				if turns--; turns > 0 {
					goOn()
				}
			}
		}
	})
}

func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
