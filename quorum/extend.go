package quorum

import "time"

// Extend sets or adds to the remaining TTL of a lock that the token holds. It counts on a quorum within validity, and
// never makes a lock that is gone (rule 11). An extension that fails, or is heard too late, leaves its
// TTL on the masters that made it.
func (e *Engine) Extend(req ExtendRequest, done func(Extended)) {
	x := &extension{req: req, done: done}
	x.lasting = true
	if !req.Add {
		x.keeps = e.cfg.kept(req.TTL)
		ms := x.keeps.Milliseconds()
		args := luaExtend.args(req.Key.Name, req.Token, ms)
		if req.Fenced {
			args = luaExtendFenced.all([]string{req.Key.Name, recordPrefix + req.Key.Name}, []any{req.Token, ms})
		}
		e.begin(&x.round, x, req.Key, args)
		return
	}
	ms := ceilMillis(req.TTL + Drift(req.TTL, e.cfg.DriftFactor) - clockFloor).Milliseconds()
	most := e.cfg.kept(e.cfg.TTLMax).Milliseconds()
	keys := []string{req.Key.Name, horizonKey} // which the script extends itself
	e.begin(&x.round, x, req.Key, luaAdd.all(keys, []any{req.Token, ms, most}))
}

type extension struct {
	round
	req  ExtendRequest
	lock Lock // if it is won
	done func(Extended)
}

// undo does nothing: what was extended is the client's, and may be longer on some masters than it knows.
func (x *extension) undo(func()) {}

func (x *extension) appendTaken(to []Taken) []Taken {
	return append(to, Taken{Key: x.req.Key, Token: x.req.Token})
}

// read counts an addition beyond ttl_max as refused.
func (x *extension) read(en *entry) (Vote, string) {
	if ms, ok := en.Reply.(int64); ok && x.req.Add && en.Err == nil && ms != other {
		if ms > 0 {
			return Granted, ""
		}
		en.blank = ms == absent
		return Refused, ""
	}
	return comparison(en)
}

func (x *extension) decide(t Tally) Decision { return DecideExtend(t) }
func (x *extension) settled(*entry)          {}

func (x *extension) ended(d Decision) {
	e := x.engine
	switch {
	case d == Won:
		until := x.until()
		if e.catchUp() >= until {
			e.stats.expired.Add(1)
			x.done(Extended{Err: ErrLate})
			return
		}
		e.stats.extended.Add(1)
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

// until returns when the validity of a granted extension ends. An addition lasts as long as the least that a granting
// master was left with.
func (x *extension) until() instant {
	ttl := x.req.TTL
	if x.req.Add {
		x.mu.Lock()
		least := x.engine.cfg.kept(x.engine.cfg.TTLMax)
		for i := range x.entries {
			if x.entries[i].vote != Granted { // its reply may be being read just now
				continue
			}
			if ms, ok := x.entries[i].Reply.(int64); ok {
				least = min(least, time.Duration(ms)*time.Millisecond)
			}
		}
		x.mu.Unlock()
		ttl = x.engine.cfg.shown(least)
	}
	return x.start + Validity(ttl, 0, x.engine.cfg.DriftFactor)
}
