package quorum

import (
	"slices"

	"lockproxy/quorum/rules"
)

// A writeRound is a round that replaces unconditionally.
type writeRound struct {
	round
	agreement // on the old value
	req       WriteRequest
	done      func(Written)
}

func (w *writeRound) ask(e *Engine) {
	w.keeps = e.cfg.kept(w.req.TTL)
	ms := w.keeps.Milliseconds()
	args := []any{"SET", w.req.Key.Name, w.req.Value, "PX", ms}
	if w.req.WantOld {
		args = w.runs(luaReplace, []string{w.req.Key.Name}, w.req.Value, ms)
	}
	begin(e, w, w.req.Key, args)
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
			old.Exists = true
			old.Value, _ = reply[1].(string)
		}
		is := granted
		//mutant: an older copy is replaced once more, by SET with GET
		if w.req.WantOld { // somebody else may have replaced the copy: see execRound.read
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

// decide waits, where the old value is asked for, until a quorum agrees on the old value.
func (w *writeRound) decide(t rules.Tally) rules.Decision {
	if !w.req.WantOld || t.Refused >= rules.Quorum(t.Masters) {
		return rules.DecideAcquire(t)
	}
	written := t.Granted >= rules.Quorum(t.Masters)
	t.Granted, t.Refused = t.Granted+t.Refused, 0 // a key of another type is an answer unlike any other
	d := w.agreement.decide(t)
	if d == rules.Lost && written { // a quorum has written, over values without a quorum each: see ErrUnclear
		return rules.Won
	}
	return d
}

func (w *writeRound) ended(d rules.Decision) {
	switch {
	case d == rules.Unanswered:
		w.done(Written{Err: w.failure()})
	case d == rules.Lost: // the only refusal there is
		w.done(Written{Err: ErrWrongType})
	default:
		w.mu.Lock()
		old, agreed := rules.DecideRead(w.tally, w.told)
		w.mu.Unlock()
		//mutant: what is not clear is nothing
		if w.req.WantOld && agreed != rules.Won {
			w.done(Written{Err: ErrUnclear})
			return
		}
		w.done(Written{Done: true, Old: old.Value, HadOld: old.Exists})
	}
}

// An exchange is a Write that depends on the present value, as an Exec: of several clients at once each replaces the value of another,
// and no client leaves its own value on fewer masters than a quorum.
type exchange struct {
	req WriteRequest
	out Written
}

func (x *exchange) exec(e *Engine, done func(Written)) {
	key := x.req.Key
	e.Exec(ExecRequest{DB: key.DB, Keys: []string{key.Name}, Plan: x.plan}, func(did Executed) {
		if did.Err != nil {
			x.out = Written{Err: did.Err}
		}
		done(x.out)
	})
}

// plan is the Plan of the Exec. The findings of an earlier try count no more.
func (x *exchange) plan(now []View) []Edit {
	req := &x.req
	x.out = Written{}
	switch was := &now[0]; {
	case req.WantOld && was.Exists && was.Type != "string":
		x.out.Err = ErrWrongType
		return nil
	case req.IfExists && !was.Exists:
		return nil
	case req.WantOld:
		x.out.Old, x.out.HadOld = was.Value, was.Exists
	}
	x.out.Done = true
	return []Edit{{Kind: Put, Value: req.Value, TTL: req.TTL, KeepTTL: req.KeepTTL && now[0].Exists}}
}
