package vouch

import (
	"testing"
	"time"
)

// Whatever a quorum granted with the vote of the quarantined master, those who are enough to end its quarantine early
// include one that granted, too, and the wait is as long as the horizon there. Every set of masters that testify is met
// with every quorum.
func TestAQuarantineOutlastsEveryLock(t *testing.T) {
	const now, longest, rate = time.Hour, 20 * time.Hour, 0.01
	for n := 1; n <= 7; n++ {
		quorum := n/2 + 1
		each(n-1, 3, func(others []int) { // 0 silent, 1 in quarantine, 2 clean
			clean := 0
			for _, o := range others {
				clean += o / 2
			}
			for granted := range 1 << (n - 1) { // the other masters that granted: their horizons are 3 h, of the rest 1 s
				if bits(granted) < quorum-1 {
					continue
				}
				q := NewQuarantine("", now-time.Minute, longest, rate)
				var said []Report
				for i, o := range others {
					horizon := time.Second
					if granted>>i&1 == 1 {
						horizon = 3 * time.Hour
					}
					if o > 0 {
						said = append(said, Report{Horizon: horizon, Clean: o == 2})
					}
				}
				enough := q.Hear(said, n, now, rate)
				switch {
				case enough != (clean >= n-quorum+1), enough != q.Known:
					t.Fatalf("N=%d, %v: enough: %v", n, others, enough)
				case !enough && q.Until < now-time.Minute+longest:
					t.Fatalf("N=%d, %v: until %v without testimony", n, others, q.Until)
				case quorum > 1 && enough && q.Until < now+3*time.Hour:
					t.Fatalf("N=%d, %v, granted by %b: until %v", n, others, granted, q.Until)
				}
			}
		})
	}
}

func bits(x int) int {
	n := 0
	for ; x > 0; x &= x - 1 {
		n++
	}
	return n
}

// Whatever fence a quorum has kept with the quarantined master, those who are enough include one that knows it. Every set of
// masters that testify is met with every quorum.
func TestAMasterIsSeededWithTheLargestFenceItCanHaveForgotten(t *testing.T) {
	for n := 1; n <= 7; n++ {
		quorum := n/2 + 1
		each(n-1, 4, func(others []int) { // 0 silent, 1 in quarantine, 2 clean, and may have missed fences, 3 clean, and has missed none
			known := 0
			for _, o := range others {
				known += o / 3
			}
			for kept := range 1 << (n - 1) { // the other masters that kept fence 9
				if bits(kept) < quorum-1 {
					continue
				}
				var said []Report
				for i, o := range others {
					if o > 0 {
						fence := map[int]int64{1: 20, 2: 0, 3: 5 + 4*int64(kept>>i&1)}[o] // one in quarantine may tell of another's
						said = append(said, Report{Clean: o > 1, Fence: fence})
					}
				}
				switch fence := Fence(said, n); {
				case known < n-quorum+1 && fence != 0, known >= n-quorum+1 && quorum > 1 && fence != 9:
					t.Fatalf("N=%d, %v, kept by %b: fence %d", n, others, kept, fence)
				}
			}
		})
	}
}

func TestAQuarantineIsNotMadeLongerByTestimony(t *testing.T) {
	q := NewQuarantine("", 0, time.Minute, 0.01)
	before := q.Until
	if !q.Hear([]Report{{Horizon: time.Hour, Clean: true}, {Horizon: time.Second, Clean: true}}, 3, time.Second, 0.01) || q.Until != before {
		t.Errorf("until %v, want %v", q.Until, before)
	}
}

// A slow clock of ours, and a fast one of the master's, must not end it early.
func TestAQuarantineAllowsForDrift(t *testing.T) {
	const rate = 0.01
	for _, d := range []time.Duration{0, time.Millisecond, time.Second, time.Hour, 1000 * time.Hour} {
		ours := stretch(d, rate)
		if theirs := time.Duration(float64(ours) / (1 + rate)); theirs < d {
			t.Errorf("%v: %v by our clock may be only %v by another's", d, ours, theirs)
		}
	}
}
