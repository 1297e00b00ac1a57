package resp

import (
	"strings"
	"time"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
)

// A call is one command being run. A handler must keep neither the call nor its args.
type call struct {
	session *session
	server  *Server
	named   *command // the row of the command's name; nil: the proxy has no such command
	cmd     *command // named, or the row of its subcommand; nil: the proxy has no such command
	args    []string
	began   time.Time
	runs    bool // the command has passed the checkpoints that may reject a command
}

// newReply returns a slot for the reply to the command.
func (c *call) newReply() *slot {
	sl := c.session.newReply()
	sl.row, sl.began, sl.runs = c.cmd, c.began, c.runs
	return sl
}

// key returns the resource of the name in the client's database.
func (c *call) key(name string) quorum.Key {
	return quorum.Key{DB: c.session.identity.db, Name: name}
}

// dispatch runs the command that the parser found.
func (r *reader) dispatch() {
	s := r.session
	most := s.server.cfg.Limits.Pipeline
	if !r.parser.Authed {
		most = min(most, depthBeforeAuth)
	}
	if !r.await(func() bool { return s.replies.admits(most) }) {
		return
	}
	if !s.memory.take(r.parser.Size) {
		s.refuse(errMemory)
		return
	}
	s.reserve = r.parser.Size
	c := &s.call
	c.args, c.named = r.parser.Args, s.server.commands.find(r.parser.Args[0])
	c.cmd = c.named.row(c.args)
	c.began, c.runs = time.Now(), false
	spoke := s.identity.resp3
	reply := c.run()
	if r.dropped {
		return
	}
	if reply != nil {
		sl := c.newReply()
		sl.leads = s.identity.resp3 != spoke // messages in the new protocol come behind the reply
		s.answerBy(sl, reply)
	}
	s.memory.give(s.reserve)
	s.reserve = 0
	s.server.counters.commands.Add(1)
	s.mute.advance()
}

// run takes the command past the checkpoints to its handler, which runs once. The answer is nil if a slot gets the reply, or if the
// connection ends without a reply.
func (c *call) run() Reply {
	for _, pass := range way {
		if answer, passes := pass(c); !passes {
			return answer
		}
	}
	return c.cmd.run(c)
}

// A checkpoint answers a command, or lets it pass to the next checkpoint.
type checkpoint func(c *call) (answer Reply, passes bool)

// way is a command's way: the checkpoints in the order in which a command passes them. Behind passKnown, a command has its row and a right
// number of arguments, and the client has logged in. For its own commands, the upstream checks name and arguments.
var way = [...]checkpoint{
	passAttack,      // an HTTP request ends the connection
	passCaching,     // no reply may be cached
	passConfirmed,   // a subscription that decides whether the command may be sent is confirmed first
	passUpstream,    // commands that are not about locks go upstream
	passKnown,       // row, arguments, login, reserved keys: as Redis checks
	passSubscribed,  // a subscribed RESP2 client may send little
	passLost,        // the loss of a held lock is told first
	passTransaction, // inside MULTI, the command is queued; a watched key is looked at together with its mark
}

func passAttack(c *call) (Reply, bool) {
	if c.named != nil || !isAttack(c.args[0]) {
		return nil, true
	}
	c.session.stop("an HTTP request")
	return nil, false
}

func passCaching(c *call) (Reply, bool) {
	if !c.session.caching {
		return nil, true
	}
	c.session.caching = false
	return rejected(c, errCaching), false
}

func passConfirmed(c *call) (Reply, bool) {
	return nil, !listensOnly(c, c.named) || c.session.reader.await(c.session.replies.locksDone)
}

func passKnown(c *call) (Reply, bool) {
	if c.cmd == nil && c.named != nil && wire.EqualFold(c.args[1], "help") {
		c.cmd = &command{name: "help", full: c.named.name + "|help", arity: 2, flags: loading | stale, run: runHelp}
	}
	if refused := check(c); refused != nil {
		return rejected(c, refused), false
	}
	return nil, true
}

// check makes Redis's checks before a command runs, in Redis's order.
func check(c *call) Reply {
	switch {
	case c.named == nil:
		warnUnknown(c)
		unknown := errUnknownCommand(c.args)
		if onLists[wire.Lower(c.args[0])] && c.server.cfg.Upstream == nil {
			unknown += whyNoLists
		}
		return unknown
	case c.cmd == nil:
		return errUnknownSubcommand(wire.Upper(c.named.name), c.args[1])
	case !c.cmd.accepts(len(c.args)):
		return errArity(c.cmd.full)
	case !c.session.reader.parser.Authed && c.cmd.flags&noAuth == 0:
		return errNoAuth
	}
	if name := c.cmd.keys.reserved(c.args); name != "" {
		return errReserved(name)
	}
	return nil
}

func passSubscribed(c *call) (Reply, bool) {
	if !listensOnly(c, c.cmd) {
		return nil, true
	}
	return rejected(c, errSubscribed(c.cmd.full)), false
}

func passLost(c *call) (Reply, bool) {
	if c.session.holds.lost.n.Load() > 0 {
		if refused := tellLost(c); refused != nil {
			return rejected(c, refused), false
		}
	}
	c.session.identity.last.Store(&c.cmd.full)
	return nil, true
}

func passTransaction(c *call) (Reply, bool) {
	t := &c.session.transaction
	if t.open() && c.cmd.flags&atOnce == 0 {
		return enqueue(c), false
	}
	c.runs = true
	if len(t.watched) > 0 {
		return runWatching(c)
	}
	return nil, true
}

// listensOnly says whether the row's command is closed to the client because of a subscription.
func listensOnly(c *call, row *command) bool {
	s := c.session
	return !s.identity.resp3 && s.subscriptions.any() && (row == nil || row.flags&subscribedToo == 0)
}

// rejected returns the reply to a refused command. The transaction, here or at the upstream, is spoiled; a refused EXEC ends the
// transaction.
func rejected(c *call, refused Reply) Reply {
	spoilAnywhere(c)
	if c.named == nil || c.named.name != "exec" {
		return refused
	}
	s := c.session
	if s.transaction.stage == watchingThere && s.uplink.link != nil {
		s.uplink.link.ask(expectation{n: 1}, "EXEC", "refused") // UNWATCH would be refused itself where the client has subscribed
	}
	s.transaction.end()
	text, _ := refused.(Error)
	return Error("EXECABORT Transaction discarded because of: " + strings.TrimPrefix(string(text), "ERR "))
}

// isAttack recognises an HTTP request: a web page made a browser talk to this port. Redis hangs up.
func isAttack(name string) bool {
	name = wire.Lower(name)
	return name == "post" || name == "host:"
}
