package masters

import (
	"bytes"
	"net"
	"regexp"
	"testing"
)

// As some proxies do upon what they do not know. It may be an upstream all the same.
func TestAServerMayHangUpWhenItIsAskedWhetherItIsALockproxy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^\*\d`)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		buf := make([]byte, 1<<16)
		for {
			n, err := c.Read(buf)
			if err != nil || bytes.Contains(buf[:n], []byte("INFO\r\n$9\r\nlockproxy\r\n")) {
				return
			}
			reply := "+PONG\r\n"
			if bytes.Contains(bytes.ToLower(buf[:n]), []byte("hello")) {
				reply = "-ERR unknown command 'HELLO'\r\n"
			}
			_, _ = c.Write(bytes.Repeat([]byte(reply), len(commands.FindAll(buf[:n], -1))))
		}
	}()
	defer func() { _ = l.Close(); <-done }()
	m, err := NewRedis(l.Addr().String(), RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := m.Probe(t.Context()); err != nil || info.Server != "redis" {
		t.Errorf("%+v, %v", info, err)
	}
}
