package quorum

import "time"

// Extend sets or adds to the remaining TTL of a lock that the token holds. It counts on a quorum within validity, and
// never makes a lock that is gone (rule 11). An extension that fails, or is heard too late, leaves
// its TTL on the masters that made it. A master that has nothing of the lock is given it afterwards; see fill.go.
func (e *Engine) Extend(req ExtendRequest, done func(Extended)) {
	x := &extension{req: req, done: done}
	x.lasting = true
	if !req.Add {
		x.keeps = e.cfg.kept(req.TTL)
		e.begin(&x.round, x, req.Key, x.args())
		return
	}
	e.add(x, ceilMillis(req.TTL+Drift(req.TTL, e.cfg.DriftFactor)-clockFloor), 0)
}

// add adds to what each master keeps of the lock, and makes it this least.
func (e *Engine) add(x *extension, more, least time.Duration) {
	keys := []string{x.req.Key.Name, horizonKey} // which the script extends itself
	most := e.cfg.kept(e.cfg.TTLMax)
	args := luaAdd.whole(keys, x.req.Token, more.Milliseconds(), most.Milliseconds(), least.Milliseconds())
	e.begin(&x.round, x, x.req.Key, args)
}

// even makes what masters keep after an addition the same, where they differ by more than the moments in which they were told: one
// had missed an extension, and its client counts on the sum with that. Whoever was told of it, one of any quorum has made it.
func (x *extension) even() bool {
	x.mu.Lock()
	least, most := x.keptFor()
	x.mu.Unlock()
	if x.evened || most-least <= x.engine.uncertainty() {
		return false
	}
	next := &extension{req: x.req, done: x.done, evened: true}
	next.lasting = true
	x.engine.add(next, 0, most)
	return true
}

// args returns the command.
func (x *extension) args() []any {
	name, ms := x.req.Key.Name, x.keeps.Milliseconds()
	if x.req.Fenced {
		return luaExtendFenced.whole([]string{name, recordPrefix + name}, x.req.Token, ms)
	}
	return x.runs(luaExtend, []string{name}, x.req.Token, ms)
}

type extension struct {
	round
	req  ExtendRequest
	lock Lock // if it is won
	done func(Extended)

	evened bool // it is the second round of an addition
}

// undo does nothing: what was extended is the client's, and may be longer on some masters than it knows.
func (x *extension) undo(func()) {}

func (x *extension) appendTaken(to []Taken) []Taken {
	return append(to, Taken{Key: x.req.Key, Token: x.req.Token})
}

func (x *extension) hold() hold { return hold{x.req.Key.Name, x.req.Token} }

// read counts an addition beyond ttl_max as refused.
func (x *extension) read(en *entry) (Vote, string) {
	if en.Err == nil && en.Reply == int64(tooLong) {
		return Refused, ""
	}
	return prolonged(en, x.hold())
}

// prolonged reads the reply of a script that compares before it extends.
func prolonged(en *entry, h hold) (Vote, string) {
	at, ok := en.Reply.(int64)
	if sum, added := en.Reply.([]any); added && len(sum) == 2 {
		at, ok = sum[1].(int64)
	}
	if en.Err != nil || !ok || at < didIt {
		return comparison(en)
	}
	if at > didIt { // the master tells
		en.lane.granted(h.hash(), en.round.place.Load(), at)
	}
	return Granted, ""
}

func (x *extension) decide(t Tally) Decision { return DecideExtend(t) }

func (x *extension) settled(en *entry) {
	en.releaseOwed(x.hold(), undoText)
	x.fillLate(en)
}

func (x *extension) lacking(en *entry) []*gap {
	if !en.blank {
		return nil
	}
	return []*gap{{key: x.req.Key, value: x.req.Token, others: x.granting()}}
}

func (x *extension) ended(d Decision) {
	e := x.engine
	switch {
	case d == Won && x.req.Add && x.even():
	case d == Won:
		until := x.until()
		if e.catchUp() >= until {
			e.stats.expired.Add(1)
			x.done(Extended{Err: ErrLate})
			return
		}
		e.stats.extended.Add(1)
		x.fill()
		x.lock = Lock{engine: e, taken: x, until: until}
		x.done(Extended{Held: true, Until: e.timeAt(until), Lock: &x.lock})
	case d == Unanswered:
		x.done(Extended{Err: x.failure()})
	case x.wrongType():
		x.done(Extended{Err: ErrWrongType})
	case x.req.Add && x.answers(tooLong) > 0:
		x.done(Extended{Err: ErrTooLong})
	default:
		x.done(Extended{Absent: x.absent()})
	}
}

// until returns when the validity of a granted extension ends.
func (x *extension) until() instant {
	ttl := x.req.TTL
	if x.req.Add {
		x.mu.Lock()
		least, _ := x.keptFor()
		x.mu.Unlock()
		ttl = x.engine.cfg.shown(least)
	}
	return x.start + Validity(ttl, 0, x.engine.cfg.DriftFactor)
}

// keptFor returns how long the masters that granted an addition keep the key, from start, at least, and at most. It is called with
// the round's mu held.
func (x *extension) keptFor() (least, most time.Duration) {
	least = x.engine.cfg.kept(x.engine.cfg.TTLMax)
	for i := range x.entries {
		if x.entries[i].vote != Granted { // its reply may be being read just now
			continue
		}
		if sum, ok := x.entries[i].Reply.([]any); ok && len(sum) == 2 {
			ms, _ := sum[0].(int64)
			kept := time.Duration(ms) * time.Millisecond
			least, most = min(least, kept), max(most, kept)
		}
	}
	return least, most
}
