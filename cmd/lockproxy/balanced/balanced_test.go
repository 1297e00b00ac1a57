package balanced

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// listen returns such a listener, and what it logs.
func listen(t *testing.T, networks []netip.Prefix) (net.Listener, *bytes.Buffer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	b := Listener(l, networks, slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { _ = b.Close() })
	return b, &log
}

// send connects, and sends the text.
func send(t *testing.T, l net.Listener, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

func accept(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func version2(t *testing.T, command proxyproto.ProtocolVersionAndCommand, from string) string {
	t.Helper()
	h := proxyproto.HeaderProxyFromAddrs(2, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from)), net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.1:6380")))
	if h.Command = command; strings.Contains(from, "]") {
		h = proxyproto.HeaderProxyFromAddrs(2, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from)), net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[::1]:6380")))
	}
	b, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAHeaderTellsTheClient(t *testing.T) {
	for name, test := range map[string]struct{ header, from string }{
		"version 1":                {"PROXY TCP4 203.0.113.7 10.0.0.1 5555 6380\r\n", "203.0.113.7:5555"},
		"version 1, IPv6":          {"PROXY TCP6 2001:db8::7 2001:db8::1 5555 6380\r\n", "[2001:db8::7]:5555"},
		"version 1, unknown":       {"PROXY UNKNOWN\r\n", "127.0.0.1"},
		"version 2":                {version2(t, proxyproto.PROXY, "203.0.113.7:5555"), "203.0.113.7:5555"},
		"version 2, IPv6":          {version2(t, proxyproto.PROXY, "[2001:db8::7]:5555"), "[2001:db8::7]:5555"},
		"the balancer's own check": {version2(t, proxyproto.LOCAL, "203.0.113.7:5555"), "127.0.0.1"},
		"none":                     {"", "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := listen(t, loopback)
			client := send(t, l, test.header+"PING\r\n")
			c := accept(t, l)
			if from := c.RemoteAddr().String(); !strings.HasPrefix(from, test.from) {
				t.Errorf("the client is %s, want %s", from, test.from)
			}
			_, _ = io.WriteString(client, "ECHO x\r\n")
			_ = client.(*net.TCPConn).CloseWrite()
			if rest, err := io.ReadAll(c); err != nil || string(rest) != "PING\r\nECHO x\r\n" {
				t.Errorf("read %q, %v", rest, err)
			}
		})
	}
}

func TestNobodyElseMayClaimAnAddress(t *testing.T) {
	l, _ := listen(t, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	client := send(t, l, "PROXY TCP4 203.0.113.7 10.0.0.1 5555 6380\r\n")
	_ = client.(*net.TCPConn).CloseWrite()
	c := accept(t, l)
	if from := c.RemoteAddr().String(); from != client.LocalAddr().String() {
		t.Errorf("the client is %s", from)
	}
	if all, _ := io.ReadAll(c); !strings.HasPrefix(string(all), "PROXY TCP4") {
		t.Errorf("read %q", all)
	}
}

func TestALateHeaderHoldsUpNobody(t *testing.T) {
	l, _ := listen(t, loopback)
	for range 20 {
		send(t, l, "PROXY TCP4 203.0.")
	}
	send(t, l, "PING\r\n")
	accept(t, l) // else the test ends by its own deadline
}

func TestABrokenHeaderEndsItsConnection(t *testing.T) {
	for _, header := range []string{
		"PROXY TCP4 999.0.113.7 10.0.0.1 5555 6380\r\n",
		"PROXY TCP4 203.0.113.7 10.0.0.1 5555 638000\r\n",
		"PROXY " + strings.Repeat("x", 5000) + "\r\n",
		"\r\n\r\n\x00\r\nQUIT\n\x99\x11\x00\x0c" + strings.Repeat("x", 12),
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x01x",
	} {
		l, log := listen(t, loopback)
		client := send(t, l, header)
		if _, err := client.Read(make([]byte, 1)); err == nil {
			t.Errorf("%.60q was answered", header)
		}
		_ = l.Close()
		if !strings.Contains(log.String(), "its header cannot be read") {
			t.Errorf("%.60q: the log says %s", header, log)
		}
	}
}

func TestCloseWaitsForNobody(t *testing.T) {
	l, _ := listen(t, loopback)
	send(t, l, "PROXY")
	began := time.Now()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took >= headerTimeout {
		t.Errorf("it took %v", took)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
}
