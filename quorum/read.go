package quorum

import "time"

// Get reads a string: the value that a quorum agrees on.
func (e *Engine) Get(key Key, done func(View)) {
	e.ask(key, []any{"GET", key.Name}, 0, func(a Asked) {
		v := View{Err: a.Err, Type: "none"}
		if text, ok := a.Reply.(string); ok {
			v.Exists, v.Type, v.Value = true, "string", text
		}
		done(v)
	})
}

// Read tells all that a quorum agrees on about a key of any type.
func (e *Engine) Read(key Key, done func(View)) {
	r := &reading{done: done}
	e.begin(&r.round, r, key, luaSee.args(key.Name))
}

// A reading is a round that asks and changes nothing. A Granted vote is an answer, whatever it says.
type reading struct {
	round
	agreement
	done func(View)
}

func (r *reading) read(en *entry) (Vote, string) {
	if en.Err != nil {
		return Failed, failureText(en.Err)
	}
	s, ok := parseSighting(en.Reply)
	if !ok {
		return unexpected()
	}
	return r.hear(en, s)
}

// parseSighting reads the reply of luaSee.
func parseSighting(reply any) (sighting, bool) {
	list, _ := reply.([]any)
	if len(list) == 1 && list[0] == "none" {
		return sighting{}, true
	}
	if len(list) < 3 {
		return sighting{}, false
	}
	kind, ok1 := list[0].(string)
	value, ok2 := list[1].(string)
	ms, ok3 := list[2].(int64)
	s := sighting{opinion: opinion{true, kind, value}, left: time.Duration(ms) * time.Millisecond}
	if len(list) > 3 {
		s.ends, _ = list[3].(int64)
	}
	return s, ok1 && ok2 && ok3
}

func (r *reading) ended(d Decision) {
	r.mu.Lock()
	v := r.engine.view(&r.agreement)
	r.mu.Unlock()
	if d == Unanswered {
		v.Err = r.failure()
	}
	r.done(v)
}
