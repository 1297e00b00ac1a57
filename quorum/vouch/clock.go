package vouch

import (
	"math"
	"time"
)

// A Clock follows a master's clock from the answers to TIME. The master reads its clock between our sending and
// receiving, so each answer bounds the offset of the master's clock from ours. A clock that keeps its rate moves the
// offset by no more than rate × time. An answer beyond that shows a step. Small steps are normal when a clock is set
// right. They are tolerated up to Tolerance in each direction, which grows back at Rate. A larger step is a jump.
//
// So over any time, a clock may have moved forwards unnoticed by at most twice Rate × time, which is the drift that
// locks allow for, plus Tolerance, plus the widths of the first observation and the last. Steps backwards do not make
// up for steps forwards: a key that expired by a step forwards does not come back.
type Clock struct {
	Rate      float64 // the drift factor
	Tolerance time.Duration
	Patience  time.Duration // a look that takes longer does not change the floor

	known         bool
	at            time.Duration // of the latest answer, on our clock
	offset        Span          // where the offset was in the latest answer
	counted       Span          // where the offset less all steps was, each step counted as small as possible
	ahead, behind time.Duration // the used part of Tolerance: counted steps, forwards and backwards
	reach         time.Duration // see Reach
	floor         floor         // see Ahead
	uneven        time.Duration // see Uneven

	before *Clock        // the state before the jump, until Clear or Confirm; nil if there is no jump
	jump   time.Duration // by how much at least, by the observation that showed the jump
}

// A Span is the range of an offset, or of a change of an offset: Lo to Hi.
type Span struct{ Lo, Hi time.Duration }

func (s Span) widen(d time.Duration) Span { return Span{s.Lo - d, s.Hi + d} }

func (s Span) move(d time.Duration) Span { return Span{s.Lo + d, s.Hi + d} }

// meet returns the intersection, with Lo above Hi if there is none.
func (s Span) meet(t Span) Span { return Span{max(s.Lo, t.Lo), min(s.Hi, t.Hi)} }

// step returns the intersection, or the end of t that the smallest step reaches.
func (s Span) step(t Span) Span {
	switch {
	case t.Lo > s.Hi:
		return Span{t.Lo, t.Lo}
	case t.Hi < s.Lo:
		return Span{t.Hi, t.Hi}
	}
	return s.meet(t)
}

// Observe takes two readings of the master's clock, first and last, both between sent and received on our clock.
// Observe returns by how much the master's clock jumped at least: positive is forwards, 0 is not at all. After a jump
// forwards the Clock begins anew, and keeps its former state until Clear or Confirm.
func (c *Clock) Observe(sent, received, first, last time.Duration) (jump time.Duration) {
	was := *c
	// If the clock was set back in between, the first reading says nothing of the offset now.
	lo, hi := last-received, min(first, last)-sent+c.apart(received-sent)
	most := hi
	if lo > hi { // the clock jumped in between
		most = last - sent + c.apart(received-sent)
	}
	jump = c.see(received, hi, Span{lo, most})
	c.reach = max(first, last) - sent - c.offset.Lo
	c.uneven = max(most-c.offset.Hi, c.uneven/4*3)
	c.lookAt(received, Span{lo, most}, jump)
	if jump != 0 && c.before == nil {
		before := was // a copy, because only here the state must outlive the call
		c.before, c.jump = &before, jump
	}
	return jump
}

// see takes the range of the offset at a moment of our clock. Earlier in the same observation, the offset was at most
// hi.
func (c *Clock) see(at, hi time.Duration, seen Span) (jump time.Duration) {
	if !c.known {
		c.known, c.at, c.offset, c.counted = true, at, Span{seen.Lo, hi}, Span{min(seen.Lo, hi), hi}
	}
	passed := c.apart(max(at-c.at, c.at-at))
	c.at = max(c.at, at)
	was := c.counted.widen(passed)
	forwards, backwards := max(seen.Lo-min(hi, was.Hi), 0), max(was.Lo-hi, 0)
	c.ahead, c.behind = max(c.ahead-passed, 0)+forwards, max(c.behind-passed, 0)+backwards

	c.counted = was.step(seen)
	if c.offset = c.offset.widen(passed).meet(seen); c.offset.Lo > c.offset.Hi {
		c.offset = seen
	}
	switch {
	//mutant: any step forwards of a clock is tolerated
	case c.ahead > c.Tolerance:
		c.ahead, c.behind, c.offset, c.counted = 0, 0, seen, seen
		return forwards
	case c.behind > c.Tolerance:
		c.behind = 0
		return -backwards
	}
	return 0
}

// lookAt gives the floor the range seen at a moment of our clock.
func (c *Clock) lookAt(at time.Duration, seen Span, jump time.Duration) {
	if jump != 0 {
		c.floor.jump(jump)
	}
	c.floor.see(at, look{seen.Lo, max(seen.Hi-seen.Lo, 0)}, c.Rate, 2*c.Tolerance, c.Patience)
}

// Jumped returns how far the clock is from its state before the jump that awaits judgement; false if no jump does.
func (c *Clock) Jumped() (by Span, ok bool) {
	if c.before == nil {
		return Span{}, false
	}
	const most = math.MaxInt64 / 2
	by = Span{-most, most}
	if c.before.known {
		was := c.before.counted.widen(c.apart(c.at - c.before.at))
		by = Span{c.offset.Lo - was.Hi, c.offset.Hi - was.Lo}
	}
	if c.jump > 0 { // at least the observed jump, unless the clock has come back since
		by.Lo = max(by.Lo, min(c.jump, by.Hi))
	} else {
		by.Hi = min(by.Hi, max(c.jump, by.Lo))
	}
	return by, true
}

