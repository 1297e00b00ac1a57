package vouch

import "time"

// A Clock follows a master's clock from the answers to TIME. They were read at some moments between sending and
// receiving, so they bound the offset of that clock from ours; a clock that keeps its rate moves that offset by no more
// than rate × time. What no such clock can have answered is a step. Small steps are what setting a clock right looks
// like: they are tolerated up to Tolerance, which grows back at Rate. More is a jump.
//
// So over any time, what a clock may have moved without being noticed is twice Rate × time, which is the drift that locks
// allow for, and Tolerance, and the Widths of the first observation and the last.
type Clock struct {
	Rate      float64 // half of the drift factor
	Tolerance time.Duration

	known  bool
	at     time.Duration // of the latest answer, on our clock
	lo, hi time.Duration // the offset was between these then, if the clock did not step
	spent  time.Duration // of Tolerance
}

// Observe takes what the master's clock showed at two moments, one after the other, between sent and received on ours. It
// returns by how much that clock jumped at least: positive is forwards, 0 is not at all. After a jump it begins anew.
func (c *Clock) Observe(sent, received, first, last time.Duration) (jump time.Duration) {
	lo, hi := last-received, first-sent+c.apart(received-sent)
	step := time.Duration(0)
	if lo > hi { // between the two
		step = lo - hi
		hi = lo
	}
	if c.known {
		passed := c.apart(max(received-c.at, 0))
		c.spent = max(c.spent-passed, 0)
		early, late := c.lo-passed, c.hi+passed
		switch {
		case lo > late:
			step += lo - late
		case hi < early:
			step += hi - early
		default:
			lo, hi = max(lo, early), max(min(hi, late), max(lo, early))
		}
	}
	c.known, c.at, c.lo, c.hi = true, received, lo, hi
	c.spent += max(step, -step)
	if c.spent <= c.Tolerance {
		return 0
	}
	c.spent = 0
	return step
}

// apart returns how far the clocks may come apart in a time.
func (c *Clock) apart(d time.Duration) time.Duration { return time.Duration(c.Rate * float64(d)) }

// Width returns how exactly the offset is known.
func (c *Clock) Width() time.Duration { return c.hi - c.lo }

// Offset returns the master's clock less ours, to within half of Width.
func (c *Clock) Offset() time.Duration { return c.lo + (c.hi-c.lo)/2 }

// Known says whether anything was observed.
func (c *Clock) Known() bool { return c.known }

// Standstill says whether jumps of N masters' clocks, each seen from this process, are one jump of its own: it stood still,
// as a suspended machine does, and every clock moved on meanwhile. They are if a quorum, and more than one, seem to have
// jumped by the same amount, but for slack, and no master says otherwise. It returns the amount.
//
// A master with a nil jump has not been heard since.
func Standstill(jumps []*time.Duration, slack time.Duration) (time.Duration, bool) {
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
	return least, same && heard > 1 && heard > len(jumps)/2
}
