package main

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// A socket that drops all that arrives is as good as a machine without power. One that is not read confirms.
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
	control(t, gone, func(fd int) error {
		drop := []unix.SockFilter{{Code: unix.BPF_RET}}
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]})
	})
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
