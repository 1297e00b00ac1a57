package resp

import (
	"io"
	"net"
	"sync"
	"time"

	"lockproxy/resp/upstream"
)

// refusals are clients being told why they are not served. Each client takes a file, so only a few are told at a time.
type refusals struct {
	places  chan struct{} // one place for each client being told
	running *sync.WaitGroup
}

// How many clients are told at once, and for how long at most.
const (
	refusalsMax = 16
	refusalTime = 100 * time.Millisecond
)

// tell tells a client why, after a wait for a place: accepting waits meanwhile. The caller has added one to running.
func (r *refusals) tell(conn net.Conn, why Error) {
	r.places <- struct{}{}
	go func() {
		defer r.running.Done()
		refuseWith(conn, why)
		<-r.places
	}()
}

// tellIfFree is tell for a stranger, who must not keep accepting waiting: without a free place, the connection just ends.
func (r *refusals) tellIfFree(conn net.Conn, why Error) {
	select {
	case r.places <- struct{}{}:
		r.running.Go(func() {
			refuseWith(conn, why)
			<-r.places
		})
	default:
		_ = conn.Close()
	}
}

// refuseWith tells a client the reason, reads the client's bytes until the client has gone, and closes the connection. Unread bytes would
// destroy the reason on its way. A client with TLS speaks first. All takes refusalTime at most.
func refuseWith(conn net.Conn, why Error) {
	_ = conn.SetDeadline(time.Now().Add(refusalTime))
	_, err := conn.Write(why.AppendTo(nil, false))
	if half, ok := conn.(interface{ CloseWrite() error }); ok && err == nil && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, conn, lingerBytes)
	}
	upstream.BreakOff(conn)
}
