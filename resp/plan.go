package resp

import (
	"slices"
	"time"

	"lockproxy/quorum"
)

// A plan is the work of commands on keys. A plan starts with the keys' state at a quorum. Each command reads and changes the state, and has
// its reply. In the end the plan says how the keys are to be edited on the masters. Each try of Engine.Exec makes the plan anew, and runs
// the commands anew.
type plan struct {
	ttlMax time.Duration
	cmd    *command // the running command
	names  nameIndex
	keys   []planned // in the order of names
}

// A planned is a key as of this point of the plan.
type planned struct {
	quorum.View
	had   bool   // the key existed at the beginning
	first string // the value at the beginning
	told  bool   // the value is in a reply
	edit  quorum.Edit
}

// A step is one command of a plan.
type step func(p *plan) Reply

// A planner is a command's part in a plan; args as in a call.
type planner func(p *plan, args []string) Reply

func newPlan(ttlMax time.Duration, names nameIndex, now []quorum.View) *plan {
	p := &plan{ttlMax: ttlMax, names: names, keys: make([]planned, len(now))}
	for i, v := range now {
		p.keys[i] = planned{View: v, had: v.Exists, first: v.Value}
	}
	return p
}

func (p *plan) key(name string) *planned { return &p.keys[p.names.index(name)] }

// edits returns how each key is to be edited.
func (p *plan) edits() []quorum.Edit {
	edits := make([]quorum.Edit, len(p.keys))
	for i := range p.keys {
		edits[i] = p.keys[i].edit
	}
	return edits
}

// put sets a key.
func (k *planned) put(value string, ttl time.Duration) {
	k.edit = quorum.Edit{Kind: quorum.Put, Value: value, TTL: ttl}
	k.View = quorum.View{Exists: true, Type: "string", Value: value, Length: len(value), TTL: ttl, TTLMost: ttl}
}

// rewrite is put with KEEPTTL: a key that exists keeps its TTL.
func (k *planned) rewrite(value string, ttl time.Duration) {
	if !k.Exists {
		k.put(value, ttl)
		return
	}
	before := k.edit
	k.put(value, k.TTLMost)
	switch before.Kind {
	case quorum.Put, quorum.Expire: // this plan has set the TTL
		k.edit.TTL, k.edit.KeepTTL = before.TTL, before.KeepTTL
	default:
		k.edit.TTL, k.edit.KeepTTL = 0, true
	}
}

func (k *planned) remove() {
	k.edit = quorum.Edit{}
	switch {
	case k.had && k.told:
		//mutant: what is told is not claimed
		k.edit.Kind = quorum.Claim
	case k.had:
		k.edit.Kind = quorum.Delete
	}
	k.View = quorum.View{Type: "none"}
}

// expire gives an existing key a TTL. A TTL that is not positive removes the key.
func (k *planned) expire(ttl time.Duration) {
	if ttl <= 0 {
		k.remove()
		return
	}
	k.TTL, k.TTLMost = ttl, ttl
	if k.edit.Kind == quorum.Put {
		k.edit.TTL, k.edit.KeepTTL = ttl, false
		return
	}
	k.edit = quorum.Edit{Kind: quorum.Expire, TTL: ttl}
}

// isString says whether a command for strings may run on the key.
func (k *planned) isString() bool { return !k.Exists || k.Type == "string" }

// holds says whether the key is a lock of token's.
func (k *planned) holds(token string) bool { return k.Exists && k.Type == "string" && k.Value == token }

// value is the reply with the value of a string key.
func (k *planned) value() Reply {
	if !k.Exists {
		return Null{}
	}
	k.told = true
	return Bulk(k.Value)
}

// briefly says which keys' values no command needs; a watched key's value is not needed for the watch.
func briefly(names []string, queue []*queued) []bool {
	brief, all := slices.Repeat([]bool{true}, len(names)), indexed(names)
	for _, q := range queue {
		for _, name := range q.keys() {
			if i := all.index(name); i >= 0 && !q.cmd.brief {
				brief[i] = false
			}
		}
	}
	return brief
}

// runPlanned runs a command that is a plan by itself.
func runPlanned(c *call) Reply { return runStep(c, newQueued(c.cmd, c.args)) }

// runStep runs one command as a plan.
func runStep(c *call, q *queued) Reply {
	return execute(c, distinct(q.keys()), []*queued{q}, func() ([]quorum.Mark, step) { return nil, q.step })
}

// execute runs a plan of these commands on keys. begin is called once, when no earlier command is in the way, and returns the steps of the
// plan as one step, and the marks required of the first keys. When the plan has taken place, the messages of the commands are published.
func execute(c *call, names []string, queue []*queued, begin func() ([]quorum.Mark, step)) Reply {
	sl := c.claimTogether(overlapNone, names, func(o *outcome) Reply {
		if o.done == 0 {
			return errorReply(quorum.ErrLate)
		}
		return o.reply
	})
	if sl == nil {
		return nil
	}
	brief := briefly(names, queue)
	marks, run := begin()
	req := quorum.ExecRequest{DB: c.session.identity.db, Keys: names, Watched: marks, Brief: brief}
	var shown []*watched // by name; EXEC watches nothing any more
	if len(c.session.transaction.watched) > 0 {
		for _, name := range names {
			w := c.session.transaction.watches(c.key(name))
			shown = append(shown, w)
			if w != nil {
				req.Shown = append(req.Shown, w.mark)
			}
		}
	}
	var reply Reply
	var last *plan
	ttlMax, all := c.server.cfg.TTLMax, indexed(names)
	req.Plan = func(now []quorum.View) []quorum.Edit {
		p := newPlan(ttlMax, all, now)
		reply, last = run(p), p
		edits := p.edits()
		for i, w := range shown {
			w.sees(now[i], edits[i])
		}
		return edits
	}
	s := c.session
	c.server.engine.Exec(req, func(x quorum.Executed) {
		done := func() { sl.onExecuted(x, reply) }
		switch {
		case !x.Done:
			reply = NullArray{}
		case x.Err == nil:
			s.holds.heed(req.DB, last)
			if x.Lock == nil || time.Now().Before(s.server.lockOf(x.Lock).Until()) {
				publishQueued(s.server, queue, reply, done)
				return
			}
		}
		done()
	})
	return nil
}
