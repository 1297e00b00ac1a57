package resp

import (
	"slices"

	"lockproxy/resp/wire"
)

// A transaction is at one place: here if it is about locks, at the upstream if it is about anything else. Its first command
// with keys decides that, or a key that is watched at the upstream. Commands without keys that come before are queued here, and
// sent on if the place is the upstream. So are scripts with a wrong number of keys. The upstream itself answers what it queues.

const errMixedTransaction = Error("ERR this transaction is about locks and about other keys: lockproxy keeps them on different servers; " +
	"make two of it, or let lock_keys match all of its keys or none")

// divertQueued is divert inside MULTI.
func (c *call) divertQueued(cmd *command, at place) Reply {
	t := &c.transaction
	if cmd != nil && cmd.flags&atOnce != 0 {
		return c.divertEnd(cmd)
	}
	row := cmd.row(c.args)
	keyless, fits := row != nil && row.keys.none(), row != nil && row.accepts(len(c.args))
	plain := keyless && fits && row.flags&mayQueue != 0 && row.group != "pubsub"
	untold := fits && row.keys.untold(c.args)
	malformed := row != nil && !fits
	if at == there && !fits && t.stage != queuingThere {
		if refused := c.unqueued(); refused != nil { // such a command says nothing about where the transaction takes place
			t.spoil()
			return refused
		}
	}
	switch {
	case at == here && (row == nil || malformed), malformed && (t.stage == spoiled || t.aboutLocks()):
		c.spoilAnywhere()
		return nil // it will be refused
	case (plain || untold) && t.stage != queuingThere:
		return nil // its place is that of the first with keys
	case at == there && t.stage == spoiled:
		return Status("QUEUED") // in vain: EXEC will be refused
	case plain, at == there:
		if t.stage != queuingThere {
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
	case t.stage != queuingThere:
		return c.tooLarge()
	case keyless && !(row.group == "pubsub" && row.flags&mayQueue != 0):
		c.spoilAnywhere()
		return errNotInMulti(row.full)
	}
	c.spoilAnywhere()
	return c.split(errMixedTransaction)
}

// unqueued returns the error with which the upstream would refuse a command that is not sent to it, before it queues or runs it; nil
// if it would not.
func (c *call) unqueued() Reply {
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
func (c *call) beginUpstream() Reply {
	t := &c.transaction
	if t.aboutLocks() {
		t.spoil()
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
	var deferred []deferredCommand
	for i, q := range t.queue {
		args := q.args
		if q.cmd.flags&ours != 0 {
			args, deferred = c.inItsPlace(q.cmd, args), append(deferred, deferredCommand{at: i, cmd: q.cmd, args: q.args})
		}
		l.ask(expectation{n: 1}, args...)
	}
	there := len(t.queue)
	t.end(&c.memory)
	t.stage, t.there, t.deferred = queuingThere, there, deferred
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
func (c *call) spoilAnywhere() {
	t := &c.transaction
	if t.stage == queuingThere && c.link != nil {
		c.link.ask(expectation{n: 1}, "DISCARD")
	}
	t.spoil()
}

// queueThere has the upstream queue something in the place of a command that the proxy runs: see inItsPlace.
func (c *call) queueThere(row *command) Reply {
	t := &c.transaction
	if row.name == "hello" && len(c.args) > 2 {
		c.spoilAnywhere()
		return errNotInMulti("hello with options")
	}
	if refused := c.retainQueued(len(t.deferred), 0); refused != nil {
		c.spoilAnywhere()
		return refused
	}
	args := c.args
	c.args = c.inItsPlace(row, args)
	reply := c.forward()
	c.args = args
	if reply == later {
		t.deferred = append(t.deferred, deferredCommand{at: t.there, cmd: row, args: slices.Clone(args)})
		t.there++
	}
	return reply
}

// inItsPlace returns what the upstream is to queue: the command itself, if it is to change the link as it changes the client's
// connection; else a command that changes nothing. The upstream may have more databases than the proxy lets the client select.
func (c *call) inItsPlace(row *command, args []string) []string {
	changes := row.full == "client|setname" || protocolOf(row, args) != 0
	if row.full == "select" {
		_, refused := c.parseDB(args[1])
		changes = refused == nil
	}
	if !changes {
		return []string{"PING"}
	}
	return args
}

// protocolOf is the protocol that a HELLO asks for, 0 if none.
func protocolOf(row *command, args []string) int64 {
	if row.name != "hello" || len(args) != 2 {
		return 0
	}
	if p, _ := wire.ParseInt(args[1]); p == 2 || p == 3 {
		return p
	}
	return 0
}

// divertEnd is for commands that are not queued.
func (c *call) divertEnd(cmd *command) Reply {
	t := &c.transaction
	if t.stage != queuingThere || cmd.name != "exec" && cmd.name != "discard" || !cmd.accepts(len(c.args)) {
		return nil
	}
	if cmd.name == "exec" && len(t.deferred) > 0 {
		return c.execThere()
	}
	reply := c.forward()
	if reply == later {
		t.end(&c.memory)
	}
	return reply
}

// execThere is EXEC of a transaction there that has commands of the proxy's own in it.
func (c *call) execThere() Reply {
	t := &c.transaction
	l, refused := c.connected()
	if refused != nil {
		return refused
	}
	sl := c.claimTogether(overlapAny, nil, made)
	if sl == nil {
		return wait
	}
	st := &settling{slot: sl, deferred: t.deferred, n: t.there}
	c.beginSettling(st)
	l.ask(expectation{n: 1, most: c.server.cfg.Limits.Output, take: func(reply []byte) {
		l.agreed(st, reply)
		sl.resolve(outcome{done: 1, reply: Raw(reply)})
		l.session.Kick()
	}}, "EXEC")
	t.end(&c.memory)
	return wait
}

// agreed takes note of the protocol that the upstream speaks now. The relay calls it.
func (l *link) agreed(st *settling, reply []byte) {
	_, items := splitItems(reply)
	for _, d := range st.deferred {
		if p := protocolOf(d.cmd, d.args); p != 0 && len(items) == st.n && !refusedThere(items[d.at]) {
			l.pushes = p == 3
		}
	}
}

func refusedThere(item []byte) bool { return item[messagesBefore(item)] == '-' }

// putDeferred is runDeferred for a transaction that took place at the upstream, whose reply has an item for each deferred command.
// If that item is an error, the command is not run.
func (c *call) putDeferred(st *settling, reply []byte) Raw {
	b, items := splitItems(reply)
	if len(items) != st.n {
		return reply // it did not take place
	}
	b = append([]byte(nil), b...)
	at := 0
	for i, item := range items {
		if at < len(st.deferred) && st.deferred[at].at == i {
			d := st.deferred[at]
			at++
			if !refusedThere(item) {
				b = append(b, item[:messagesBefore(item)]...)
				item = c.runThere(d).AppendTo(nil, c.resp3)
			}
		}
		b = append(b, item...)
	}
	return b
}

// runThere runs a deferred command, and notes how it has changed the link at the upstream.
func (c *call) runThere(d deferredCommand) Reply {
	l := c.link
	if p := protocolOf(d.cmd, d.args); p != 0 {
		l.greeting.RESP3 = p == 3
	}
	reply := c.runOneDeferred(d)
	switch d.cmd.full {
	case "select":
		l.greeting.DB = c.db
	case "client|setname":
		l.greeting.Name = c.name
	}
	return reply
}
