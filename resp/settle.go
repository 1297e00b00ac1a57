package resp

import (
	"strings"
	"sync/atomic"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/pubsub"
)

// Commands without keys inside MULTI, as SELECT or PUBLISH, take effect only when it is known that the transaction has taken
// place. So EXEC has two parts. In the first, the engine, or the upstream, runs the commands with keys, while the session's reader
// waits. In the second, the reader runs the others and puts their replies in place.
//
// A lock that the first part took is undone if the client does not get the reply in time. So if there is one, the second part
// waits until all earlier replies are written, and is left out if the lock's validity is over by then.

// A settling is an EXEC under way.
type settling struct {
	slot     *slot // gets an outcome of each part
	deferred []deferredCommand
	n        int // how many commands were queued
}

// A deferredCommand is one that the proxy runs when EXEC has taken place.
type deferredCommand struct {
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
		c.runDeferred(st.deferred, reply, func() { sl.resolve(o) })
		return later
	case Raw:
		o.reply = c.putDeferred(st, reply)
	}
	sl.resolve(o)
	return later
}

// firstPartOf takes the outcome of the first part, if the second can be done now.
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

// isNext says whether the slot's reply is the next to be written. If not, the reader waits for the one before it. Messages do not
// count: there may be no end to them. s.mu is held.
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

// runDeferred runs the commands and puts their replies in place. If HELLO changes the protocol, the replies behind it are in
// the new one. done is called when what they publish is published.
func (c *call) runDeferred(rest []deferredCommand, replies Array, done func()) {
	resp3 := c.resp3
	var publishing []deferredCommand
	for i := range replies {
		if len(rest) > 0 && rest[0].at == i {
			switch d := rest[0]; {
			case d.cmd.group != "pubsub":
				replies[i] = c.runOneDeferred(d)
			case strings.HasPrefix(d.args[1], reservedPrefix):
				replies[i] = errOwnChannel
			default:
				publishing = append(publishing, d)
			}
			rest = rest[1:]
		}
		if c.resp3 != resp3 {
			replies[i] = spoken{replies[i], c.resp3}
		}
	}
	if len(publishing) == 0 {
		done()
		return
	}
	var answered atomic.Int32
	for _, d := range publishing {
		kind := pubsub.Channel
		if d.cmd.name == "spublish" {
			kind = pubsub.Shard
		}
		one := call{session: c.session, cmd: d.cmd, args: d.args}
		one.publishTo(kind, func(n int, err error) {
			if replies[d.at] = Int(n); err != nil {
				replies[d.at] = errorReply(err)
			}
			if int(answered.Add(1)) == len(publishing) {
				done()
			}
		})
	}
}

func (c *call) runOneDeferred(d deferredCommand) Reply {
	one := call{session: c.session, cmd: d.cmd, args: d.args}
	return d.cmd.run(&one)
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

func (r spoken) AppendTo(b []byte, _ bool) []byte { return r.Reply.AppendTo(b, r.resp3) }
