package resp

import (
	"net"
	"testing"
)

// A conn from elsewhere.
type connFrom struct {
	net.Conn
	addr net.Addr
}

func (c connFrom) RemoteAddr() net.Addr { return c.addr }

func TestWhomProtectedModeTurnsAway(t *testing.T) {
	user := []User{{Name: "bob", Password: func() string { return "x" }}}
	for _, c := range []struct {
		name   string
		cfg    Config
		addr   net.Addr
		denied bool
	}{
		{"another machine", Config{ProtectedMode: true}, &net.TCPAddr{IP: net.ParseIP("10.0.0.1")}, true},
		{"another machine, IPv6", Config{ProtectedMode: true}, &net.TCPAddr{IP: net.ParseIP("fd00::1")}, true},
		{"a neighbour", Config{ProtectedMode: true}, &net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}, true},
		{"IPv4 in IPv6", Config{ProtectedMode: true}, &net.TCPAddr{IP: net.ParseIP("::ffff:10.0.0.1")}, true},
		{"loopback", Config{ProtectedMode: true}, &net.TCPAddr{IP: net.ParseIP("127.8.9.1")}, false},
		{"loopback, IPv6", Config{ProtectedMode: true}, &net.TCPAddr{IP: net.ParseIP("::1")}, false},
		{"loopback, IPv4 in IPv6", Config{ProtectedMode: true}, &net.TCPAddr{IP: net.ParseIP("::ffff:127.0.0.1")}, false},
		{"a Unix socket", Config{ProtectedMode: true}, &net.UnixAddr{Name: "@"}, false},
		{"users", Config{ProtectedMode: true, Users: user}, &net.TCPAddr{IP: net.ParseIP("10.0.0.1")}, false},
		{"off", Config{}, &net.TCPAddr{IP: net.ParseIP("10.0.0.1")}, false},
	} {
		if got := isForbidden(&c.cfg, connFrom{addr: c.addr}); got != c.denied {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
