package resp

import "lockproxy/resp/wire"

// A transaction is at one place: here if it is about locks, at the upstream if it is about anything else. Its first command
// with keys decides that, or a key that is watched at the upstream. Commands without keys that come before are queued here, and
// sent on if the place is the upstream. So are scripts with a wrong number of keys. The upstream itself answers what it queues.

const errMixedTransaction = Error("ERR this transaction is about locks and about other keys: lockproxy keeps them on different servers; " +
	"make two of it, or let lock_keys match all of its keys or none")

// divertQueued is divert inside MULTI.
func divertQueued(c *call, cmd *command, at destination) Reply {
	t := &c.session.transaction
	if cmd != nil && cmd.flags&atOnce != 0 {
		return divertEnd(c, cmd)
	}
	row := cmd.row(c.args)
	keyless, fits := row != nil && row.keys.none(), row != nil && row.accepts(len(c.args))
	plain := keyless && fits && row.flags&mayQueue != 0 && row.group != "pubsub"
	untold := fits && row.keys.untold(c.args)
	malformed := row != nil && !fits
	if at == there && !fits && t.stage != queuingThere {
		if refused := unqueued(c); refused != nil { // such a command says nothing about where the transaction takes place
			t.spoil()
			return refused
		}
	}
	switch {
	case at == here && (row == nil || malformed), malformed && (t.stage == spoiled || t.aboutLocks()):
		spoilAnywhere(c)
		return nil // it will be refused
	case (plain || untold) && t.stage != queuingThere:
		return nil // its place is that of the first with keys
	case at == there && t.stage == spoiled:
		return Status("QUEUED") // in vain: EXEC will be refused
	case plain, at == there:
		if t.stage != queuingThere {
			if refused := beginUpstream(c); refused != nil {
				return refused
			}
		}
		reply := forward(c)
		if isError(reply) {
			t.spoil()
		}
		return reply
	case t.stage != queuingThere:
		return tooLarge(c)
	case keyless && !(row.group == "pubsub" && row.flags&mayQueue != 0):
		spoilAnywhere(c)
		return errNotInMulti(row.full)
	}
	spoilAnywhere(c)
	return split(c, errMixedTransaction)
}

// unqueued returns the error with which the upstream would refuse a command that is not sent to it, before it queues or runs it; nil
// if it would not.
func unqueued(c *call) Reply {
	commands, err := c.server.cfg.Upstream.Commands()
	switch {
	case err != nil || commands.Accepts(c.args):
		return nil
	case commands.Name(c.args) == nil:
		return errUnknownCommand(c.args)
	case commands.LacksSubcommand(c.args):
		return errUnknownSubcommand(wire.Upper(c.args[0]), c.args[1])
	}
	return errArity(*commands.Name(c.args))
}

// beginUpstream moves the transaction to the upstream.
func beginUpstream(c *call) Reply {
	t := &c.session.transaction
	if t.aboutLocks() {
		t.spoil()
		return split(c, errMixedTransaction)
	}
	if !c.session.replies.locksDone() {
		return wait
	}
	l, refused := c.session.connected()
	switch {
	case refused == wait:
		return wait
	case refused != nil:
		t.spoil()
		return refused
	}
	l.ask(expectation{n: 1, take: l.demand}, "MULTI")
	for _, q := range t.queue {
		l.ask(expectation{n: 1}, q.args...)
	}
	t.end(&c.session.memory)
	t.stage = queuingThere
	return nil
}

// aboutLocks says whether something watched or queued here has its place here.
func (t *transaction) aboutLocks() bool {
	locks := len(t.watched) > 0
	for _, q := range t.queue {
		keys := !q.cmd.keys.none() && !q.cmd.keys.untold(q.args)
		locks = locks || q.step != nil || keys || q.cmd.group == "pubsub"
	}
	return locks
}

// spoilAnywhere notes that a command was refused, so that EXEC is refused, too. The upstream is told to forget what it has queued.
func spoilAnywhere(c *call) {
	t := &c.session.transaction
	if t.stage == queuingThere && c.session.link != nil {
		c.session.link.ask(expectation{n: 1}, "DISCARD")
	}
	t.spoil()
}

// divertEnd is for commands that are not queued.
func divertEnd(c *call, cmd *command) Reply {
	t := &c.session.transaction
	if t.stage != queuingThere || cmd.name != "exec" && cmd.name != "discard" || !cmd.accepts(len(c.args)) {
		return nil
	}
	reply := forward(c)
	if reply == later {
		t.end(&c.session.memory)
	}
	return reply
}