// Restrict follows the clock more strictly from now on, where rate or tolerance is stricter. Of the steps tolerated so
// far, no more than the new tolerance counts as used.
func (c *Clock) Restrict(rate float64, tolerance time.Duration) {
	c.Rate, c.Tolerance = min(c.Rate, rate), min(c.Tolerance, tolerance)
	c.ahead, c.behind = min(c.ahead, c.Tolerance), min(c.behind, c.Tolerance)
	if c.before != nil {
		c.before.Restrict(rate, tolerance)
	}
}

// Confirm ends the inquiry into a jump: the master's clock jumped.
func (c *Clock) Confirm() { c.before = nil }

// Clear ends the inquiry into a jump: our clock stood still for by, and has been put forwards by put since. The rest
// of the master's jump, and jumps before the next observation, are the master's own. Clear returns the rest, as
// Observe does.
func (c *Clock) Clear(by, put time.Duration) (jump time.Duration) {
	//mutant: a standstill makes clocks unknown
	is, was := *c, c.before
	if was == nil { // the clock has not been observed since
		was = &is
	}
	*c = *was
	drift := c.apart(max(by, 0)) // while we stood still
	c.at, c.offset, c.counted = c.at+put, c.offset.widen(drift).move(by-put), c.counted.widen(drift).move(by-put)
	c.floor.move(by-put, put)
	if is.before != nil {
		seen := is.offset.move(-put)
		jump = c.see(is.at+put, seen.Hi, seen)
		c.reach = is.reach
		c.lookAt(is.at+put, seen, jump)
	}
	return jump
}

// apart returns how far the clocks may come apart in a time.
func (c *Clock) apart(d time.Duration) time.Duration { return time.Duration(c.Rate * float64(d)) }

// Reach returns how far the clock can have stepped forwards unnoticed in the latest observation. An answer that took
// long to come back says little of the clock at its end.
func (c *Clock) Reach() time.Duration { return c.reach }

// Ahead returns by how much too early, at most, a key may have been dropped that was gone when the clock showed shown, or at the look
// before. Ahead compares with the floor: the least by which the clock was ahead of ours while a lock may live. Ahead says nothing of a
// clock that is not met.
func (c *Clock) Ahead(shown, now time.Duration) time.Duration {
	return max(shown-c.floor.low, c.floor.due) - now
}

// IsMet says that the floor is known: an answer was quick enough to tell.
func (c *Clock) IsMet() bool { return c.floor.known }

// Uneven returns by how much longer the latest questions were on their way than the fastest. As far as anybody can
// tell, the clock may have stepped forwards by so much.
func (c *Clock) Uneven() time.Duration { return c.uneven }

// IsVague says that the latest observations are wider by more than d than observations are as a rule.
func (c *Clock) IsVague(d time.Duration) bool { return c.Width() > c.floor.usual+d }

// Width returns how exactly the offset is known.
func (c *Clock) Width() time.Duration { return c.offset.Hi - c.offset.Lo }

// Offset returns the master's clock less ours, to within half of Width.
func (c *Clock) Offset() time.Duration { return c.offset.Lo + c.Width()/2 }

// Latest returns the latest time that the clock may show when ours shows now.
func (c *Clock) Latest(now time.Duration) time.Duration {
	return now + c.offset.Hi + c.apart(max(now-c.at, 0))
}

// Earliest returns the earliest time that the clock may show when ours shows now.
func (c *Clock) Earliest(now time.Duration) time.Duration {
	return now + c.offset.Lo - c.apart(max(now-c.at, 0))
}

// Known says whether anything was observed.
func (c *Clock) Known() bool { return c.known }

// Standstill says whether the seeming jumps of N masters' clocks are one jump of this process: the process stood still,
// as on a suspended machine, and every other clock moved on. Three conditions must hold. A quorum of masters, and more
// than one, seem to have jumped. They jumped by the same amount, to within slack and the drift at rate meanwhile. No
// master contradicts. A master without a seeming jump has a span around 0: its clock may have moved with the others by
// so much.
//
// Standstill returns the least possible amount, so that no other forward step of a clock is hidden. sure is false while
// fewer than a quorum have been heard, and these agree: then nobody can tell yet.
//
// A nil jump means that the master has not been heard since, or not clearly.
func Standstill(jumps []*Span, rate float64, slack time.Duration) (by time.Duration, own, sure bool) {
	heard, forwards, backwards := 0, 0, 0
	all := Span{math.MinInt64, math.MaxInt64}
	for _, j := range jumps {
		if j == nil {
			continue
		}
		heard++
		switch {
		case j.Lo > 0:
			forwards++
		case j.Hi < 0:
			backwards++
		}
		all = all.meet(*j)
	}
	if heard == 0 {
		return 0, false, false
	}
	by = min(all.Lo, all.Hi)
	slack += time.Duration(2 * rate * float64(max(by, 0)))
	same := (forwards == 0) != (backwards == 0) && all.Lo-all.Hi <= slack
	jumped, quorum := forwards+backwards, len(jumps)/2+1
	return by, same && jumped >= quorum && jumped > 1, !same || heard >= quorum
}
