package resp

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"testing/synctest"
)

// With TLS a connection ends with a message, and the other end may take nothing. Nobody waits for that: neither who ends a connection,
// as others do, nor who needs the session's lock, as all do who have something for its client.
func TestWhoTakesNothingHoldsNobodyUpWhenItsConnectionEnds(t *testing.T) {
	config := &tls.Config{Certificates: []tls.Certificate{keyPair(t)}}
	for how, end := range map[string]func(*session, net.Conn){
		"in order": func(_ *session, client net.Conn) {
			go func() { _, _ = io.WriteString(client, words("QUIT")) }()
			_, _ = io.ReadFull(client, make([]byte, len("+OK\r\n")))
		},
		"at once": func(s *session, _ net.Conn) { s.kill("test") },
		"with that of its link": func(s *session, _ net.Conn) {
			s.uplink.mu.Lock()
			s.uplink.link = &link{session: s, uplink: &s.uplink, conn: s.conn, done: make(chan struct{})}
			close(s.uplink.link.done)
			s.uplink.mu.Unlock()
			s.setGone()
		},
	} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, _ *fakeEngine, srv *Server, _ func() net.Conn) {
				plain, conn := net.Pipe()
				defer plain.Close()
				srv.admit(tls.Server(conn, config))
				client := tls.Client(plain, &tls.Config{InsecureSkipVerify: true})
				go func() { _, _ = io.WriteString(client, words("PING")) }()
				_, _ = io.ReadFull(client, make([]byte, len("+PONG\r\n")))
				synctest.Wait()
				s, over := srv.sessions.all()[0], make(chan struct{})
				go func() {
					defer close(over)
					end(s, client)
				}()
				synctest.Wait()
				if !s.replies.mu.TryLock() {
					t.Fatal("others wait for its lock")
				}
				select {
				case <-over:
				default:
					t.Error("who ends it waits")
				}
				s.replies.mu.Unlock()
			})
		})
	}
}
