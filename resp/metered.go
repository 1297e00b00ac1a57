package resp

import (
	"net"
	"sync/atomic"
)

// Metered returns l for a TLS listener on top of it. Thus the memory budget counts what TLS holds of a message that has not arrived whole:
// the messages of a handshake may have up to 256 KB.
func Metered(l net.Listener) net.Listener { return meteredListener{l} }

type meteredListener struct{ net.Listener }

func (l meteredListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &metered{Conn: c, free: handshakeFree}, nil
}

// A metered connection counts what is read from it and not delivered yet. Only the session's reader uses it, once there is a session.
type metered struct {
	net.Conn
	account *account
	counted *atomic.Int64 // what is counted of the client's input
	free    int           // how much is not counted
	held    int           // read, and not delivered
	taken   int           // from the account
}

// What is not counted: what an orderly handshake takes, and after that a record. meterStep is the step in which the rest is counted.
const (
	handshakeFree = 4 << 10
	recordFree    = 20 << 10
	meterStep     = 4 << 10
)

// Read fails if there is no room for what has arrived.
func (m *metered) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	if m.account == nil {
		return n, err
	}
	m.held += n
	for 2*(m.held-m.free) > m.taken { // TLS gathers it in a buffer that doubles
		if !m.account.take(meterStep) {
			return 0, errMemory
		}
		m.taken += meterStep
		m.counted.Add(meterStep)
	}
	return n, err
}

// delivered says that what was read has been delivered, or is of no more use.
func (m *metered) delivered() {
	for ; m.taken > 0; m.taken -= meterStep {
		m.account.give(meterStep)
		m.counted.Add(-meterStep)
	}
	m.held = 0
}
