package quorum

import "time"

// Changes of what a quorum holds, whoever has set it: a first round reads what that is, a second one makes the change on each
// master that still has the same.

// Remove deletes whatever a quorum holds, and never another attempt's vote in flight.
func (e *Engine) Remove(key Key, done func(Changed)) {
	e.seek(key, func(v View) {
		if v.Err != nil || !v.Exists {
			done(Changed{Err: v.Err})
			return
		}
		e.remove(key, v, done)
	})
}

// remove deletes the key where it still holds what a quorum holds.
func (e *Engine) remove(key Key, v View, done func(Changed)) {
	c := &removeRound{done: done}
	c.releases = &signature{name: key.Name, token: v.Value}
	kind, content := v.content()
	e.begin(c, key, c.runs(luaDeleteSeen, []string{key.Name}, kind, content))
}

// seek tells what is there, so that it can be compared with what is there later.
func (e *Engine) seek(key Key, done func(View)) {
	e.look(key.DB, []string{key.Name}, &readRound{how: digest, done: func(l *readRound) { done(l.first()) }})
}

// Expire changes the TTL of whatever a quorum holds.
func (e *Engine) Expire(req ExpireRequest, done func(Changed)) {
	e.seek(req.Key, func(v View) {
		//mutant: what is greater than on some master is greater
		if v.Err != nil || !v.Exists || !req.Condition.Holds(req.TTL, v.TTLMost) {
			done(Changed{Err: v.Err})
			return
		}
		if req.TTL <= 0 {
			e.remove(req.Key, v, done)
			return
		}
		kind, content := v.content()
		x := &expireRound{kind: kind, done: done}
		x.req = ExtendRequest{Key: req.Key, Token: content, TTL: req.TTL}
		x.keeps = e.cfg.kept(req.TTL)
		e.begin(x, req.Key, x.runs(luaExpireSeen, []string{req.Key.Name}, kind, content, x.keeps.Milliseconds()))
	})
}

// Holds says whether a TTL applies to a key that has current left.
func (c ExpireCondition) Holds(ttl, current time.Duration) bool {
	switch {
	case c&IfNoTTL != 0,
		c&IfGreater != 0 && ttl <= current,
		c&IfLess != 0 && ttl >= current:
		return false
	}
	return true
}

// A removeRound is a round of a script that compares before it deletes.
type removeRound struct {
	round
	done func(Changed)
}

func (c *removeRound) read(en *entry) ballot { return comparison(en) }
func (*removeRound) reads() bool             { return false }

func (c *removeRound) decide(t tally) Decision { return decideRelease(t) }
func (c *removeRound) ended(d Decision)        { c.done(c.changed(d)) }

// changed is what a decision about a change comes to.
func (r *round) changed(d Decision) Changed {
	if d == Unanswered {
		return Changed{Err: r.failure()}
	}
	return Changed{Applied: d == Won}
}

// An expireRound is the second round of an Expire: an extension of whatever is there. It promises nobody any validity.
type expireRound struct {
	extendRound
	kind string // of what is there, as View.content tells it
	done func(Changed)
}

func (x *expireRound) ended(d Decision) {
	if d == Won {
		x.fill()
	}
	x.done(x.changed(d))
}

func (x *expireRound) lacking(en *entry) []*gap {
	if x.kind != "string" {
		return nil
	}
	return x.extendRound.lacking(en)
}
