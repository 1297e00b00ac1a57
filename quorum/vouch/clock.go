package vouch

import "time"

// A Clock follows a master's clock from the answers to TIME. They were read at some moments between sending and
// receiving, so they bound the offset of that clock from ours; a clock that keeps its rate moves that offset by no more
// than rate × time. What no such clock can have answered is a step. Small steps are what setting a clock right looks
// like: they are tolerated up to Tolerance in each direction, which grows back at Rate. More is a jump.
//
// So over any time, what a clock may have moved forwards without being noticed is twice Rate × time, which is the drift
// that locks allow for, and Tolerance, and the widths of the first observation and the last. Steps backwards make up for
// none of it: a key that a step forwards cost its life does not come back.
type Clock struct {
	Rate      float64 // the drift factor
	Tolerance time.Duration

	known         bool
	at            time.Duration // of the latest answer, on our clock
	offset        span          // the offset was in it then
	counted       span          // so was the offset less the steps that were counted, each as small as it can have been
	ahead, behind time.Duration // of Tolerance: steps that were counted, forwards and backwards
	reach         time.Duration // see Reach
}

// A span is where an offset is.
type span struct{ lo, hi time.Duration }

func (s span) widen(d time.Duration) span { return span{s.lo - d, s.hi + d} }

// meet returns what is in both, with lo above hi if nothing is.
func (s span) meet(t span) span { return span{max(s.lo, t.lo), min(s.hi, t.hi)} }

// step returns what is in both, or the end of t that the smallest step reaches.
func (s span) step(t span) span {
	switch {
	case t.lo > s.hi:
		return span{t.lo, t.lo}
	case t.hi < s.lo:
		return span{t.hi, t.hi}
	}
	return s.meet(t)
}

// Observe takes what the master's clock showed at two moments, one after the other, between sent and received on ours. It
// returns by how much that clock jumped at least: positive is forwards, 0 is not at all. After a jump forwards it begins
// anew.
func (c *Clock) Observe(sent, received, first, last time.Duration) (jump time.Duration) {
	// If it was set back between, what it showed first says nothing of it now.
	lo, hi := last-received, min(first, last)-sent+c.apart(received-sent)
	if !c.known {
		c.known, c.at, c.offset, c.counted = true, received, span{lo, hi}, span{min(lo, hi), hi}
	}
	passed := c.apart(max(received-c.at, c.at-received))
	c.at = max(c.at, received)
	was := c.counted.widen(passed)
	forwards, backwards := max(lo-min(hi, was.hi), 0), max(was.lo-hi, 0)
	c.ahead, c.behind = max(c.ahead-passed, 0)+forwards, max(c.behind-passed, 0)+backwards

	seen := span{lo, max(lo, hi)}
	c.counted = was.step(seen)
	if c.offset = c.offset.widen(passed).meet(seen); c.offset.lo > c.offset.hi {
		c.offset = seen
	}
	c.reach = max(first, last) - sent - c.offset.lo
	switch {
	case c.ahead > c.Tolerance:
		c.ahead, c.behind, c.offset, c.counted = 0, 0, seen, seen
		return forwards
	case c.behind > c.Tolerance:
		c.behind = 0
		return -backwards
	}
	return 0
}

// apart returns how far the clocks may come apart in a time.
func (c *Clock) apart(d time.Duration) time.Duration { return time.Duration(c.Rate * float64(d)) }

// Reach returns how far the clock can have stepped forwards in the latest observation without being noticed: an answer
// that took long to come back says little of the clock at its end.
func (c *Clock) Reach() time.Duration { return c.reach }

// Width returns how exactly the offset is known.
func (c *Clock) Width() time.Duration { return c.offset.hi - c.offset.lo }

// Offset returns the master's clock less ours, to within half of Width.
func (c *Clock) Offset() time.Duration { return c.offset.lo + c.Width()/2 }

// Latest returns what the clock shows at most when ours shows now.
func (c *Clock) Latest(now time.Duration) time.Duration {
	return now + c.offset.hi + c.apart(max(now-c.at, 0))
}

// Known says whether anything was observed.
func (c *Clock) Known() bool { return c.known }

// Standstill says whether jumps of N masters' clocks, each seen from this process, are one jump of its own: it stood still,
// as a suspended machine does, and every clock moved on meanwhile. They are if a quorum, and more than one, seem to have
// jumped by the same amount, but for slack, and no master says otherwise. It returns the amount, and whether it is sure:
// as long as fewer have been heard, and agree, nobody can tell.
//
// A master with a nil jump has not been heard since.
func Standstill(jumps []*time.Duration, slack time.Duration) (by time.Duration, own, sure bool) {
	least, most, heard := time.Duration(0), time.Duration(0), 0
	for _, j := range jumps {
		if j == nil {
			continue
		}
		if heard == 0 {
			least, most = *j, *j
		}
		least, most = min(least, *j), max(most, *j)
		heard++
	}
	same := most-least <= slack && (least > 0 || most < 0)
	enough := heard > len(jumps)/2
	return least, same && enough && heard > 1, !same || enough
}
