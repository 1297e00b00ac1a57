package resp

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/pubsub"
)

// Commands without keys inside MULTI take effect when it is known that the transaction has taken place: only then is the
// client in another database, or heard of with another name. So EXEC is in two parts: the engine, or the upstream, does
// what is about keys, while the session's reader waits; then the reader runs the others and puts their replies in place.
//
// Keys that were set are undone if the client does not get the reply, or not in time. So the second part waits until the
// replies before are written, and does not take place if it is too late by then.

// A settling is an EXEC under way.
type settling struct {
	slot *slot // it has one outcome of two when the first part is done
	ours []ownCommand
	n    int // how many commands were queued
}

// An ownCommand is one that the proxy runs when EXEC has taken place.
type ownCommand struct {
	at   int // its place among all that were queued
	cmd  *command
	args []string
}

// settle does the second part. It returns wait while the first is under way.
func (c *call) settle() Reply {
	st := c.settling
	sl := st.slot
	o, ready := c.firstPartOf(sl)
	if !ready {
		return wait
	}
	c.settling = nil
	if o.lock != nil && !time.Now().Before(o.lock.Until()) {
		c.server.counters.late.Add(1)
		o.abandon()
		o = outcome{err: quorum.ErrLate}
	}
	if o.err != nil || o.done == 0 {
		sl.resolve(o)
		return later
	}
	switch reply := o.reply.(type) {
	case Array:
		c.runOwn(st.ours, reply, func() { sl.resolve(o) })
		return later
	case Raw:
		o.reply = c.putOwn(st, reply)
	}
	sl.resolve(o)
	return later
}

// firstPartOf takes what the first part came to, if the second can be done now.
func (s *session) firstPartOf(sl *slot) (o outcome, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sl.left != 1 || s.gone || sl.out.lock != nil && !s.isNext(sl) {
		return outcome{}, false
	}
	if s.sentAll != nil {
		sl.withhold(&sl.out)
	}
	o, sl.out = sl.out, outcome{}
	return o, true
}

// isNext says whether the slot's reply is the next to be written. If not, the reader waits for the one before it. Messages are no
// replies, and there may be no end to them. s.mu is held.
func (s *session) isNext(sl *slot) bool {
	s.waitFor = nil
	for _, first := range [...]*slot{s.batch, s.head} {
		for other := first; other != nil && other != sl; other = other.next {
			if other.weight > 0 {
				s.waitFor = other
			}
		}
	}
	return s.waitFor == nil
}

// runOwn runs the commands and puts their replies in place. What HELLO comes to is for the replies behind it, too. done is
// called when what they publish is published.
func (c *call) runOwn(all []ownCommand, replies Array, done func()) {
	at, resp3 := 0, c.resp3
	var publishing []int
	for i := range replies {
		if at < len(all) && all[at].at == i {
			if own := all[at]; own.cmd.group == "pubsub" && strings.HasPrefix(own.args[1], reservedPrefix) {
				replies[i] = errOwnChannel
			} else if own.cmd.group == "pubsub" {
				publishing = append(publishing, at)
			} else {
				replies[i] = c.runOne(own)
			}
			at++
		}
		if c.resp3 != resp3 {
			replies[i] = spoken{replies[i], c.resp3}
		}
	}
	left := len(publishing)
	if left == 0 {
		done()
		return
	}
	var answered atomic.Int32
	for _, at := range publishing {
		own := all[at]
		kind := pubsub.Channel
		if own.cmd.name == "spublish" {
			kind = pubsub.Shard
		}
		one := call{session: c.session, cmd: own.cmd, args: own.args}
		one.publishTo(kind, func(n int, err error) {
			if replies[own.at] = Int(n); err != nil {
				replies[own.at] = errorReply(err)
			}
			if int(answered.Add(1)) == left {
				done()
			}
		})
	}
}

func (c *call) runOne(own ownCommand) Reply {
	one := call{session: c.session, cmd: own.cmd, args: own.args}
	return own.cmd.run(&one)
}

