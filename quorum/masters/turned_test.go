package masters

import (
	"errors"
	"net"
	"strings"
	"testing"
)

// eachConnection returns a master at which f is all that happens to a connection before it is closed.
func eachConnection(t *testing.T, f func(conn net.Conn)) *Redis {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	m, err := NewRedis(l.Addr().String(), RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// It would be kept, as one line: a gigabyte in a second.
func TestAGreetingWithoutEndIsNotRead(t *testing.T) {
	m := eachConnection(t, func(conn net.Conn) {
		var err error
		for err == nil {
			_, err = conn.Write([]byte(strings.Repeat("+", 4096)))
		}
	})
	if _, err := m.Dial(t.Context(), 0); !errors.Is(err, errWire) {
		t.Errorf("a connection: %v", err)
	}
	if _, err := m.Listen(t.Context()); !errors.Is(err, errWire) {
		t.Errorf("a connection for messages: %v", err)
	}
}

// A master with maxclients connections says so and hangs up, before or after the first words of the next one have come. So does one
// in protected mode, with 1 KB of advice, of which the first sentence says what is wrong.
func TestAMasterThatTurnsConnectionsAwaySaysWhy(t *testing.T) {
	const (
		full      = "ERR max number of clients reached"
		protected = "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user"
	)
	advice := ". In this mode connections are only accepted from the loopback interface. " + strings.Repeat("If you want to connect … ", 40)
	for _, c := range []struct {
		name        string
		reads       bool
		words, want string
	}{
		{"full, at once", false, full, full},
		{"full, when spoken to", true, full, full},
		{"protected, at once", false, protected + advice, protected},
		{"protected, when spoken to", true, protected + advice, protected},
	} {
		m := eachConnection(t, func(conn net.Conn) {
			if c.reads {
				_, _ = conn.Read(make([]byte, 1)) // so that what follows it unread makes the end a reset
			}
			_, _ = conn.Write([]byte("-" + c.words + "\r\n"))
		})
		for range 20 {
			if _, err := m.Dial(t.Context(), 0); err == nil || Describe(err) != c.want {
				t.Errorf("%s: a connection: %v", c.name, err)
			}
			if _, err := m.Listen(t.Context()); err == nil || Describe(err) != c.want {
				t.Errorf("%s: a connection for messages: %v", c.name, err)
			}
		}
	}
}
