package resp

import (
	"errors"

	"lockproxy/resp/upstream"
)

// A question is a request of our own to the upstream, of whose reply we make the client's. It goes over the connection that
// the client's commands use: a shared one does for it.
type question struct {
	slot   *slot
	answer func(reply []byte) Reply
	reply  []byte
}

var errReplyLong = errors.New("ERR the upstream's reply is longer than lockproxy reads")

// askThere puts the question and returns later, or what the reply is at once.
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
	if c.sharesTrunk() { // still: there may be too many
		if c.trunk.Full(c.session) {
			return wait
		}
	} else {
		var refused Reply
		if l, refused = c.connected(); refused != nil {
			return refused
		}
	}
	return c.begin(oneRound, "", made, func(sl *slot) {
		c.server.counters.forwarded.Add(1)
		q := &question{slot: sl, answer: answer}
		request := upstream.AppendCommand(nil, args...)
		switch {
		case l != nil:
			l.ask(expectation{n: 1, take: q.take}, args...)
		case !c.trunk.Push(request, 1, q):
			q.Lost(errors.New("lost"))
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

// Lost says so to the client, which has lost nothing.
func (q *question) Lost(cause error) {
	q.slot.session.server.countFailed(cause.Error())
	q.slot.resolve(outcome{err: upstream.ReplyError("ERR upstream: " + cause.Error())})
}
