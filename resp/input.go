package resp

import (
	"net"
	"sync/atomic"
)

// An input has the bytes from a client that the parser has not consumed. The input grows as bytes arrive, never by an announced length, and
// shrinks back when empty, so that an idle connection costs little.
type input struct {
	buf    []byte
	r, w   int // buf[r:w] is unconsumed
	memory *account
	// counted is the part of the client's memory for its input; other goroutines read the number.
	counted atomic.Int64
}

const (
	inputSize = 4 << 10 // of an idle connection
	inputKeep = 8 << 10 // larger buffers are given back when empty
)

// bytes returns the unconsumed bytes, valid until room or consume is called.
func (in *input) bytes() []byte { return in.buf[in.r:in.w] }

// len returns the number of unconsumed bytes.
func (in *input) len() int { return in.w - in.r }

// consume drops the first n bytes.
func (in *input) consume(n int) {
	in.r += n
	if in.r == in.w {
		in.r, in.w = 0, 0
		if len(in.buf) > inputKeep {
			in.release()
		}
	}
}

// room returns space to read into, at w, and false if the memory budget is spent.
func (in *input) room() ([]byte, bool) {
	switch {
	case in.buf == nil:
		in.buf = make([]byte, inputSize)
	case in.w < len(in.buf):
	case in.r >= len(in.buf)/2:
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	default:
		size := 2 * len(in.buf)
		if !in.memory.take(size) {
			return nil, false
		}
		bigger := make([]byte, size)
		n := copy(bigger, in.bytes())
		in.release()
		in.buf, in.r, in.w = bigger, 0, n
		in.counted.Add(int64(size))
	}
	return in.buf[in.w:], true
}

// release gives the buffer back.
func (in *input) release() {
	if len(in.buf) > inputSize {
		in.memory.give(len(in.buf))
		in.counted.Add(-int64(len(in.buf)))
	}
	in.buf, in.r, in.w = nil, 0, 0
}

// Metered returns l for a TLS listener on top. Thus the memory budget counts the bytes that TLS holds of incomplete messages: a message of
// a handshake may have up to 256 KB.
func Metered(l net.Listener) net.Listener { return meteredListener{l} }

type meteredListener struct{ net.Listener }

func (l meteredListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &metered{Conn: c, free: handshakeFree}, nil
}

// A metered connection counts the bytes read and not delivered yet. Once there is a session, only the session's reader uses the connection.
type metered struct {
	net.Conn
	account *account
	counted *atomic.Int64 // the counted part of the client's input
	free    int           // how many bytes are not counted
	held    int           // bytes read, and not delivered
	taken   int           // bytes taken from the account
}

// The bytes not counted: an orderly handshake's, and after the handshake a record's. meterStep is the step in which the rest is counted.
const (
	handshakeFree = 4 << 10
	recordFree    = 20 << 10
	meterStep     = 4 << 10
)

// Read fails if there is no room for the bytes read.
func (m *metered) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	if m.account == nil {
		return n, err
	}
	m.held += n
	for 2*(m.held-m.free) > m.taken { // TLS gathers the bytes in a buffer that doubles
		if !m.account.take(meterStep) {
			return 0, errMemory
		}
		m.taken += meterStep
		m.counted.Add(meterStep)
	}
	return n, err
}

// delivered says that the bytes read have been delivered, or are of no more use. A nil m has read none.
func (m *metered) delivered() {
	if m == nil {
		return
	}
	for ; m.taken > 0; m.taken -= meterStep {
		m.account.give(meterStep)
		m.counted.Add(-meterStep)
	}
	m.held = 0
}
