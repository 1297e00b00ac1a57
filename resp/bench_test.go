package resp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lockproxy/quorum"
	"lockproxy/resp/group"
	"lockproxy/script"
)

var benchSet = []byte(words("SET lock:123456789012 0123456789abcdef0123456789abcdef NX PX 30000"))

// A grantingEngine grants everything at once and remembers nothing.
type grantingEngine struct {
	*fakeEngine
	lock *quorum.Lock
	held *fakeLock
}

func (e *grantingEngine) Acquire(_ quorum.AcquireRequest, done func(quorum.Acquired)) {
	done(quorum.Acquired{Lock: e.lock})
}

// BenchmarkSession sends SET NX PX through a whole session over loopback, 1 and 16 at a time; the latter also with lock_groups.
func BenchmarkSession(b *testing.B) {
	for _, c := range []struct {
		name   string
		depth  int
		groups []group.Rule
	}{{"one", 1, nil}, {"pipelined16", 16, nil}, {"pipelined16_groups", 16, []group.Rule{{Pattern: "job:*", Label: "job"}, {Pattern: "lock:*", Label: "lock"}}}} {
		b.Run(c.name, func(b *testing.B) {
			e := &grantingEngine{newFakeEngine(), &quorum.Lock{}, &fakeLock{until: time.Now().Add(time.Hour), abandoned: make(chan struct{}), slept: new(atomic.Int64)}}
			srv := New(Config{LockGroups: c.groups}, e, script.NewCache(1), e.fakeMessages)
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

// BenchmarkConflict has as many commands on as many keys under way as max_memory and max_args let a client have.
func BenchmarkConflict(b *testing.B) {
	s, _ := bareSession(newFakeEngine(), "", 0)
	slotOn := func(i int) *slot {
		sl := s.newReply()
		sl.overlap, sl.left, sl.key.Name = overlapNone, 1, fmt.Sprint("k", i)
		for j := range 1022 {
			sl.others = append(sl.others, fmt.Sprint("k", i, ":", j))
		}
		return sl
	}
	for i := range 80 {
		s.replies.push(slotOn(i))
		s.replies.alone++
	}
	last := slotOn(80)
	b.ReportAllocs()
	for b.Loop() {
		if s.replies.conflict(last) != nil {
			b.Fatal("no key is shared")
		}
	}
}
