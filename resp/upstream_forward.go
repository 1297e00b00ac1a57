package resp

import (
	"bytes"
	"cmp"
	"errors"
	"strings"

	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
)

// The limits of a command that only passes through, as in Redis; Limits.Memory bounds it, too. The limits of a command on locks are
// Limits.Args, Limits.Bulk and Limits.Command.
const (
	passArgsMax  = 1 << 20
	passBytesMax = 512 << 20
)

// divert sends the command upstream if that is its place, and returns nil if it is served here.
func divert(c *call, cmd *command) Reply {
	at, refused := c.server.router.destination(c.args, cmd)
	if refused.is() {
		spoilAnywhere(c)
		return refusedBy(c, refused)
	}
	if at == there {
		c.session.line.Leave()
		noteThere(c, cmd)
	}
	if listensOnly(c, cmd) {
		return whileSubscribed(c, cmd)
	}
	if c.session.transaction.open() {
		return divertQueued(c, cmd, at)
	}
	if at == here {
		return divertHere(c, cmd)
	}
	if cmd != nil && cmd.name == "watch" && len(c.session.transaction.watched) > 0 {
		return split(c, errMixedTransaction)
	}
	reply := forward(c)
	switch {
	case reply == later && cmd != nil && cmd.name == "watch":
		c.session.transaction.stage = watchingThere
	case reply == later && wire.EqualFold(c.args[0], "monitor"):
		c.session.monitors.Store(true)
	case isError(reply) && cmd != nil && cmd.flags&betterThere != 0:
		return nil
	}
	return reply
}

// refusedBy is the reply to a command without a destination.
func refusedBy(c *call, r refusal) Reply {
	switch {
	case r.failed != nil:
		return c.server.upstreamFailed(r.failed)
	case r.split != "":
		return splitAs(c, r.reply, r.split)
	}
	return r.reply
}

// whileSubscribed refuses a command that only the upstream has: a subscribed client may not send it. It returns nil for any other,
// which is then refused as if there were no upstream.
func whileSubscribed(c *call, cmd *command) Reply {
	if cmd.row(c.args) != nil {
		return nil
	}
	if name := c.server.commandsThere().Name(c.args); name != nil && (cmd == nil || strings.Contains(*name, "|")) {
		return cmp.Or(unqueued(c), Reply(errSubscribed(*name)))
	}
	return nil
}

// noteThere notes the name of a command that goes upstream.
func noteThere(c *call, cmd *command) {
	if cmd != nil {
		if row := cmd.row(c.args); row != nil {
			cmd = row
		}
		c.session.identity.last.Store(&cmd.full)
		return
	}
	if name := c.server.commandsThere().Name(c.args); name != nil {
		c.session.identity.last.Store(name)
	}
}

// commandsThere returns what is known of the upstream's commands; nil if nothing is known, or there is no upstream.
func (s *Server) commandsThere() *upstream.Commands {
	if s.cfg.Upstream == nil {
		return nil
	}
	commands, _ := s.cfg.Upstream.Commands()
	return commands
}

// divertHere is for the commands of the proxy's own in which the upstream has a part.
func divertHere(c *call, cmd *command) Reply {
	if cmd == nil {
		return nil
	}
	switch cmd.name {
	case "multi", "unwatch":
		if c.session.transaction.stage != watchingThere || len(c.args) != 1 {
			return nil
		}
		reply := forward(c)
		switch {
		case reply != later:
		case cmd.name == "multi":
			c.session.transaction.stage = queuingThere
		default:
			c.session.transaction.stage = noMulti
		}
		return reply
	case "watch":
		if c.session.transaction.stage == watchingThere {
			return split(c, errMixedTransaction)
		}
	case "client":
		if actsOnOthers(cmd.row(c.args)) && !c.session.replies.repliesDone() {
			return wait
		}
	case "select":
		if reply := selectThere(c); reply != nil {
			return reply
		}
	case "script":
		return divertScript(c, cmd)
	}
	return tooLarge(c)
}

// actsOnOthers says whether the command does something to other clients: not before what the client waits for at the upstream has come, as
// on one Redis nothing that a client sends behind a BLPOP is done before.
func actsOnOthers(row *command) bool {
	if row == nil {
		return false
	}
	switch row.full {
	case "client|kill", "client|unblock":
		return true
	}
	return false
}

// tooLarge refuses a command for the proxy itself that exceeds the limits for these: the parser has let it pass for the upstream.
func tooLarge(c *call) Reply {
	l := &c.server.cfg.Limits
	large := len(c.args) > l.Args || c.session.parser.Size > l.Command
	for i := 0; i < len(c.args) && !large && c.session.parser.Size > l.Bulk; i++ {
		large = len(c.args[i]) > l.Bulk
	}
	if large {
		c.session.transaction.spoil()
		return Error("ERR a command that lockproxy serves itself is larger than max_args, max_bulk or max_command allow; raise them, or send less")
	}
	return nil
}

// divertScript loads and forgets scripts on both sides: the client uses one SHA-1 for both. The client gets the upstream's reply,
// or ours if the upstream cannot be reached.
func divertScript(c *call, cmd *command) Reply {
	if len(c.args) < 2 {
		return nil
	}
	sub := cmd.sub(c.args[1])
	if sub == nil || !sub.accepts(len(c.args)) {
		return nil
	}
	switch sub.name {
	case "exists":
		return scriptsExist(c)
	case "kill":
		return nil // which asks both sides
	}
	if sub.name == "load" { // the upstream may accept texts that masters refuse: these are asked when it is used on locks
		if s, err := c.server.scripts.Load(c.args[2]); err == nil {
			c.server.scripts.Keep(s)
		}
	} else {
		_ = sub.run(c)
	}
	c.session.line.Leave()
	if reply := forward(c); !isError(reply) {
		return reply
	}
	c.session.relies = true
	return nil // the command is run here once more, which changes nothing
}

