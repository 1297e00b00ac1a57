package vouch

import (
	"testing"
	"time"
)

// Every combination of what up to five masters may seem to have done, against a count of all pairs.
func TestStandstill(t *testing.T) {
	const slack = 50 * time.Millisecond
	moves := []*time.Duration{nil}
	for _, d := range []time.Duration{0, time.Hour, time.Hour + slack, time.Hour + slack + 1, -time.Hour} {
		moves = append(moves, &d)
	}
	for n := 1; n <= 5; n++ {
		each(n, len(moves), func(pick []int) {
			jumps := make([]*time.Duration, n)
			for i, p := range pick {
				jumps[i] = moves[p]
			}
			heard, alike, least := 0, true, time.Duration(0)
			for _, a := range jumps {
				if a == nil {
					continue
				}
				heard++
				alike = alike && *a != 0
				if heard == 1 || *a < least {
					least = *a
				}
				for _, b := range jumps {
					alike = alike && (b == nil || max(*a-*b, *b-*a) <= slack)
				}
			}
			quorum := n/2 + 1
			wantOwn := alike && heard >= quorum && heard >= 2
			wantSure := heard >= quorum || heard > 0 && !alike || heard == 0
			by, own, sure := Standstill(jumps, slack)
			if own != wantOwn || sure != wantSure || own && by != least {
				t.Errorf("%v of %d: %v %v %v, want %v %v %v", pick, n, by, own, sure, least, wantOwn, wantSure)
			}
		})
	}
}

// each calls f with all ways to pick n times one of so many.
func each(n, many int, f func(pick []int)) {
	pick := make([]int, n)
	for {
		f(pick)
		i := 0
		for ; i < n && pick[i] == many-1; i++ {
			pick[i] = 0
		}
		if i == n {
			return
		}
		pick[i]++
	}
}
