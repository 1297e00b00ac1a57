package quorum

import (
	"slices"
	"time"
)

// Get reads a string: the value that a quorum agrees on.
func (e *Engine) Get(key Key, done func(View)) {
	r := &reading{done: done}
	e.begin(&r.round, r, key, []any{"GET", key.Name})
}

// Read tells all that a quorum agrees on about a key of any type.
func (e *Engine) Read(key Key, done func(View)) {
	e.see(key, func(v view) { done(v.View) })
}

// see is Read with what a change of what was seen must name.
func (e *Engine) see(key Key, done func(view)) {
	r := &reading{see: done}
	e.begin(&r.round, r, key, luaSee.args(key.Name))
}

// A view is a View and the opinion behind it.
type view struct {
	View
	seen opinion
}

// A reading is a round that asks and changes nothing. A Granted vote is an answer, whatever it says.
type reading struct {
	round
	done     func(View) // of a Get
	see      func(view) // of a Read
	opinions []opinion  // guarded by round.mu, as is left
	left     []sighting
	agreed   opinion
}

// A sighting is an opinion and how long the master will keep the key.
type sighting struct {
	opinion
	left time.Duration
	ends int64 // when it will drop it, ms of its clock; where that was asked
}

func (r *reading) read(en *entry) (Vote, string) {
	s := sighting{}
	switch reply := en.Reply.(type) {
	case nil:
		if en.Err != nil && r.done != nil {
			if v, cause := ballot(en.Err); v == Failed {
				return v, cause
			}
			s.opinion = opinion{exists: true, kind: "not a string"}
		} else if en.Err != nil {
			return ballot(en.Err)
		}
	case string:
		s.opinion = opinion{exists: true, kind: "string", value: reply}
	case []any:
		var ok bool
		if s, ok = parseSighting(reply); !ok {
			return unexpected()
		}
	default:
		return unexpected()
	}
	if en.proves(!s.exists) {
		r.opinions = append(r.opinions, s.opinion)
		r.left = append(r.left, s)
	}
	return Granted, ""
}

// parseSighting reads the reply of luaSee.
func parseSighting(reply []any) (sighting, bool) {
	if len(reply) == 1 && reply[0] == "none" {
		return sighting{}, true
	}
	if len(reply) < 3 {
		return sighting{}, false
	}
	kind, ok1 := reply[0].(string)
	value, ok2 := reply[1].(string)
	ms, ok3 := reply[2].(int64)
	s := sighting{opinion: opinion{true, kind, value}, left: time.Duration(ms) * time.Millisecond}
	if len(reply) > 3 {
		s.ends, _ = reply[3].(int64)
	}
	return s, ok1 && ok2 && ok3
}

func (r *reading) decide(t Tally) Decision {
	agreed, d := decideRead(t, r.opinions)
	r.agreed = agreed
	return d
}

func (r *reading) settled(*entry) {}

func (r *reading) ended(d Decision) {
	v := view{View: View{Type: "none"}}
	switch {
	case d == Unanswered:
		v.Err = r.failure()
	case d == Won && r.agreed.exists:
		v.seen = r.agreed
		v.Exists, v.Type = true, r.agreed.kind
		if r.agreed.kind == "string" {
			v.Value = r.agreed.value
		}
		r.mu.Lock()
		v.TTL = r.engine.remaining(r.left, r.agreed)
		r.mu.Unlock()
	}
	if r.see != nil {
		r.see(v)
		return
	}
	if v.Err == nil && v.Exists && v.Type != "string" {
		v.Err = ErrWrongType
	}
	r.done(v.View)
}

// remaining returns how long a quorum will still hold what was agreed on, as the client that set it counts.
func (e *Engine) remaining(seen []sighting, agreed opinion) time.Duration {
	var left []time.Duration
	for _, s := range seen {
		if s.opinion != agreed {
			continue
		}
		left = append(left, e.lasts(s.left))
	}
	slices.Sort(left)
	return e.cfg.shown(left[len(left)-Quorum(len(e.masters))])
}

// lasts is for how long a master will keep a key of that PTTL.
func (e *Engine) lasts(left time.Duration) time.Duration {
	if left < 0 { // set on the master by someone else, for ever
		return e.cfg.kept(e.cfg.TTLMax)
	}
	return left
}