// scriptsExist says 1 for each script that both sides have. First it gives the upstream the texts that the proxy has. A script that
// only the upstream has gets 0: an EVALSHA on locks would not find it.
func scriptsExist(c *call) Reply {
	known := runScriptExists(c).(Array)
	l, refused := c.session.connected()
	switch {
	case refused == wait, refused == later:
		return refused
	case refused != nil:
		c.session.relies = true
		return nil
	}
	c.session.relies = true
	return c.beginKeyless(made, func(sl *slot) {
		given := map[string]bool{}
		for _, sha := range c.args[2:] {
			if s, has := c.server.scripts.Lookup(sha); has && !given[s.SHA] {
				given[s.SHA] = true
				l.ask(expectation{n: 1}, "SCRIPT", "LOAD", s.Text)
			}
		}
		l.ask(expectation{n: 1, take: func(reply []byte) {
			_, there := splitItems(reply)
			for i := range known {
				if len(there) != len(known) || string(there[i]) != ":1\r\n" {
					known[i] = Int(0)
				}
			}
			sl.resolve(outcome{reply: known})
		}}, c.args...)
	})
}

// splitItems returns the header of an array, and its items, each with the messages before it; no items if it is anything else.
func splitItems(reply []byte) (head []byte, items [][]byte) {
	end := bytes.IndexByte(reply, '\n') + 1
	if reply[0] != '*' {
		return reply, nil
	}
	var f wire.Framer
	for rest := reply[end:]; len(rest) > 0; {
		before := messagesBefore(rest)
		n, ends, err := f.Next(rest[before:])
		if err != nil || !ends {
			return reply, nil
		}
		n += before
		items, rest = append(items, rest[:n]), rest[n:]
	}
	return reply[:end], items
}

// messagesBefore returns how many bytes of b are messages that come before an item: see wire.Framer.
func messagesBefore(b []byte) (n int) {
	var f wire.Framer
	for n < len(b) && b[n] == '>' {
		k, ends, err := f.Next(b[n:])
		if err != nil || !ends {
			return n
		}
		n += k
	}
	return n
}

// forward sends the command upstream. It returns wait while commands on locks, which came before, are under way.
func forward(c *call) Reply {
	if !c.session.replies.locksDone() {
		return wait
	}
	l, refused := c.session.connected()
	if refused != nil {
		return refused
	}
	if !l.mayWait && mayWaitThere(c) {
		l.mayWait = true
		l.ask(expectation{n: 1, take: l.takeID}, "CLIENT", "ID")
	}
	if !l.pushRelayed() {
		return later // the session is ending
	}
	c.session.relies = c.session.relies || leavesSomething(c)
	l.send(c.args)
	c.server.counters.forwarded.Add(1)
	return later
}

// leavesSomething says whether the client may take for granted from here on that the upstream has something which is no data: a script,
// a function, a setting. A server that restarts forgets that and ends its connections, by which client libraries know.
func leavesSomething(c *call) bool {
	if row := c.server.commands.find(c.args[0]); row != nil {
		return row.group == "scripting" || row.name == "config" && len(c.args) > 1 && !wire.EqualFold(c.args[1], "get")
	}
	return !c.server.commandsThere().Stateless(c.args)
}

// mayWaitThere says whether the command may wait at the upstream for something that others do. Inside MULTI none does.
func mayWaitThere(c *call) bool {
	if c.session.transaction.stage == queuingThere {
		return false
	}
	if row := c.server.commands.find(c.args[0]); row != nil {
		return row.name == "wait"
	}
	return c.server.commandsThere().MayWait(c.args)
}

// upstreamFailed is the reply to a command that could not be sent. To client libraries, LOADING means a server that will be ready
// soon. Those that try again, or wait, when a Redis is gone do the same here: go-redis, and redis-py for the workers of Celery and
// RQ. That is safe, as nothing of the command was sent. An upstream that refuses the connection, as for a wrong password, would
// refuse it again, so its own error is the reply; unless it says that it cannot serve for the time being. The error begins with ERR:
// upon NOAUTH a client would look for what is wrong with its own login. That it is busy with a script, it says to all.
func (s *Server) upstreamFailed(err error) Reply {
	s.countFailed(err.Error())
	refused, ok := errors.AsType[upstream.ReplyError](err)
	switch {
	case ok && refused.WantsLogin():
		return Error("ERR the user and password in lockproxy's setting upstream are missing or wrong: " + err.Error())
	case ok && refused.Busy():
		return Error(refused)
	case ok && !refused.Passing():
		return Error("ERR " + err.Error())
	}
	return Error("LOADING " + err.Error())
}

// upstreamLost ends the session, whose client waits for replies that will not come. The log has one line for all such sessions.
func (s *session) upstreamLost(cause string) {
	if s.replies.isGone() {
		return
	}
	s.server.countFailed(cause)
	s.hangUp("upstream lost: " + cause)
}

func isError(r Reply) bool {
	_, ok := r.(Error)
	return ok
}
