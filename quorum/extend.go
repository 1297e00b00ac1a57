package quorum

import (
	"math"
	"time"

	"lockproxy/quorum/rules"
	"lockproxy/quorum/vouch"
)

// An extendRound is one extension: each master that has the lock sets its TTL.
type extendRound struct {
	round
	req  ExtendRequest
	lock Lock // once the extension is won
	done func(Extended)
}

// ask makes the round.
func (x *extendRound) ask(e *Engine) {
	x.keeps = e.cfg.kept(x.req.TTL)
	//mutant: the horizon is not extended for an extension
	begin(e, x, x.req.Key, x.args())
}

// args returns the command.
func (x *extendRound) args() []any {
	name, ms := x.req.Key.Name, x.keeps.Milliseconds()
	if x.req.Fenced {
		return luaExtendFenced.whole([]string{name, recordPrefix + name}, x.req.Token, ms)
	}
	return x.runs(luaExtend, []string{name}, x.req.Token, ms)
}

func (x *extendRound) signature() signature {
	return signature{name: x.req.Key.Name, token: x.req.Token}
}

func (x *extendRound) read(en *entry) ballot { return prolonged(en, x.signature()) }

// prolonged reads the reply of a script that compares before it extends.
func prolonged(en *entry, sig signature) ballot {
	at, ok := en.Reply.(int64)
	if sum, added := en.Reply.([]any); added && len(sum) == 3 {
		//mutant: a release of a lock that was added to is not made late
		at, ok = sum[1].(int64)
	}
	if at <= sooner {
		at = -at
	}
	if en.Err != nil || !ok || at < didIt {
		return comparison(en)
	}
	if at > -sooner { // when the key expires, if the master tells
		//mutant: a release of an extended lock is not made late
		en.lane.ledger.granted(sig.hash(), en.round.place.Load(), at)
	}
	//mutant: an older copy of a lock is extended
	return grantedIfClean // an older copy may have a lock that is over, and another's since
}

func (x *extendRound) decide(t rules.Tally) rules.Decision {
	//mutant: an extension is decided as an acquire
	return rules.DecideExtend(t)
}

func (x *extendRound) ended(d rules.Decision) {
	switch {
	case d == rules.Won:
		x.won(x.req.TTL)
	case d == rules.Unanswered:
		x.done(Extended{Err: x.failure()})
	case x.wrongType():
		x.done(Extended{Err: ErrWrongType})
	default:
		x.done(Extended{Absent: x.absent()})
	}
}

// won tells that a quorum keeps the lock for a TTL, from start. A client that gives the lock up is told of success, and promised
// nothing. A client whose sum of the added and the remaining TTL is less than TTLMin asked for more, and is too late.
func (x *extendRound) won(ttl time.Duration) {
	e := x.engine
	if !x.req.Add && x.givesUp(ttl) {
		e.stats.extended.Add(1)
		x.done(Extended{Held: true})
		return
	}
	//mutant: T1 of an extension read after the round
	until := x.start + rules.Validity(ttl, 0, e.cfg.DriftFactor)
	if e.catchUp() >= until {
		e.stats.expired.Add(1)
		x.done(Extended{Err: ErrLate})
		return
	}
	e.stats.extended.Add(1)
	//mutant: no master is given what it lacks
	x.fill()
	x.lock = Lock{engine: e, taken: x, until: until}
	x.done(Extended{Held: true, Until: e.timeAt(until), Lock: &x.lock})
}

// givesUp is as edited.givesUp has it. The TTL that was left is the longest on any master. A client that is to be told the validity
// does not give the lock up by a TTL that can leave validity.
func (x *extendRound) givesUp(ttl time.Duration) bool {
	isSooner := func(en *entry) bool {
		n, ok := en.Reply.(int64)
		return ok && n <= sooner
	}
	//mutant: an extension by little is not promised
	return ttl < rules.TTLMin(x.engine.cfg.DriftFactor) ||
		!x.req.Fenced && ttl <= x.engine.cfg.InstanceTimeout && x.number(rules.Granted, isSooner) > 0
}

func (x *extendRound) settled(en *entry) {
	en.releaseOwed(x.signature())
	x.fillLate(en)
}

func (x *extendRound) lacking(en *entry) []*gap {
	//mutant: a master where another has a vote for a moment is not given what it lacks
	if en.Reply != int64(absent) && en.Reply != int64(other) { // somebody else may have a vote there for a moment only
		return nil
	}
	return []*gap{{key: x.req.Key, value: x.req.Token, others: x.granting()}}
}

// undo does nothing: the lock is the client's, and some masters may keep it for longer than the client knows.
func (x *extendRound) undo(func()) {}

func (x *extendRound) appendKeys(to []Key) []Key { return append(to, x.req.Key) }

// An addRound is an extension in which each master adds to its own TTL. The client counts on the sum of all extensions that the
// client was told of; but a master may have missed an extension. Every quorum has a master that made the extension. So if the masters
// that granted an addition do not keep the lock until the same moment, a second round makes all of them keep the lock until the
// latest. The moments are compared by our clock, through the knowledge of the masters' clocks: the time at which the command reached
// each master does not matter.
type addRound struct {
	extendRound
	until instant // in the second round: until when all are to keep the lock, by our clock; 0 in the first
}

// ask makes the round; compose makes the command of each master.
func (a *addRound) ask(e *Engine) {
	a.lasting = true
	begin(e, a, a.req.Key, nil)
}

// compose makes a command that extends the horizon itself. The promise is the TTL that masters tell, whatever their clocks show.
func (a *addRound) compose(en *entry, _ int64) {
	c := &a.engine.cfg
	more, until := rules.CeilMillis(a.req.TTL+rules.Drift(a.req.TTL, c.DriftFactor)-rules.ClockFloor).Milliseconds(), int64(0)
	if a.until != 0 {
		// Other keys are kept longer by amounts that differ between masters, and this round is to end the differences.
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

// kept returns the least time, from start, for which a master that granted keeps the lock, and when these masters drop the lock, from
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
