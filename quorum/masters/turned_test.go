package masters

import (
	"net"
	"testing"
)

// A master with maxclients connections says so and hangs up, before or after the first words of the next one have come.
func TestAMasterThatTurnsConnectionsAwaySaysWhy(t *testing.T) {
	const full = "ERR max number of clients reached"
	for name, reads := range map[string]bool{"at once": false, "when spoken to": true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				if reads {
					_, _ = c.Read(make([]byte, 1)) // so that what follows it unread makes the end a reset
				}
				_, _ = c.Write([]byte("-" + full + "\r\n"))
				_ = c.Close()
			}
		}()
		m, err := NewRedis(l.Addr().String(), RedisOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if _, err := m.Dial(t.Context(), 0); err == nil || Describe(err) != full {
				t.Errorf("%s: a connection: %v", name, err)
			}
			if _, err := m.Listen(t.Context()); err == nil || Describe(err) != full {
				t.Errorf("%s: a connection for messages: %v", name, err)
			}
		}
		_ = l.Close()
		<-done
	}
}
