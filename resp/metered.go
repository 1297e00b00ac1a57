package resp

import (
	"net"
	"sync/atomic"
)

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

// delivered says that the bytes read have been delivered, or are of no more use.
func (m *metered) delivered() {
	for ; m.taken > 0; m.taken -= meterStep {
		m.account.give(meterStep)
		m.counted.Add(-meterStep)
	}
	m.held = 0
}
