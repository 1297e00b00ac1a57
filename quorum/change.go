package quorum

import "time"

// Changes of what a quorum holds, whoever has set it: a first round reads what that is, a second one makes the change on each
// master that still has the same.

// Remove deletes whatever a quorum holds, and never another attempt's vote in flight.
func (e *Engine) Remove(key Key, done func(Changed)) {
	e.Read(key, func(v View) {
		if v.Err != nil || !v.Exists {
			done(Changed{Err: v.Err})
			return
		}
		e.remove(key, v, done)
	})
}

// remove deletes the key where it still holds what a quorum holds.
func (e *Engine) remove(key Key, v View, done func(Changed)) {
	c := &change{rule: DecideRelease, done: done}
	c.releases = &hold{key.Name, v.Value}
	e.begin(&c.round, c, key, c.runs(luaDeleteSeen, []string{key.Name}, v.Type, v.content()))
}

// Expire changes the TTL of whatever a quorum holds.
func (e *Engine) Expire(req ExpireRequest, done func(Changed)) {
	e.Read(req.Key, func(v View) {
		if v.Err != nil || !v.Exists || !req.Condition.Holds(req.TTL, v.TTLMost) {
			done(Changed{Err: v.Err})
			return
		}
		if req.TTL <= 0 {
			e.remove(req.Key, v, done)
			return
		}
		kept := e.cfg.kept(req.TTL)
		x := &prolonging{key: req.Key, seen: v}
		x.rule, x.done = DecideExtend, done
		x.keeps, x.lasting = kept, true // whoever extends a lock by it relies on it
		e.begin(&x.round, x, req.Key, x.runs(luaExpireSeen, []string{req.Key.Name}, v.Type, v.content(), kept.Milliseconds()))
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

// change is the second round: it runs a script that compares before it changes.
type change struct {
	round
	rule func(Tally) Decision
	done func(Changed)
}

func (c *change) read(en *entry) (Vote, string) { return comparison(en) }
func (c *change) decide(t Tally) Decision       { return c.rule(t) }

func (c *change) ended(d Decision) {
	if d == Unanswered {
		c.done(Changed{Err: c.failure()})
		return
	}
	c.done(Changed{Applied: d == Won})
}

// A prolonging is the second round of an Expire.
type prolonging struct {
	change
	key  Key
	seen View
}

func (x *prolonging) hold() hold { return hold{x.key.Name, x.seen.content()} }

func (x *prolonging) read(en *entry) (Vote, string) { return prolonged(en, x.hold()) }

func (x *prolonging) settled(en *entry) {
	en.releaseOwed(x.hold(), undoText)
	x.fillLate(en)
}

func (x *prolonging) ended(d Decision) {
	if d == Won {
		x.fill()
	}
	x.change.ended(d)
}

func (x *prolonging) lacking(en *entry) []*gap {
	if !en.blank || x.seen.Type != "string" {
		return nil
	}
	return []*gap{{key: x.key, value: x.seen.Value, others: x.granting()}}
}
