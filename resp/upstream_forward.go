package resp

import (
	"bytes"
	"cmp"
	"errors"
	"strings"

	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
)

// The limits of a command for the upstream, as in Redis; Limits.Memory applies, too. Commands on locks have Limits.Args, Limits.Bulk and
// Limits.Command.
const (
	passArgsMax  = 1 << 20
	passBytesMax = 512 << 20
)

// passUpstream sends the command upstream if the command's destination is there.
func passUpstream(c *call) (Reply, bool) {
	s := c.session
	if c.server.router == nil || !s.reader.parser.Authed {
		return nil, true
	}
	if c.cmd == nil {
		s.reader.line.Leave() // the router may have to ask the upstream about the command
	}
	at, refused := c.server.router.destination(c.args, c.named)
	if refused.is() {
		spoilAnywhere(c)
		return refusedBy(c, refused), false
	}
	if at == there {
		s.reader.line.Leave()
		noteThere(c)
	}
	switch {
	case listensOnly(c, c.named):
		return whileSubscribed(c)
	case s.transaction.open():
		return queueAnywhere(c, at)
	case at == here:
		return partThere(c)
	case c.isNamed("watch") && len(s.transaction.watched) > 0:
		return split(c, errMixedTransaction), false
	}
	reply := forward(c)
	switch {
	case isError(reply):
		return reply, c.named != nil && c.named.flags&betterThere != 0
	case c.isNamed("watch"):
		s.transaction.stage = watchingThere
	case wire.EqualFold(c.args[0], "monitor"):
		s.uplink.monitors.Store(true)
	}
	return nil, false
}

// isNamed says whether the command is the proxy's command of that name.
func (c *call) isNamed(name string) bool { return c.named != nil && c.named.name == name }

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

// whileSubscribed refuses an upstream's command from a subscribed client. A command in the proxy's own table passes, to be refused as
// without an upstream.
func whileSubscribed(c *call) (Reply, bool) {
	if c.cmd != nil {
		return nil, true
	}
	if name := c.server.commandsThere().Name(c.args); name != nil && (c.named == nil || strings.Contains(*name, "|")) {
		return cmp.Or(unqueued(c), Reply(errSubscribed(*name))), false
	}
	return nil, true
}

// noteThere notes the name of a command for the upstream.
func noteThere(c *call) {
	if row := cmp.Or(c.cmd, c.named); row != nil {
		c.session.identity.last.Store(&row.full)
	} else if name := c.server.commandsThere().Name(c.args); name != nil {
		c.session.identity.last.Store(name)
	}
}

// commandsThere returns the upstream's command table; nil if the table is unknown, or there is no upstream.
func (s *Server) commandsThere() *upstream.Commands {
	if s.cfg.Upstream == nil {
		return nil
	}
	commands, _ := s.cfg.Upstream.Commands()
	return commands
}

// partThere handles the proxy's own commands in which the upstream has a part.
func partThere(c *call) (Reply, bool) {
	if c.named == nil {
		return nil, true
	}
	s := c.session
	switch c.named.name {
	case "multi", "unwatch":
		if s.transaction.stage != watchingThere || len(c.args) != 1 {
			return nil, true
		}
		reply := forward(c)
		switch {
		case isError(reply):
		case c.named.name == "multi":
			s.transaction.stage = queuingThere
		default:
			s.transaction.stage = noMulti
		}
		return reply, false
	case "watch":
		if s.transaction.stage == watchingThere {
			return split(c, errMixedTransaction), false
		}
	case "client":
		if actsOnOthers(c.cmd) && !s.reader.await(s.replies.repliesDone) {
			return nil, false
		}
	case "select":
		if refused := selectThere(c); refused != nil {
			return refused, false
		}
	case "script":
		return scriptThere(c)
	}
	return fitting(c)
}

// actsOnOthers says whether the command acts on other clients. Such a command waits until the client has its earlier replies from the
// upstream, because one Redis runs nothing behind a client's blocked BLPOP.
func actsOnOthers(row *command) bool {
	return row != nil && (row.full == "client|kill" || row.full == "client|unblock")
}

// fitting refuses a command for the proxy itself above the proxy's limits. The parser lets larger commands pass for the upstream.
func fitting(c *call) (Reply, bool) {
	l, size := &c.server.cfg.Limits, c.session.reader.parser.Size
	large := len(c.args) > l.Args || size > l.Command
	for i := 0; i < len(c.args) && !large && size > l.Bulk; i++ {
		large = len(c.args[i]) > l.Bulk
	}
	if !large {
		return nil, true
	}
	c.session.transaction.spoil()
	return Error("ERR a command that lockproxy serves itself is larger than max_args, max_bulk or max_command allow; raise them, or send less"), false
}

