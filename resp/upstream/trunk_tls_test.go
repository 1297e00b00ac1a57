package upstream

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// A failing connection counts what is written to it after a write has failed.
type failing struct {
	net.Conn
	failed  atomic.Bool
	further atomic.Int32
}

func (f *failing) Write(b []byte) (int, error) {
	if f.failed.Load() {
		f.further.Add(1)
	}
	n, err := f.Conn.Write(b)
	f.failed.Store(f.failed.Load() || err != nil)
	return n, err
}

// With TLS a connection ends with a message. A server that takes nothing does not take that either, and clients would wait for it.
func TestAServerThatDoesNotReadIsNotToldTheEnd(t *testing.T) {
	web := httptest.NewTLSServer(nil) // has a certificate
	defer web.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", web.TLS)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			greeted(conn)
		}
		accepted <- conn
	}()
	var under *failing
	u := New(Options{
		Addr: l.Addr().String(), DialTimeout: 30 * time.Second,
		TLS:  func() *tls.Config { return &tls.Config{InsecureSkipVerify: true} },
		Wrap: func(c net.Conn) net.Conn { under = &failing{Conn: c}; return under },
	})
	trunk, err := u.newTrunk(Greeting{}, 10*time.Millisecond, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer trunk.Close()
	conn := <-accepted
	defer conn.Close()
	h, room := newHeap(), make(kicks, 1)
	for trunk.Push(make([]byte, trunkOutMax), 1, h) {
		if trunk.Full(room) {
			<-room // or it has ended
		}
	}
	h.wait(t, "lost", func() bool { return h.lost != nil })
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := under.further.Load(); !errors.Is(h.lost, errDeaf) || n > 0 {
		t.Errorf("%v; it was written to %d times more", h.lost, n)
	}
}
