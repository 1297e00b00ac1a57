package resp

import "lockproxy/resp/wire"

// A transaction takes place on one side: here if about locks, else at the upstream. The side is decided by the first command with keys, or
// by a key watched at the upstream. Earlier commands without keys, and scripts with a wrong number of keys, are queued here, and sent on if
// the upstream is the side. The upstream itself answers the commands that it queues.

const errMixedTransaction = Error("ERR this transaction is about locks and about other keys: lockproxy keeps them on different servers; " +
	"make two of it, or let lock_keys match all of its keys or none")

// queueAnywhere is passUpstream inside MULTI.
func queueAnywhere(c *call, at destination) (Reply, bool) {
	t, row := &c.session.transaction, c.cmd
	if c.named != nil && c.named.flags&atOnce != 0 {
		return endThere(c)
	}
	keyless, fits := row != nil && row.keys.none(), row != nil && row.accepts(len(c.args))
	plain := keyless && fits && row.flags&mayQueue != 0 && row.group != "pubsub"
	untold := fits && row.keys.untold(c.args)
	malformed := row != nil && !fits
	if at == there && !fits && t.stage != queuingThere {
		if refused := unqueued(c); refused != nil { // a command refused by the upstream decides nothing
			t.spoil()
			return refused, false
		}
	}
	switch {
	case at == here && (row == nil || malformed), malformed && (t.stage == spoiled || t.aboutLocks()):
		spoilAnywhere(c)
		return nil, true // the command will be refused
	case (plain || untold) && t.stage != queuingThere:
		return nil, true // the first command with keys decides
	case at == there && t.stage == spoiled:
		return Status("QUEUED"), false // in vain: EXEC will be refused
	case plain, at == there:
		return queueThere(c), false
	case t.stage != queuingThere:
		return fitting(c)
	}
	spoilAnywhere(c)
	if keyless && !(row.group == "pubsub" && row.flags&mayQueue != 0) {
		return errNotInMulti(row.full), false
	}
	return split(c, errMixedTransaction), false
}

// queueThere has the upstream queue the command.
func queueThere(c *call) Reply {
	t := &c.session.transaction
	if t.stage != queuingThere {
		if refused := beginThere(c); refused != nil {
			t.spoil()
			return refused
		}
	}
	reply := forward(c)
	if isError(reply) {
		t.spoil()
	}
	return reply
}

// unqueued returns the error with which the upstream would refuse the command before queuing or running; nil for a good command. The
// upstream does not get the command.
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

// beginThere moves the transaction to the upstream.
func beginThere(c *call) Reply {
	t := &c.session.transaction
	if t.aboutLocks() {
		return split(c, errMixedTransaction)
	}
	if !c.session.reader.await(c.session.replies.locksDone) {
		return errEnding
	}
	l, refused := c.session.uplink.connected()
	if refused != nil {
		return refused
	}
	l.ask(expectation{n: 1, take: l.demand}, "MULTI")
	for _, q := range t.queue {
		l.ask(expectation{n: 1}, q.args...)
	}
	t.end()
	t.stage = queuingThere
	return nil
}

// aboutLocks says whether anything watched or queued here belongs here.
func (t *transaction) aboutLocks() bool {
	locks := len(t.watched) > 0
	for _, q := range t.queue {
		keys := !q.cmd.keys.none() && !q.cmd.keys.untold(q.args)
		locks = locks || q.step != nil || keys || q.cmd.group == "pubsub"
	}
	return locks
}

// spoilAnywhere notes a refused command, so that EXEC is refused, too. The upstream is told to forget its queue.
func spoilAnywhere(c *call) {
	t := &c.session.transaction
	if t.stage == queuingThere && c.session.uplink.link != nil {
		c.session.uplink.link.ask(expectation{n: 1}, "DISCARD")
	}
	t.spoil()
}

// endThere is for commands not queued in a transaction: EXEC and DISCARD end a transaction at the upstream.
func endThere(c *call) (Reply, bool) {
	t := &c.session.transaction
	if t.stage != queuingThere || !c.isNamed("exec") && !c.isNamed("discard") || !c.named.accepts(len(c.args)) {
		return nil, true
	}
	reply := forward(c)
	if !isError(reply) {
		t.end()
	}
	return reply, false
}
