package main

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/cmd/lockproxy/renewed"
	"lockproxy/resp/upstream"
)

// No test can cut the power of a client's machine: what the kernel is told to do where nothing is sent is read back.
func TestTheKernelAsksWhetherASilentClientIsThere(t *testing.T) {
	l, err := listen("listen", "127.0.0.1:0", clientSockets())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, c := connect(t, l)
	for option, want := range map[int]int{unix.TCP_KEEPIDLE: 10, unix.TCP_KEEPINTVL: 5, unix.TCP_KEEPCNT: 4} {
		if got := socketOption(t, c.(*net.TCPConn), unix.IPPROTO_TCP, option); got != want {
			t.Errorf("TCP option %d is %d, not %d", option, got, want)
		}
	}
	if socketOption(t, c.(*net.TCPConn), unix.SOL_SOCKET, unix.SO_KEEPALIVE) == 0 {
		t.Error("nobody asks whether the client is there")
	}
}

// A client that does not read confirms what arrives, one that is gone does not.
func TestAClientThatConfirmsNothingIsCutOffAndASlowOneIsNot(t *testing.T) {
	l, err := listen("listen", "127.0.0.1:0", clientSockets())
	if err != nil {
		t.Fatal(err)
	}
	l = endVanished(l, 300*time.Millisecond)
	defer l.Close()
	slow, toSlow := connect(t, l)
	gone, toGone := connect(t, l)
	const much = 16 << 20 // more than the kernel takes
	go func() { _, _ = toSlow.Write(make([]byte, much)) }()
	dropAll(t, gone)
	if _, err := toGone.Write([]byte("+OK\r\n")); err != nil {
		t.Fatal(err)
	}
	_ = toGone.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := toGone.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection of a client that is gone: %v", err)
	}
	if n, err := io.Copy(io.Discard, io.LimitReader(slow, much)); err != nil || n != much {
		t.Errorf("a client that read nothing for a while got %d bytes, %v", n, err)
	}
}

// A client whose own connection leads to an upstream that vanished would wait for a quarter of an hour.
func TestTheConnectionsToTheUpstreamAreWatched(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	come := make(chan *net.TCPConn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "+PONG\r\n")
		come <- c.(*net.TCPConn)
	}()
	watch := keepLookout(300 * time.Millisecond)
	defer watch.end()
	cfg := &config.Config{DialTimeout: 20 * time.Second}
	cfg.Upstream.Addr = l.Addr().String()
	to, err := upstreamOf(cfg, renewed.Certificates{}, watch, slog.New(slog.DiscardHandler)).Dial(t.Context(), upstream.Greeting{})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	there := <-come
	defer there.Close()
	dropAll(t, there)
	if _, err := io.WriteString(to, "GET data\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = to.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := to.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection to an upstream that is gone: %v", err)
	}
}

// dropAll makes the socket as good as a machine without power.
func dropAll(t *testing.T, c *net.TCPConn) {
	t.Helper()
	control(t, c, func(fd int) error {
		drop := []unix.SockFilter{{Code: unix.BPF_RET}}
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]})
	})
}

// connect returns both ends of a connection.
func connect(t *testing.T, l net.Listener) (client *net.TCPConn, server net.Conn) {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return c.(*net.TCPConn), server
}

func socketOption(t *testing.T, c *net.TCPConn, level, option int) (value int) {
	t.Helper()
	control(t, c, func(fd int) (err error) {
		value, err = unix.GetsockoptInt(fd, level, option)
		return err
	})
	return value
}

func control(t *testing.T, c *net.TCPConn, f func(fd int) error) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}