// scriptThere loads and forgets scripts on both sides, because the client uses one SHA-1 for both. The client gets the upstream's reply, or
// the proxy's if the upstream cannot be reached.
func scriptThere(c *call) (Reply, bool) {
	if c.cmd == nil || c.cmd == c.named || !c.cmd.accepts(len(c.args)) {
		return nil, true
	}
	switch c.cmd.name {
	case "exists":
		return scriptsExist(c)
	case "load": // the upstream may accept texts refused by masters: masters are asked when a script is used on locks
		if s, err := c.server.scripts.Load(c.args[2]); err == nil {
			c.server.scripts.Keep(s)
		}
	case "flush":
		_ = runScriptFlush(c)
	default:
		return nil, true // KILL asks both sides
	}
	c.session.reader.line.Leave()
	reply := forward(c)
	if isError(reply) {
		c.session.uplink.relies = true
		return nil, true // the proxy alone knows the script, or forgets it
	}
	return reply, false
}

// scriptsExist answers 1 for each script on both sides, after the proxy's texts were loaded upstream. A script on the upstream alone gets
// 0: an EVALSHA on locks would not find the text.
func scriptsExist(c *call) (Reply, bool) {
	l, refused := c.session.uplink.connected()
	c.session.uplink.relies = true
	if refused != nil {
		return nil, true
	}
	known := runScriptExists(c).(Array)
	return c.beginKeyless(made, func(sl *slot) {
		given := map[string]bool{}
		for _, sha := range c.args[2:] {
			if s, has := c.server.scripts.Lookup(sha); has && !given[s.SHA] {
				given[s.SHA] = true
				l.ask(expectation{n: 1}, "SCRIPT", "LOAD", s.Text)
			}
		}
		l.ask(expectation{n: 1, take: func(reply []byte) {
			items := splitItems(reply)
			for i := range known {
				if len(items) != len(known) || string(items[i]) != ":1\r\n" {
					known[i] = Int(0)
				}
			}
			sl.resolve(outcome{reply: known})
		}}, c.args...)
	}), false
}

// splitItems returns the items of an array; none for any other reply.
func splitItems(reply []byte) (items [][]byte) {
	if reply[0] != '*' {
		return nil
	}
	var f wire.Framer
	for rest := reply[bytes.IndexByte(reply, '\n')+1:]; len(rest) > 0; {
		n, ends, err := f.Next(rest)
		if err != nil || !ends {
			return nil
		}
		items, rest = append(items, rest[:n]), rest[n:]
	}
	return items
}

// forward sends the command upstream, behind earlier commands on locks. An error is the reply; nil means sent.
func forward(c *call) Reply {
	if !c.session.reader.await(c.session.replies.locksDone) {
		return errEnding
	}
	l, refused := c.session.uplink.connected()
	if refused != nil {
		return refused
	}
	if !l.mayWait && mayWaitThere(c) {
		l.mayWait = true
		l.ask(expectation{n: 1, take: l.takeID}, "CLIENT", "ID")
	}
	if !l.pushRelayed() {
		return errEnding
	}
	c.session.uplink.relies = c.session.uplink.relies || leavesSomething(c)
	l.send(c.args)
	c.server.counters.forwarded.Add(1)
	return nil
}

// leavesSomething says whether the client may rely on the command's effect at the upstream other than data: a script, a function, a
// setting. A server that restarts forgets such things and ends its connections, which tells client libraries.
func leavesSomething(c *call) bool {
	if row := c.named; row != nil {
		return row.group == "scripting" || row.name == "config" && len(c.args) > 1 && !wire.EqualFold(c.args[1], "get")
	}
	return !c.server.commandsThere().Stateless(c.args)
}

// mayWaitThere says whether the command may block at the upstream, waiting for other clients. Inside MULTI no command blocks.
func mayWaitThere(c *call) bool {
	if c.session.transaction.stage == queuingThere {
		return false
	}
	if c.named != nil {
		return c.named.name == "wait"
	}
	return c.server.commandsThere().MayWait(c.args)
}

// upstreamFailed is the reply to a command that could not be sent. LOADING tells client libraries that the server will be ready soon. Some
// retry or wait when a Redis is gone, and do the same on LOADING: go-redis, and redis-py for the workers of Celery and RQ. A retry is safe,
// as nothing of the command was sent.
//
// An upstream that refuses the connection, as for a wrong password, would refuse again. So the upstream's own error is the reply, unless
// the error is temporary. The reply begins with ERR: upon NOAUTH a client would suspect its own login. BUSY, an upstream's answer to every
// client while a script runs, is passed on unchanged.
func (s *Server) upstreamFailed(err error) Reply {
	s.journal.upstreamFailed(s.cfg.Upstream, err.Error())
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

func isError(r Reply) bool {
	_, ok := r.(Error)
	return ok
}
