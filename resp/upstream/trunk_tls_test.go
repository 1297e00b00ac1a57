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
	var under *failing
	trunk, _ := newTrunkAt(t, l, Options{
		DialTimeout: 30 * time.Second,
		TLS:         func() *tls.Config { return &tls.Config{InsecureSkipVerify: true} },
		Wrap:        func(c net.Conn) net.Conn { under = &failing{Conn: c}; return under },
	}, slog.New(slog.DiscardHandler), 10*time.Millisecond)
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
