package main

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// No test can cut the power of a client's machine: what the kernel is told to do then is read back.
func TestAClientThatVanishesIsNoticedInTime(t *testing.T) {
	for writeTimeout, unconfirmed := range map[time.Duration]int{time.Second: 30_000, time.Minute: 60_000} {
		l, err := listen("listen", "127.0.0.1:0", clientSockets(writeTimeout))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for option, want := range map[int]int{
			unix.TCP_USER_TIMEOUT: unconfirmed, unix.TCP_KEEPIDLE: 10, unix.TCP_KEEPINTVL: 5, unix.TCP_KEEPCNT: 4,
		} {
			if got := socketOption(t, c.(*net.TCPConn), unix.IPPROTO_TCP, option); got != want {
				t.Errorf("write_timeout %v: TCP option %d is %d, not %d", writeTimeout, option, got, want)
			}
		}
		if socketOption(t, c.(*net.TCPConn), unix.SOL_SOCKET, unix.SO_KEEPALIVE) == 0 {
			t.Error("nobody asks whether the client is there")
		}
	}
}

func socketOption(t *testing.T, c *net.TCPConn, level, option int) (value int) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { value, failed = unix.GetsockoptInt(int(fd), level, option) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	return value
}
