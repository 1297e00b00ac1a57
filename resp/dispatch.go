package resp

import (
	"strings"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
)

// A call is one command being run. Handlers get it, and must not keep it or its args.
type call struct {
	session *session
	server  *Server
	cmd     *command
	args    []string
}

// key returns the resource of that name in the client's database.
func (c *call) key(name string) quorum.Key { return quorum.Key{DB: c.session.identity.db, Name: name} }

func (c *call) engine() Engine { return c.server.engine }

// dispatch runs the command that the parser found. If it returns false, the command has to wait, and dispatch is called again for it.
func (s *session) dispatch() bool {
	if !s.replies.admits(s.pipeline()) {
		return false
	}
	memory := &s.memory
	if s.reserve == 0 {
		if !memory.take(s.parser.Size) {
			s.refuse(errMemory)
			return true
		}
		s.reserve = s.parser.Size
	}
	c := &s.call
	c.args = s.parser.Args
	spoke := s.identity.resp3
	reply := c.perform()
	switch reply {
	case wait:
		return false
	case later:
	default:
		sl := s.newReply()
		sl.leads = s.identity.resp3 != spoke // messages are in the new protocol from here on, and do not come before the client is told
		s.answerBy(sl, reply)
	}
	memory.give(s.reserve)
	s.reserve = 0
	s.compiling = nil
	s.server.counters.commands.Add(1)
	s.mute.advance()
	return true
}

// perform finds the command's row, checks what Redis checks before a command runs, in Redis's order, and runs it.
func (c *call) perform() Reply {
	c.cmd = nil
	cmd := c.server.commands.find(c.args[0])
	if cmd == nil && isAttack(c.args[0]) {
		c.session.stop("an HTTP request")
		return later
	}
	if cmd.row(c.args) == nil {
		c.session.line.Leave() // the upstream may have to be asked what it is
	}
	if c.session.caching {
		c.session.caching = false
		return rejected(c, cmd, errCaching)
	}
	if listensOnly(c, cmd) && !c.session.replies.locksDone() {
		return wait // the subscription may be refused yet
	}
	if c.server.cfg.Upstream != nil && c.session.parser.Authed {
		if reply := divert(c, cmd); reply != nil {
			return reply
		}
	}
	row, refused := check(c, cmd)
	if refused != nil {
		return rejected(c, cmd, refused)
	}
	if listensOnly(c, row) {
		return rejected(c, cmd, errSubscribed(row.full))
	}
	if c.session.holds.lost.any() {
		if refused := tellLost(c, row); refused != nil {
			return rejected(c, cmd, refused)
		}
	}
	c.cmd = row
	c.session.identity.last.Store(&row.full)
	if c.session.transaction.open() && row.flags&atOnce == 0 {
		return enqueue(c)
	}
	if len(c.session.transaction.watched) > 0 {
		return watching(c)
	}
	return row.run(c)
}

// listensOnly says whether the client may not send the command because it has subscribed to something.
func listensOnly(c *call, cmd *command) bool {
	return !c.session.identity.resp3 && c.session.subscriptions.any() && (cmd == nil || cmd.flags&subscribedToo == 0)
}

// rejected returns the reply to a refused command. It spoils the transaction, wherever that is; a refused EXEC ends it.
func rejected(c *call, cmd *command, refused Reply) Reply {
	spoilAnywhere(c)
	if cmd == nil || cmd.name != "exec" {
		return refused
	}
	if c.session.transaction.stage == watchingThere && c.session.link != nil {
		c.session.link.ask(expectation{n: 1}, "EXEC", "refused") // UNWATCH would be refused itself where the client has subscribed
	}
	c.session.transaction.end(&c.session.memory)
	text, _ := refused.(Error)
	return Error("EXECABORT Transaction discarded because of: " + strings.TrimPrefix(string(text), "ERR "))
}

// check returns the row of the command or of its subcommand, or what it is refused with before it runs.
func check(c *call, cmd *command) (row *command, refused Reply) {
	if cmd == nil {
		warnUnknown(c)
		unknown := errUnknownCommand(c.args)
		if onLists[wire.Lower(c.args[0])] && c.server.cfg.Upstream == nil {
			unknown += whyNoLists
		}
		return nil, unknown
	}
	row = cmd.row(c.args)
	if row == nil && wire.EqualFold(c.args[1], "help") {
		row = &command{name: "help", full: cmd.name + "|help", arity: 2, flags: loading | stale, run: runHelp}
	}
	switch {
	case row == nil:
		return nil, errUnknownSubcommand(wire.Upper(cmd.name), c.args[1])
	case !row.accepts(len(c.args)):
		return nil, errArity(row.full)
	case !c.session.parser.Authed && row.flags&noAuth == 0:
		return nil, errNoAuth
	}
	if name := row.keys.reserved(c.args); name != "" {
		return nil, errReserved(name)
	}
	return row, nil
}

// isAttack recognises an HTTP request: a web page made somebody's browser talk to this port. Redis hangs up.
func isAttack(name string) bool {
	name = wire.Lower(name)
	return name == "post" || name == "host:"
}

// answer queues a reply that is known at once. The writer is woken when the commands that arrived together have run.
func (s *session) answer(reply Reply) { s.answerBy(s.newReply(), reply) }

// answerBy is answer by that slot.
func (s *session) answerBy(sl *slot, reply Reply) {
	sl.out.reply, sl.weight = reply, 1
	if spent := s.replies.add(sl, reply.Size()); spent != "" {
		s.kill(spent)
	}
}
