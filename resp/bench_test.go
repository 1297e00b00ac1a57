package resp

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lockproxy/quorum"
	"lockproxy/script"
)

var benchSet = []byte(words("SET lock:123456789012 0123456789abcdef0123456789abcdef NX PX 30000"))

func BenchmarkParser(b *testing.B) {
	p := parser{limits: &Limits{Args: 1024, Bulk: 1 << 20, Command: 4 << 20}, authed: true}
	b.ReportAllocs()
	b.SetBytes(int64(len(benchSet)))
	for b.Loop() {
		if n, err := p.next(benchSet); n != len(benchSet) || err != nil {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkReplies(b *testing.B) {
	replies := []Reply{okReply, Null{}, Int(1), Bulk("0123456789abcdef"), Map{Bulk("token"), Bulk("abc"), Bulk("validity"), Int(29000)}}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = buf[:0]
		for _, r := range replies {
			buf = r.appendTo(buf, true)
		}
	}
}

// A grantingEngine grants everything at once and remembers nothing.
type grantingEngine struct {
	*fakeEngine
	lock *quorum.Lock
	held *fakeLock
}

func (e *grantingEngine) Acquire(_ quorum.AcquireRequest, done func(quorum.Acquired)) {
	done(quorum.Acquired{Lock: e.lock})
}

// BenchmarkSession sends SET NX PX through a whole session over loopback, 1 and 16 at a time.
func BenchmarkSession(b *testing.B) {
	for _, c := range []struct {
		name  string
		depth int
	}{{"one", 1}, {"pipelined16", 16}} {
		b.Run(c.name, func(b *testing.B) {
			e := &grantingEngine{newFakeEngine(), &quorum.Lock{}, &fakeLock{until: time.Now().Add(time.Hour), abandoned: make(chan struct{}), slept: new(atomic.Int64)}}
			srv := New(Config{}, e, script.NewCache(1), e.fakeMessages)
			srv.lockOf = func(*quorum.Lock) lock { return e.held }
			l := listen(b)
			go func() { _ = srv.Serve(l) }()
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			batch := []byte(strings.Repeat(string(benchSet), c.depth))
			r := bufio.NewReader(conn)
			reply := make([]byte, len("+OK\r\n")*c.depth)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i += c.depth {
				_, _ = conn.Write(batch)
				if _, err := io.ReadFull(r, reply); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			_ = conn.Close()
			_ = srv.Shutdown(b.Context())
		})
	}
}
