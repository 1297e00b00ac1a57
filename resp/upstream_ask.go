package resp

import (
	"errors"

	"lockproxy/resp/wire"
)

var errReplyLong = errors.New("ERR the upstream's reply is longer than the " + wire.SizeText(capturedMax) + " that lockproxy reads; ask the upstream itself")

// askThere sends a request of the proxy's own over the session's link. answer makes the client's reply of the upstream's reply. askThere
// returns nil, or an error as the client's reply.
func askThere(c *call, answer func(reply []byte) Reply, args ...string) Reply {
	if !c.session.reader.await(c.session.replies.locksDone) {
		return nil
	}
	l, refused := c.session.uplink.connected()
	if refused != nil {
		return refused
	}
	return c.beginKeyless(made, func(sl *slot) {
		c.server.counters.forwarded.Add(1)
		l.ask(expectation{n: 1, take: func(reply []byte) {
			if len(reply) > capturedMax {
				sl.resolve(outcome{err: errReplyLong})
				return
			}
			sl.resolve(outcome{reply: answer(reply)})
		}}, args...)
	})
}
