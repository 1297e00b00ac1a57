package masters

import (
	"bytes"
	"net"
	"time"
)

// A master may turn a connection away, because it has maxclients of them, or is in protected mode. Then the master says
// why and hangs up. Its words are read as the answer to HELLO, which servers may refuse. Or the words are not read at
// all, because the next command cannot be written any more.

// A heard connection keeps the first bytes, and takes no more bytes than a master's greeting has.
type heard struct {
	net.Conn
	first   []byte
	bytes   int
	greeted bool // the first words were said
}

// greetingMost is more than the answers to the first words have. A server that sends more is no Redis, and go-redis
// would keep all of the bytes as one line.
const greetingMost = 64 << 10

// firstMost is how many of the first bytes are kept. The first sentence of a refusal is no longer; protected mode adds
// 1 KB of advice.
const firstMost = 256

func (h *heard) Read(b []byte) (int, error) {
	if !h.greeted && h.bytes > greetingMost {
		return 0, errWire
	}
	n, err := h.Conn.Read(b)
	h.bytes += n
	if len(h.first) < firstMost {
		h.first = append(h.first, b[:min(n, firstMost-len(h.first))]...)
	}
	return n, err
}

// lastMoment is how long to wait for the words of a master that has hung up: the words are there, or will never come.
const lastMoment = 10 * time.Millisecond

// turnedAway returns the master's own reason for ending the connection, if the master gave one; else err. Call
// turnedAway when nothing else is read any more.
func (h *heard) turnedAway(err error) error {
	if isReply(err) || Describe(err) != "connection lost" {
		return err
	}
	if len(h.first) == 0 {
		_ = h.SetReadDeadline(time.Now().Add(lastMoment))
		_, _ = h.Read(make([]byte, firstMost))
	}
	line, _, whole := bytes.Cut(h.first, []byte("\r\n"))
	line, _, more := bytes.Cut(line, []byte(". "))
	text, refusal := bytes.CutPrefix(line, []byte("-"))
	if !refusal || !whole && !more {
		return err
	}
	return replyError(text)
}
