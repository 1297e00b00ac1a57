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

// Protected mode, as in Redis: where no users are configured, clients on other machines are turned away. Clients over loopback are let in,
// and so are clients without an IP address, which are on this machine.

// errProtected has Redis's words as far as true of lockproxy: clients and people look for the words.
const errProtected = Error("DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. " +
	"In this mode connections are only accepted from the loopback interface. " +
	"If you want to connect from external computers to Redis you may adopt one of the following solutions: " +
	"1) Set up users with passwords for lockproxy: its setting users. " +
	"2) Let clients show a certificate: its settings tls_cert, tls_key and tls_client_ca. " +
	"3) Just disable protected mode by setting protected_mode to no in lockproxy's configuration file, or LOCKPROXY_PROTECTED_MODE=no, " +
	"or by restarting it with the '--protected-mode no' option, however MAKE SURE lockproxy is not publicly accessible from internet if you do so. " +
	"NOTE: You only need to do one of the above things in order for the server to start accepting connections from the outside.")

// isForbidden says whether protected mode turns the client away.
func isForbidden(cfg *Config, conn net.Conn) bool {
	if !cfg.ProtectedMode || len(cfg.Users) > 0 {
		return false
	}
	addr, ok := conn.RemoteAddr().(*net.TCPAddr)
	return ok && !addr.IP.IsLoopback() // true of ::ffff:127.0.0.1, too
}
