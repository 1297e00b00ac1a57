package quorum

import "time"

// Release deletes the key if token holds it.
func (e *Engine) Release(key Key, token string, done func(Released)) {
	r := &release{done: done}
	r.releases = &hold{key.Name, token}
	e.begin(&r.round, r, key, luaRelease.args(key.Name, token))
}

type release struct {
	round
	done func(Released)
}

func (r *release) read(en *entry) (Vote, string) { return comparison(en) }
func (r *release) decide(t Tally) Decision       { return DecideRelease(t) }
func (r *release) settled(*entry)                {}

func (r *release) ended(d Decision) {
	switch {
	case d == Won:
		r.engine.stats.released.Add(1)
		r.done(Released{Held: true})
	case d == Unanswered:
		r.done(Released{Err: r.failure()})
	case r.wrongType():
		r.done(Released{Err: ErrWrongType})
	default:
		r.done(Released{Absent: r.absent()})
	}
}

// Extend sets or adds to the remaining TTL of a lock that the token holds. It counts on a quorum within validity, and
// never makes a lock that is gone (rule 11). An extension that fails leaves the longer TTL on the masters that made it.
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
			x.done(Extended{})
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

// comparison reads the reply of a script that compares before it changes.
func comparison(en *entry) (Vote, string) {
	if en.Err != nil {
		return ballot(en.Err)
	}
	switch en.Reply {
	case int64(didIt):
		return Granted, ""
	case int64(absent):
		en.blank = true
		return Refused, ""
	case int64(other):
		return Refused, ""
	}
	return unexpected()
}

// absent says that a quorum has no such key.
func (r *round) absent() bool { return r.answers(absent) >= Quorum(len(r.entries)) }

// answers counts the masters that refused with the integer n.
func (r *round) answers(n int64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := 0
	for i := range r.entries {
		if en := &r.entries[i]; en.vote == Refused && en.Reply == n {
			count++
		}
	}
	return count
}
