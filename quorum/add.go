package quorum

import (
	"math"
	"time"

	"lockproxy/quorum/rules"
	"lockproxy/quorum/vouch"
)

// An addRound is an extension in which each master adds to the TTL that it has. The client counts on the sum of all extensions
// that it was told of; but a master may have missed one of them. Every quorum has a master that made it. So if the masters that
// granted an addition do not keep the lock until the same moment, a second round makes all of them keep it until the latest.
// The moments are compared by our clock, from what is known of the masters' clocks: when the command reached each master does
// not matter.
type addRound struct {
	extendRound
	until instant // in the second round: until when all are to keep the lock, by our clock; 0 in the first
}

// ask makes the round; compose makes the command of each master.
func (a *addRound) ask(e *Engine) {
	a.lasting = true
	begin(e, a, a.req.Key, nil)
}

// compose makes a command that extends the horizon itself. What is promised is what masters say is left, whatever their clocks show.
func (a *addRound) compose(en *entry, _ int64) {
	c := &a.engine.cfg
	more, until := rules.CeilMillis(a.req.TTL+rules.Drift(a.req.TTL, c.DriftFactor)-rules.ClockFloor).Milliseconds(), int64(0)
	if a.until != 0 {
		// What other keys are kept for in addition would differ between masters, which is what this round is to end.
		more, until = 0, en.lane.clock.now+rules.CeilMillis(a.until-en.lane.clock.gathered).Milliseconds()
	}
	keys := []string{a.req.Key.Name, horizonKey}
	en.Args = luaAdd.whole(keys, a.req.Token, more, c.kept(c.TTLMax).Milliseconds(), until)
}

// read counts an addition beyond ttl_max as refused.
func (a *addRound) read(en *entry) ballot {
	if en.Err == nil && en.Reply == int64(tooLong) {
		return refused
	}
	return prolonged(en, a.signature())
}

func (a *addRound) ended(d rules.Decision) {
	switch {
	case d == rules.Won:
		least, ends := a.kept()
		//mutant: each master adds to what it has
		if a.until == 0 && ends.Hi-ends.Lo > a.engine.uncertainty() {
			(&addRound{extendRound: extendRound{req: a.req, done: a.done}, until: ends.Hi}).ask(a.engine)
			return
		}
		a.won(a.engine.cfg.shown(least))
	case d == rules.Lost && a.answers(tooLong) > 0 && !a.wrongType():
		a.done(Extended{Err: ErrTooLong})
	default:
		a.extendRound.ended(d)
	}
}

// kept returns the least time, from start, for which a master that granted keeps the lock, and when these masters drop it, from
// the first to the last, by our clock.
func (a *addRound) kept() (least time.Duration, ends vouch.Span) {
	now := a.engine.now()
	least, ends = a.engine.cfg.kept(a.engine.cfg.TTLMax), vouch.Span{Lo: math.MaxInt64, Hi: math.MinInt64}
	a.mu.Lock()
	defer a.mu.Unlock()
	for en := range a.who(rules.Granted) {
		if sum, ok := en.Reply.([]any); ok && len(sum) == 3 {
			left, _ := sum[0].(int64)
			at, _ := sum[2].(int64)
			//mutant: an addition compares TTLs, whenever each was told
			end := en.lane.master.watch.when(now, at)
			//mutant: an addition promises the longest TTL
			least = min(least, time.Duration(left)*time.Millisecond)
			ends = vouch.Span{Lo: min(ends.Lo, end.Lo), Hi: max(ends.Hi, end.Hi)}
		}
	}
	return least, ends
}