// putOwn does the same where the transaction took place at the upstream, which has answered something in each of the places.
// Where that is an error the command is not run.
func (c *call) putOwn(st *settling, reply []byte) Raw {
	b, items := splitItems(reply)
	if len(items) != st.n {
		return reply // it did not take place
	}
	b = append([]byte(nil), b...)
	at := 0
	for i, item := range items {
		if at < len(st.ours) && st.ours[at].at == i {
			own := st.ours[at]
			at++
			if item[0] != '-' {
				item = c.runThere(own).appendTo(nil, c.resp3)
			}
		}
		b = append(b, item...)
	}
	return b
}

// runThere runs a command that has changed the connection to the upstream in the same way.
func (c *call) runThere(own ownCommand) Reply {
	l := c.up
	if p := protocolOf(own.cmd, own.args); p != 0 {
		l.resp3 = p == 3
	}
	reply := c.runOne(own)
	switch own.cmd.full {
	case "select":
		l.db = c.db
	case "client|setname":
		l.name = c.name
	}
	return reply
}

// queueThere has the upstream queue something in a command's place: what changes the connection to it as the command does the
// client's, or else what changes nothing.
func (c *call) queueThere(row *command) Reply {
	t := &c.transaction
	if !c.locksDone() {
		return wait
	}
	if row.name == "hello" && len(c.args) > 2 {
		c.spoilAnywhere()
		return errNotInMulti("hello with options")
	}
	if len(t.ours) >= queuedMax || !c.retain(1) {
		c.spoilAnywhere()
		return c.errQueueFull()
	}
	args := c.args
	c.args = inItsPlace(row, args)
	reply := c.forward()
	c.args = args
	if reply == later {
		t.ours = append(t.ours, ownCommand{at: t.there, cmd: row, args: slices.Clone(args)})
		t.there++
	}
	return reply
}

// inItsPlace is what the upstream is to queue.
func inItsPlace(row *command, args []string) []string {
	if row.full == "select" || row.full == "client|setname" || protocolOf(row, args) != 0 {
		return args
	}
	return []string{"PING"}
}

// protocolOf is the protocol that a HELLO asks for, 0 if none.
func protocolOf(row *command, args []string) int64 {
	if row.name != "hello" || len(args) != 2 {
		return 0
	}
	p, ok := parseInt(args[1])
	if !ok || p < 2 || p > 3 {
		return 0
	}
	return p
}

// execThere is EXEC of a transaction there that has commands of the proxy's own in it.
func (c *call) execThere() Reply {
	t := &c.transaction
	if !c.locksDone() {
		return wait
	}
	l, refused := c.connected()
	if refused != nil {
		return refused
	}
	sl := c.claim(oneRound, "", made)
	if sl == nil {
		return wait
	}
	st := &settling{slot: sl, ours: t.ours, n: t.there}
	c.beginSettling(st)
	l.ask(expectation{n: 1, most: c.server.cfg.Limits.Output, take: func(reply []byte) {
		l.agreed(st, reply)
		sl.resolve(outcome{done: 1, reply: Raw(reply)})
		l.session.Kick()
	}}, "EXEC")
	t.end(&c.server.memory)
	c.watchesUpstream = false
	c.noteState()
	return wait
}

// agreed takes note of the protocol that the upstream speaks now. The relay calls it.
func (l *link) agreed(st *settling, reply []byte) {
	_, items := splitItems(reply)
	for _, own := range st.ours {
		if p := protocolOf(own.cmd, own.args); p != 0 && len(items) == st.n && items[own.at][0] != '-' {
			l.pushes = p == 3
		}
	}
}

func (c *call) beginSettling(st *settling) {
	c.mu.Lock()
	st.slot.left = 2
	c.mu.Unlock()
	c.settling = st
}

// spoken is a reply in a protocol of its own.
type spoken struct {
	Reply
	resp3 bool
}

func (r spoken) appendTo(b []byte, _ bool) []byte { return r.Reply.appendTo(b, r.resp3) }
