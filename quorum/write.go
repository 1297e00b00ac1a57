package quorum

import "slices"

// Write sets a key, whoever holds it. It is no way to take a lock: it waits for a quorum, and where it reached fewer masters
// the value stays there until its TTL is over, because it may be the value by which somebody holds the lock. A write that
// depends on what is there is made as an Exec; what that has written on too few masters is put back.
func (e *Engine) Write(req WriteRequest, done func(Written)) {
	if req.KeepTTL || req.IfExists {
		e.exchange(req, done)
		return
	}
	w := &writeRound{req: req, done: done}
	w.keeps = e.cfg.kept(req.TTL)
	ms := w.keeps.Milliseconds()
	args := []any{"SET", req.Key.Name, req.Value, "PX", ms}
	if req.WantOld {
		args = w.runs(luaReplace, []string{req.Key.Name}, req.Value, ms)
	}
	e.begin(w, req.Key, args)
}

// exchange is Write as an Exec, where it depends on what is there: of several who ask at once each replaces what another has
// set, and none leaves what he has set on fewer masters than a quorum.
func (e *Engine) exchange(req WriteRequest, done func(Written)) {
	var w Written
	plan := func(now []View) []Edit {
		w = Written{}
		switch was := &now[0]; {
		case req.WantOld && was.Exists && was.Type != "string":
			w.Err = ErrWrongType
			return nil
		case req.IfExists && !was.Exists:
			return nil
		case req.WantOld:
			w.Old, w.HadOld = was.Value, was.Exists
		}
		w.Done = true
		return []Edit{{Kind: Put, Value: req.Value, TTL: req.TTL, KeepTTL: req.KeepTTL && now[0].Exists}}
	}
	e.Exec(ExecRequest{DB: req.Key.DB, Keys: []string{req.Key.Name}, Plan: plan}, func(x Executed) {
		if x.Err != nil {
			w = Written{Err: x.Err}
		}
		done(w)
	})
}

// A writeRound is a round that replaces unconditionally.
type writeRound struct {
	round
	agreement // on the old value
	req       WriteRequest
	done      func(Written)
}

func (w *writeRound) read(en *entry) ballot {
	if en.Err != nil {
		return readError(en.Err)
	}
	switch reply := en.Reply.(type) {
	case string:
		return granted
	case []any:
		var old sighting
		if len(reply) > 1 {
			old.exists = true
			old.value, _ = reply[1].(string)
		}
		is := granted
		//mutant: an older copy is replaced once more, by SET with GET
		if w.req.WantOld { // of what somebody else has replaced, too: see execRound.read
			is = grantedIfClean
		}
		if en.counts(is) {
			w.add(en, old)
		}
		return is
	}
	return unexpected
}

func (w *writeRound) voided(master int) {
	w.told = slices.DeleteFunc(w.told, func(s sighting) bool { return s.master == master })
}

func (*writeRound) reads() bool { return false }

// decide waits, where the old value is asked for, until a quorum agrees on it.
func (w *writeRound) decide(t tally) Decision {
	if !w.req.WantOld || t.Refused >= Quorum(t.Masters) {
		return decideAcquire(t)
	}
	written := t.Granted >= Quorum(t.Masters)
	t.Granted, t.Refused = t.Granted+t.Refused, 0 // a key of another type is an answer unlike any other
	d := w.agreement.decide(t)
	if d == Lost && written { // a quorum has written it, over values of which none had a quorum: see ErrUnclear
		return Won
	}
	return d
}

func (w *writeRound) ended(d Decision) {
	switch {
	case d == Unanswered:
		w.done(Written{Err: w.failure()})
	case d == Lost: // the only refusal there is
		w.done(Written{Err: ErrWrongType})
	default:
		w.mu.Lock()
		old, agreed := decideRead(w.tally, w.told)
		w.mu.Unlock()
		//mutant: what is not clear is nothing
		if w.req.WantOld && agreed != Won {
			w.done(Written{Err: ErrUnclear})
			return
		}
		w.done(Written{Done: true, Old: old.value, HadOld: old.exists})
	}
}
