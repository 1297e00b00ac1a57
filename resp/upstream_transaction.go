package resp

import "cmp"

// A transaction is at one place: here if it is about locks, at the upstream if it is about anything else. Which, its
// first command with keys decides, or a key that is watched there; those without keys that came before, which wait here,
// are sent on then. So do scripts with a wrong number of keys. What the upstream queues, it answers by itself.

const errMixedTransaction = Error("ERR this transaction is about locks and about other keys: lockproxy keeps them on different servers; " +
	"make two of it, or let lock_keys match all of its keys or none")

// divertQueued is divert inside MULTI.
func (c *call) divertQueued(cmd *command, at place) Reply {
	t := &c.transaction
	if cmd != nil && cmd.flags&atOnce != 0 {
		return c.divertEnd(cmd)
	}
	row := cmd.row(c.args)
	keyless := row != nil && row.keys.none()
	plain := keyless && row.accepts(len(c.args)) && row.flags&mayQueue != 0 && row.group != "pubsub"
	untold := row != nil && row.accepts(len(c.args)) && row.keys.untold(c.args)
	malformed := row != nil && !row.accepts(len(c.args))
	switch {
	case at == here && (row == nil || malformed), malformed && (t.spoiled || t.aboutLocks()):
		c.spoilAnywhere()
		return nil // it will be refused
	case (plain || untold) && !t.upstream:
		return nil // its place is that of the first with keys
	case at == there && t.spoiled:
		return cmp.Or(c.unqueued(), Reply(Status("QUEUED"))) // in vain: EXEC will be refused
	case plain, at == there:
		if !t.upstream {
			if refused := c.beginUpstream(); refused != nil {
				return refused
			}
		}
		if plain && row.flags&ours != 0 {
			return c.queueThere(row)
		}
		reply := c.forward()
		if reply == later {
			t.there++
		}
		if isError(reply) {
			t.spoil()
		}
		return reply
	case !t.upstream:
		return c.tooLarge()
	case keyless && !(row.group == "pubsub" && row.flags&mayQueue != 0):
		c.spoilAnywhere()
		return errNotInMulti(row.full)
	}
	c.spoilAnywhere()
	return c.split(errMixedTransaction)
}

// unqueued is the upstream's refusal of a command that it would not queue, for one that it does not hear of. nil: it would.
func (c *call) unqueued() Reply {
	commands, err := c.server.cfg.Upstream.Commands()
	switch {
	case err != nil || commands.Accepts(c.args):
		return nil
	case commands.Name(c.args) == nil:
		return errUnknownCommand(c.args)
	}
	return errArity(*commands.Name(c.args))
}

// divertEnd is for commands that are not queued.
func (c *call) divertEnd(cmd *command) Reply {
	t := &c.transaction
	if !t.upstream || cmd.name != "exec" && cmd.name != "discard" || !cmd.accepts(len(c.args)) {
		return nil
	}
	if cmd.name == "exec" && len(t.ours) > 0 {
		return c.execThere()
	}
	reply := c.forward()
	if reply == later {
		t.end(&c.server.memory)
		c.watchesUpstream = false
		c.noteState()
	}
	return reply
}

// beginUpstream moves the transaction there.
func (c *call) beginUpstream() Reply {
	t := &c.transaction
	if t.aboutLocks() {
		t.spoil()
		if refused := c.unqueued(); refused != nil {
			return refused
		}
		return c.split(errMixedTransaction)
	}
	if !c.locksDone() {
		return wait
	}
	l, refused := c.connected()
	switch {
	case refused == wait:
		return wait
	case refused != nil:
		t.spoil()
		return refused
	}
	l.ask(expectation{n: 1, take: l.demand}, "MULTI")
	var own []ownCommand
	for i, q := range t.queue {
		args := q.args
		if q.cmd.flags&ours != 0 {
			args, own = inItsPlace(q.cmd, args), append(own, ownCommand{at: i, cmd: q.cmd, args: q.args})
		}
		l.ask(expectation{n: 1}, args...)
	}
	there, changes := len(t.queue), t.changes
	t.end(&c.server.memory)
	t.open, t.upstream, t.changes, t.there, t.ours = true, true, changes, there, own
	c.noteState()
	return nil
}

// aboutLocks says that what is watched or queued here has its place here.
func (t *transaction) aboutLocks() bool {
	locks := len(t.watched) > 0
	for _, q := range t.queue {
		keys := !q.cmd.keys.none() && !q.cmd.keys.untold(q.args)
		locks = locks || q.step != nil || keys || q.cmd.group == "pubsub"
	}
	return locks
}

// spoilAnywhere notes that a command was refused: EXEC will be. What the upstream has queued it forgets.
func (c *call) spoilAnywhere() {
	t := &c.transaction
	if t.upstream && c.up != nil {
		c.up.ask(expectation{n: 1}, "DISCARD")
		t.upstream, c.watchesUpstream = false, false
		c.noteState()
	}
	t.spoil()
}
