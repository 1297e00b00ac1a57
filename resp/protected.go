package resp

import "net"

// Protected mode, as in Redis: where nobody needs to log in, clients on other machines are turned away. A client that comes over
// loopback is let in, and so is one without an IP address, which is on this machine.

// errProtected has Redis's words as far as these are true of lockproxy, for clients and people look for them.
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
	return ok && !addr.IP.IsLoopback() // of ::ffff:127.0.0.1, too
}
