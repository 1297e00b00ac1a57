package quorum

import (
	"slices"
	"time"
)

// Write sets a key, whoever holds it. It is no way to take a lock: it waits for a quorum, and what it wrote on fewer
// masters than that stays there until its TTL is over, because its value may be one that holds the lock.
func (e *Engine) Write(req WriteRequest, done func(Written)) {
	if req.Condition == Always && !req.KeepTTL {
		w := &write{req: req, done: done}
		w.keeps, w.lasting = e.cfg.kept(req.TTL), true
		ms := w.keeps.Milliseconds()
		if req.WantOld {
			e.begin(&w.round, w, req.Key, luaReplace.args(req.Key.Name, req.Value, ms))
		} else {
			e.begin(&w.round, w, req.Key, []any{"SET", req.Key.Name, req.Value, "PX", ms})
		}
		return
	}
	e.see(req.Key, func(v view) {
		switch {
		case v.Err != nil:
			done(Written{Err: v.Err})
		case v.Exists && v.Type != "string" && req.WantOld:
			done(Written{Err: ErrWrongType})
		case v.Exists:
			e.replace(req, v, done)
		case req.Condition == IfExists:
			done(Written{})
		default: // there is no TTL to keep
			req.KeepTTL = false
			e.Write(req, done)
		}
	})
}

// replace sets the key where it still holds what a quorum holds.
func (e *Engine) replace(req WriteRequest, v view, done func(Written)) {
	ms := int64(0) // as luaSetSeen has it: keep the remaining TTL
	if !req.KeepTTL {
		ms = e.cfg.kept(req.TTL).Milliseconds()
	}
	args := luaSetSeen.args(req.Key.Name, v.seen.kind, v.seen.value, req.Value, ms)
	e.change(req.Key, time.Duration(ms)*time.Millisecond, args, func(err error, applied bool) {
		w := Written{Err: err, Done: applied}
		if applied && req.WantOld {
			w.Old, w.HadOld = v.Value, true
		}
		done(w)
	})
}

// A write is a round that replaces unconditionally.
type write struct {
	round
	agreement // on the old value
	req       WriteRequest
	done      func(Written)
}

func (w *write) read(en *entry) (Vote, string) {
	if en.Err != nil {
		return ballot(en.Err)
	}
	switch reply := en.Reply.(type) {
	case string:
		return Granted, ""
	case []any:
		old := sighting{master: en.master}
		if len(reply) > 1 {
			old.exists = true
			old.value, _ = reply[1].(string)
		}
		if en.proves(w.req.WantOld) { // of what somebody else has replaced, too: see editing.read
			w.told = append(w.told, old)
		}
		return Granted, ""
	}
	return unexpected()
}

func (w *write) voided(master int) {
	w.told = slices.DeleteFunc(w.told, func(s sighting) bool { return s.master == master })
}

// decide waits, where the old value is asked for, until a quorum agrees on it.
func (w *write) decide(t Tally) Decision {
	if !w.req.WantOld || t.Refused >= Quorum(t.Masters) {
		return Decide(t)
	}
	written := t.Granted >= Quorum(t.Masters)
	t.Granted, t.Refused = t.Granted+t.Refused, 0 // a key of another type is an answer unlike any other
	d := w.agreement.decide(t)
	if d == Lost && written { // a quorum has written it, over values of which none had a quorum: see ErrUnclear
		return Won
	}
	return d
}

func (w *write) settled(*entry) {}

func (w *write) ended(d Decision) {
	switch {
	case d == Unanswered:
		w.done(Written{Err: w.failure()})
	case d == Lost: // the only refusal there is
		w.done(Written{Err: ErrWrongType})
	default:
		w.mu.Lock()
		old, agreed := decideRead(w.tally, w.told)
		w.mu.Unlock()
		if w.req.WantOld && agreed != Won {
			w.done(Written{Err: ErrUnclear})
			return
		}
		w.done(Written{Done: true, Old: old.value, HadOld: old.exists})
	}
}
