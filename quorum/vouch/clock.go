package vouch

import (
	"math"
	"time"
)

// A Clock follows a master's clock from the answers to TIME. The master reads its clock between our sending and receiving, so
// each answer bounds the offset of that clock from ours. A clock that keeps its rate moves that offset by no more than rate ×
// time. An answer that no such clock can have given shows a step. Small steps are what setting a clock right looks like: they
// are tolerated up to Tolerance in each direction, which grows back at Rate. More is a jump.
//
// So over any time, what a clock may have moved forwards without being noticed is twice Rate × time, which is the drift
// that locks allow for, plus Tolerance, plus the widths of the first observation and the last. Steps backwards do not make up for
// steps forwards: a key that expired by a step forwards does not come back.
type Clock struct {
	Rate      float64 // the drift factor
	Tolerance time.Duration
	Patience  time.Duration // a look that takes longer tells nothing of the floor

	known         bool
	at            time.Duration // of the latest answer, on our clock
	offset        Span          // what the offset was in then
	counted       Span          // what the offset less all steps was in then, each step counted as small as it can have been
	ahead, behind time.Duration // of Tolerance: steps that were counted, forwards and backwards
	reach         time.Duration // see Reach
	floor         floor         // see Ahead
	uneven        time.Duration // see Uneven

	before *Clock        // what was known before it jumped, until Acquit or Convict; nil if it did not
	jump   time.Duration // by how much at least, in the observation that showed it
}

// A Span is where an offset is, or a change of one: Lo to Hi.
type Span struct{ Lo, Hi time.Duration }

func (s Span) widen(d time.Duration) Span { return Span{s.Lo - d, s.Hi + d} }

func (s Span) move(d time.Duration) Span { return Span{s.Lo + d, s.Hi + d} }

// meet returns what is in both, with Lo above Hi if nothing is.
func (s Span) meet(t Span) Span { return Span{max(s.Lo, t.Lo), min(s.Hi, t.Hi)} }

// step returns what is in both, or the end of t that the smallest step reaches.
func (s Span) step(t Span) Span {
	switch {
	case t.Lo > s.Hi:
		return Span{t.Lo, t.Lo}
	case t.Hi < s.Lo:
		return Span{t.Hi, t.Hi}
	}
	return s.meet(t)
}

// Observe takes what the master's clock showed at two moments, one after the other, between sent and received on ours. It
// returns by how much that clock jumped at least: positive is forwards, 0 is not at all. After a jump forwards it begins
// anew; what was known before is kept until it is known whose jump it was.
func (c *Clock) Observe(sent, received, first, last time.Duration) (jump time.Duration) {
	was := *c
	// If the clock was set back in between, what it showed first says nothing of its offset now.
	lo, hi := last-received, min(first, last)-sent+c.apart(received-sent)
	most := hi
	if lo > hi { // it jumped in between
		most = last - sent + c.apart(received-sent)
	}
	jump = c.see(received, hi, Span{lo, most})
	c.reach = max(first, last) - sent - c.offset.Lo
	c.uneven = max(most-c.offset.Hi, c.uneven/4*3)
	c.lookAt(received, Span{lo, most}, jump)
	if jump != 0 && c.before == nil {
		before := was // only here it must outlive the call
		c.before, c.jump = &before, jump
	}
	return jump
}

// see takes where the offset is at a moment of ours. Before that, during the same observation, it was hi at most.
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

// lookAt has the floor take what was seen at a moment of ours.
func (c *Clock) lookAt(at time.Duration, seen Span, jump time.Duration) {
	if jump != 0 {
		c.floor.jump(jump)
	}
	c.floor.see(at, look{seen.Lo, max(seen.Hi-seen.Lo, 0)}, c.Rate, 2*c.Tolerance, c.Patience)
}

// Jumped returns how far the clock is from what was known of it before the jump that awaits judgement; false if no jump does.
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
	if c.jump > 0 { // at least what the observation showed, unless the clock has come back since
		by.Lo = max(by.Lo, min(c.jump, by.Hi))
	} else {
		by.Hi = min(by.Hi, max(c.jump, by.Lo))
	}
	return by, true
}

// Restrict lets the clock be followed more strictly from now on, if that is stricter. Of the steps that were tolerated so far
// it counts no more than make up the tolerance.
func (c *Clock) Restrict(rate float64, tolerance time.Duration) {
	c.Rate, c.Tolerance = min(c.Rate, rate), min(c.Tolerance, tolerance)
	c.ahead, c.behind = min(c.ahead, c.Tolerance), min(c.behind, c.Tolerance)
	if c.before != nil {
		c.before.Restrict(rate, tolerance)
	}
}

// Convict ends the inquiry into a jump: it was this clock's.
func (c *Clock) Convict() { c.before = nil }

// Acquit ends the inquiry into a jump: our clock stood still for by, and has been put forwards by put since. What the master's
// clock has jumped besides, or jumps before it is observed again, is its own. Acquit returns that jump, as Observe does.
func (c *Clock) Acquit(by, put time.Duration) (jump time.Duration) {
	//mutant: a standstill makes clocks unknown
	is, was := *c, c.before
	if was == nil { // it has not been observed since
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

// Reach returns how far the clock can have stepped forwards in the latest observation without being noticed: an answer
// that took long to come back says little of the clock at its end.
func (c *Clock) Reach() time.Duration { return c.reach }

// Ahead returns by how much the clock was ahead, when it showed shown or at the look before, of what it would show now if it had not
// stepped while a lock lives: what was gone then was gone too early by no more than that. It says false if nothing is known of that yet.
func (c *Clock) Ahead(shown, now time.Duration) (time.Duration, bool) {
	return max(shown-c.floor.low, c.floor.due) - now, c.floor.known
}

// Uneven returns by how much longer the latest questions were on their way than the fastest: as far as anybody can tell, the clock may
// have stepped forwards by so much.
func (c *Clock) Uneven() time.Duration { return c.uneven }

// IsVague says that the latest observations leave more open than d, besides what they leave open as a rule.
func (c *Clock) IsVague(d time.Duration) bool { return c.Width() > c.floor.usual+d }

// Width returns how exactly the offset is known.
func (c *Clock) Width() time.Duration { return c.offset.Hi - c.offset.Lo }

// Offset returns the master's clock less ours, to within half of Width.
func (c *Clock) Offset() time.Duration { return c.offset.Lo + c.Width()/2 }

// Latest returns what the clock shows at most when ours shows now.
func (c *Clock) Latest(now time.Duration) time.Duration {
	return now + c.offset.Hi + c.apart(max(now-c.at, 0))
}

// Earliest returns what the clock shows at least.
func (c *Clock) Earliest(now time.Duration) time.Duration {
	return now + c.offset.Lo - c.apart(max(now-c.at, 0))
}

// Known says whether anything was observed.
func (c *Clock) Known() bool { return c.known }

// Standstill says whether the jumps that N masters' clocks seem to have made are one jump of this process: it stood still, as
// on a suspended machine, and every other clock moved on. They are if a quorum, and more than one, seem to have jumped by the
// same amount, give or take slack and what they drift meanwhile at that rate, and no master contradicts. A master that did
// not seem to jump has a span around 0: so far it may have moved with the others. Standstill returns the amount, the least
// that it can be, so that it hides nothing of what a clock has moved forwards besides. sure is false while fewer than a quorum
// have been heard, and these agree: then nobody can tell yet.
//
// A master with a nil jump has not been heard since, or not clearly.
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
