package resp

import (
	"errors"

	"lockproxy/resp/upstream"
)

// A question is a request of our own to the upstream; the client's reply is made from the reply to it. It goes over the session's
// trunk or, if the session shares none, over its link.
type question struct {
	slot   *slot
	answer func(reply []byte) Reply
	reply  []byte
}

var errReplyLong = errors.New("ERR the upstream's reply is longer than the " + sizeText(capturedMax) + " that lockproxy reads; ask the upstream itself")

// askThere puts the question and returns later. It returns wait if the question has to wait, or the error that is the reply.
func (c *call) askThere(answer func(reply []byte) Reply, args ...string) Reply {
	if !c.locksDone() {
		return wait
	}
	var l *link
	if c.sharesTrunk() {
		if reply := c.joinTrunk(); reply != nil {
			return reply
		}
	}
	if c.sharesTrunk() { // still: if there are too many trunks, joinTrunk has chosen a link
		if c.trunk.Full(c.session) {
			return wait
		}
	} else {
		var refused Reply
		if l, refused = c.connected(); refused != nil {
			return refused
		}
	}
	return c.beginKeyless(made, func(sl *slot) {
		c.server.counters.forwarded.Add(1)
		q := &question{slot: sl, answer: answer}
		request := upstream.AppendCommand(nil, args...)
		switch {
		case l != nil:
			l.ask(expectation{n: 1, take: q.take}, args...)
		case !c.trunk.Push(request, 1, q):
			q.Lost(errBroken)
		}
	})
}

// Replies gathers the reply.
func (q *question) Replies(b []byte, n int) {
	if len(q.reply) <= capturedMax {
		q.reply = append(q.reply, b...)
	}
	if n > 0 {
		q.take(q.reply)
	}
}

func (q *question) take(reply []byte) {
	if len(reply) > capturedMax {
		q.slot.resolve(outcome{err: errReplyLong})
		return
	}
	q.slot.resolve(outcome{reply: q.answer(reply)})
}

// Lost answers the client with an error. Its session goes on.
func (q *question) Lost(cause error) {
	s := q.slot.session.server
	s.countFailed(cause.Error())
	q.slot.resolve(outcome{err: upstream.ReplyError("ERR upstream " + s.cfg.Upstream.Addr() + ": " + cause.Error() + "; ask again")})
}
