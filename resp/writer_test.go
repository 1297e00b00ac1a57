package resp

import (
	"testing"
	"time"

	"lockproxy/script"
)

// bareSession is a session that nobody runs, on a connection that takes so many bytes of output.
func bareSession(e *fakeEngine, input string, output int) (*session, *fuzzConn) {
	srv := newServer(Config{}, e, script.NewCache(1), e.fakeMessages)
	srv.lockOf = e.lockOf
	conn := &fuzzConn{left: output, kicked: make(chan struct{}, 1), closed: make(chan struct{})}
	if input != "" {
		conn.pieces = [][]byte{[]byte(input)}
	}
	return newSession(srv, conn, 1), conn
}

func (l *fakeLock) isAbandoned() bool {
	select {
	case <-l.abandoned:
		return true
	default:
		return false
	}
}

// The client can use a lock only if it got the whole reply.
func TestAFailedWriteAbandonsWhatTheClientCannotKnow(t *testing.T) {
	e := newFakeEngine()
	s, _ := bareSession(e, "", len("+OK\r\n+OK\r\n+O"))
	var batch, last *slot
	var locks []*fakeLock
	for range 4 {
		sl := newSlot(&s.replies)
		l := e.grant(time.Hour)
		locks = append(locks, e.locks[l])
		sl.answer, sl.out = okOrNull, outcome{done: 1, lock: e.locks[l], until: e.locks[l].until}
		if batch == nil {
			batch = sl
		} else {
			last.next = sl
		}
		last = sl
	}
	if s.writer.send(batch) {
		t.Error("the write did not fail")
	}
	for i, want := range []bool{false, false, true, true} {
		if got := locks[i].isAbandoned(); got != want {
			t.Errorf("lock %d: abandoned %v, want %v", i, got, want)
		}
	}
	if !s.replies.gone {
		t.Error("the session goes on")
	}
}

func TestNoLockIsHandedOutOnceTheClientIsGone(t *testing.T) {
	e := newFakeEngine()
	s, conn := bareSession(e, "", 1000)
	l := e.locks[e.grant(time.Hour)]
	ping, acquired := newSlot(&s.replies), newSlot(&s.replies)
	ping.out.reply = Status("PONG")
	acquired.answer, acquired.out = okOrNull, outcome{done: 1, lock: l}
	s.replies.push(ping)
	s.replies.push(acquired)
	s.setGone()
	s.writer.run()
	if got := conn.out.String(); got != "+PONG\r\n" || !l.isAbandoned() {
		t.Errorf("wrote %q, abandoned %v", got, l.isAbandoned())
	}
}

func TestAPanicWhileRepliesAreMadeAbandonsTheLocks(t *testing.T) {
	e := newFakeEngine()
	s, _ := bareSession(e, "", 1000)
	l := e.locks[e.grant(time.Hour)]
	sl := newSlot(&s.replies)
	sl.answer, sl.out = func(*outcome) Reply { panic("a bug") }, outcome{done: 1, lock: l}
	s.replies.push(sl)
	s.writer.run()
	if !l.isAbandoned() || !s.replies.gone {
		t.Errorf("abandoned %v, gone %v", l.isAbandoned(), s.replies.gone)
	}
}

func TestMutedLocksAreKept(t *testing.T) {
	e := newFakeEngine()
	s, conn := bareSession(e, words("CLIENT REPLY OFF")+words("SET k me NX EX 10"), 1000)
	s.run()
	if conn.out.Len() > 0 {
		t.Errorf("wrote %q", conn.out.String())
	}
}

// accountIn returns an account of a client for whom nobody is ended.
func accountIn(b *budget) *account {
	return &account{relief: &relief{sessions: &sessions{}}, budget: b}
}

// An idle session gives its large buffers back.
func TestBuffersShrink(t *testing.T) {
	b := budget{max: 1 << 20}
	in := input{memory: accountIn(&b)}
	for in.len() < 100_000 {
		space, ok := in.room()
		if !ok {
			t.Fatal("no room")
		}
		in.w += len(space)
	}
	if used := b.used(); used < 100_000 {
		t.Errorf("%d bytes are counted", used)
	}
	in.consume(in.len())
	if in.buf != nil || b.used() != 0 {
		t.Errorf("%d bytes are kept, %d counted", len(in.buf), b.used())
	}
}
