package resp

// A transaction is at one place: here if it is about locks, at the upstream if it is about anything else. Which, its
// first command with keys decides, or a key that is watched there; those without keys that came before, which wait here,
// are sent on then. What the upstream queues, it answers by itself.

const errMixedTransaction = Error("ERR this transaction is about locks and about other keys: lockproxy keeps them on different servers; " +
	"make two of it, or let lock_keys match all of its keys or none")

// divertQueued is divert inside MULTI.
func (c *call) divertQueued(cmd *command, at place) Reply {
	t := &c.transaction
	if cmd != nil && cmd.flags&atOnce != 0 {
		return c.divertEnd(cmd)
	}
	row := cmd
	if row != nil && len(row.subs) > 0 && len(c.args) > 1 {
		row = row.sub(c.args[1])
	}
	keyless := row != nil && row.keys == (keySpec{})
	plain := keyless && row.accepts(len(c.args)) && inTransactions[row.full]
	switch {
	case plain && !t.upstream:
		return nil // its place is that of the first with keys
	case at == there && t.spoiled:
		return Status("QUEUED") // EXEC will be refused
	case plain, at == there:
		if !t.upstream {
			if refused := c.beginUpstream(); refused != nil {
				return refused
			}
		}
		reply := c.forward()
		if isError(reply) {
			t.spoil()
		}
		return reply
	case !t.upstream:
		return c.tooLarge()
	case keyless:
		c.spoilAnywhere()
		return Error("ERR lockproxy does not run '" + row.full + "' inside MULTI")
	}
	c.spoilAnywhere()
	return errMixedTransaction
}

// divertEnd is for commands that are not queued.
func (c *call) divertEnd(cmd *command) Reply {
	t := &c.transaction
	if !t.upstream || cmd.name != "exec" && cmd.name != "discard" || !cmd.accepts(len(c.args)) {
		return nil
	}
	reply := c.forward()
	if reply == later {
		t.end(&c.server.memory)
		c.watchesUpstream = false
		c.settleState()
	}
	return reply
}

// beginUpstream moves the transaction there.
func (c *call) beginUpstream() Reply {
	t := &c.transaction
	mixed := len(t.watched) > 0
	for _, q := range t.queue {
		mixed = mixed || q.step != nil || q.cmd.keys != keySpec{}
	}
	if mixed {
		t.spoil()
		return errMixedTransaction
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
	for _, q := range t.queue {
		l.ask(expectation{n: 1}, q.args...)
	}
	changes := t.changes
	t.end(&c.server.memory)
	t.open, t.upstream, t.changes = true, true, changes
	c.settleState()
	return nil
}

// spoilAnywhere notes that a command was refused: EXEC will be. What the upstream has queued it forgets.
func (c *call) spoilAnywhere() {
	t := &c.transaction
	if t.upstream && c.up != nil {
		c.up.ask(expectation{n: 1}, "DISCARD")
		t.upstream, c.watchesUpstream = false, false
		c.settleState()
	}
	t.spoil()
}
