package quorum

import (
	"time"

	"lockproxy/quorum/rules"
)

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

// Remove and Expire change what a quorum holds, whoever has set it: a first round reads what that is (seek), a second one makes the
// change on each master that still has the same.

// A removeRound is the second round of a Remove: a script that compares before it deletes.
type removeRound struct {
	round
	done func(Changed)
}

// ask deletes the key where it still holds what a quorum holds.
func (c *removeRound) ask(e *Engine, key Key, was *View) {
	c.releases = &signature{name: key.Name, token: was.Value}
	kind, content := was.content()
	begin(e, c, key, c.runs(luaDeleteSeen, []string{key.Name}, kind, content))
}

func (c *removeRound) read(en *entry) ballot { return comparison(en) }
func (*removeRound) reads() bool             { return false }

func (c *removeRound) decide(t rules.Tally) rules.Decision { return rules.DecideRelease(t) }
func (c *removeRound) ended(d rules.Decision)              { c.done(c.changed(d)) }

// changed is what a decision about a change comes to.
func (r *round) changed(d rules.Decision) Changed {
	if d == rules.Unanswered {
		return Changed{Err: r.failure()}
	}
	return Changed{Applied: d == rules.Won}
}

// An expireRound is the second round of an Expire: an extension of whatever is there. It promises nobody any validity.
type expireRound struct {
	extendRound
	kind string // of what is there, as View.content tells it
	done func(Changed)
}

// ask extends the key where it still holds what a quorum holds.
func (x *expireRound) ask(e *Engine, req ExpireRequest, was *View) {
	kind, content := was.content()
	x.kind, x.req = kind, ExtendRequest{Key: req.Key, Token: content, TTL: req.TTL}
	x.keeps = e.cfg.kept(req.TTL)
	begin(e, x, req.Key, x.runs(luaExpireSeen, []string{req.Key.Name}, kind, content, x.keeps.Milliseconds()))
}

func (x *expireRound) ended(d rules.Decision) {
	if d == rules.Won {
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
