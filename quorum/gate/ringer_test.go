package gate

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lockproxy/quorum"
)

var start = time.Unix(1, 0)

func TestAQuorumOfBellsIsHeededAtOnceAndFewerAfterAWhile(t *testing.T) {
	for _, c := range []struct {
		bells string // masters; t: a try that gets the lock; f: one that does not; m: its end, where t did not either
		want  string
	}{
		{"", "never"}, {"0", "later"}, {"01", "now"}, {"00", "later"}, {"012", "now"},
		{"01t", "never"}, {"01t2", "never"}, {"01t22", "later"}, {"01t20", "later"}, {"01t210", "now"}, {"01t0", "later"}, {"012t0", "later"}, {"012t01", "now"},
		{"01t2m", "later"}, {"01t20m", "now"}, {"01f", "never"}, {"01f2", "later"}, {"01f20", "now"},
		{"0t", "never"}, {"0t1", "later"}, {"0t12", "now"}, {"0f12", "now"},
	} {
		var r ringer
		for _, b := range c.bells {
			switch b {
			case 't':
				r.heed(2)
			case 'f':
				r.heed(2)
				r.missed(start)
			case 'm':
				r.missed(start)
			default:
				r.ring(int(b-'0'), start)
			}
		}
		at, rang := r.at(2)
		got := "never"
		switch {
		case rang && at.Equal(start):
			got = "now"
		case rang && at.Equal(start.Add(ringWait)):
			got = "later"
		}
		if got != c.want {
			t.Errorf("%q: got %s, want %s", c.bells, got, c.want)
		}
	}
}

// A lock is released again and again, each time on a quorum of masters; they release in the order of the releases, but
// some are late, and some miss one. Bells come in order from each master. Whatever the interleaving, when all is done
// and the resource is free, the waiter has it.
func TestNoReleaseIsMissed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 3, 5}).Draw(t, "masters")
		q := quorum.Quorum(n)
		var r ringer
		now := start
		works := make([][]int, n) // by master: releases still to be run
		bells := make([]int, n)   // by master: bells on their way
		freed := map[int]int{}    // by release: how many masters have run it
		release, trying := 0, 0   // trying: which release the try under way came after; 0: none under way
		held := true              // by somebody else
		goOn := func() {          // somebody holds the lock, and releases it on a quorum
			release++
			held = true
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
			at, rang := r.at(q)
			switch {
			case trying > 0:
				events = append(events, "result")
			case rang && !at.After(now):
				events = append(events, "try")
			case rang:
				events = append(events, "time")
			}
			if len(events) == 0 {
				t.Fatalf("release %d of %d masters: the waiter sleeps on", release, freed[release])
			}
			e := rapid.SampledFrom(events).Draw(t, "event")
			m := int(e[len(e)-1] - '0')
			switch e[:3] {
			case "wor":
				freed[works[m][0]]++
				works[m] = works[m][1:]
				bells[m]++
			case "bel":
				bells[m]--
				r.ring(m, now)
			case "tim":
				now = at
			case "try":
				r.heed(q)
				trying = 1
				held = freed[release] < q // what the try finds
			case "res":
				trying = 0
				if held {
					r.missed(now)
					break
				}
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
