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
		sl := newSlot(s)
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
	if s.send(batch) {
		t.Error("the write did not fail")
	}
	for i, want := range []bool{false, false, true, true} {
		if got := locks[i].isAbandoned(); got != want {
			t.Errorf("lock %d: abandoned %v, want %v", i, got, want)
		}
	}
	if !s.gone {
		t.Error("the session goes on")
	}
}

func TestNoLockIsHandedOutOnceTheClientIsGone(t *testing.T) {
	e := newFakeEngine()
	s, conn := bareSession(e, "", 1000)
	l := e.locks[e.grant(time.Hour)]
	ping, acquired := newSlot(s), newSlot(s)
	ping.out.reply = Status("PONG")
	acquired.answer, acquired.out = okOrNull, outcome{done: 1, lock: l}
	s.push(ping)
	s.push(acquired)
	s.setGone()
	s.writeLoop()
	if got := conn.out.String(); got != "+PONG\r\n" || !l.isAbandoned() {
		t.Errorf("wrote %q, abandoned %v", got, l.isAbandoned())
	}
}

func TestAPanicWhileRepliesAreMadeAbandonsTheLocks(t *testing.T) {
	e := newFakeEngine()
	s, _ := bareSession(e, "", 1000)
	l := e.locks[e.grant(time.Hour)]
	sl := newSlot(s)
	sl.answer, sl.out = func(*outcome) Reply { panic("a bug") }, outcome{done: 1, lock: l}
	s.push(sl)
	s.writeLoop()
	if !l.isAbandoned() || !s.gone {
		t.Errorf("abandoned %v, gone %v", l.isAbandoned(), s.gone)
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
	return &account{session: &session{server: &Server{}}, budget: b}
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
		in.filled(len(space))
	}
	if used := b.used(); used < 100_000 {
		t.Errorf("%d bytes are counted", used)
	}
	in.consume(in.len())
	if in.buf != nil || b.used() != 0 {
		t.Errorf("%d bytes are kept, %d counted", len(in.buf), b.used())
	}
}

func TestRepliesInBothProtocols(t *testing.T) {
	for _, c := range []struct {
		reply        Reply
		resp2, resp3 string
	}{
		{Status("a\r\nb"), "+a  b\r\n", "+a  b\r\n"},
		{Error("ERR a\nb"), "-ERR a b\r\n", "-ERR a b\r\n"},
		{Int(-5), ":-5\r\n", ":-5\r\n"},
		{Bulk("a\r\nb"), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n"},
		{Bulk(""), "$0\r\n\r\n", "$0\r\n\r\n"},
		{Verbatim("txtabc"), "$3\r\nabc\r\n", "=7\r\ntxt:abc\r\n"},
		{Null{}, "$-1\r\n", "_\r\n"},
		{NullArray{}, "*-1\r\n", "_\r\n"},
		{Array{Int(1), Null{}}, "*2\r\n:1\r\n$-1\r\n", "*2\r\n:1\r\n_\r\n"},
		{Set{Int(1)}, "*1\r\n:1\r\n", "~1\r\n:1\r\n"},
		{Map{Bulk("a"), Int(1)}, "*2\r\n$1\r\na\r\n:1\r\n", "%1\r\n$1\r\na\r\n:1\r\n"},
		{Push{Bulk("a")}, "*1\r\n$1\r\na\r\n", ">1\r\n$1\r\na\r\n"},
	} {
		if got := string(c.reply.appendTo(nil, false)); got != c.resp2 {
			t.Errorf("%#v: got %q, want %q", c.reply, got, c.resp2)
		}
		if got := string(c.reply.appendTo(nil, true)); got != c.resp3 {
			t.Errorf("%#v: got %q, want %q", c.reply, got, c.resp3)
		}
	}
}

func TestGlobs(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"a*c", "abbc", true}, {"a*c", "abb", false},
		{"?", "", false}, {"a?c", "abc", true}, {"[ab]c", "bc", true}, {"[^ab]c", "bc", false}, {"[^ab]c", "cc", true},
		{"[a-c]", "b", true}, {"[c-a]", "b", true}, {"[a-c]", "d", false}, {`\*`, "*", true}, {`\*`, "a", false}, {`a\`, `a\`, true},
		{"[", "[", false}, {"[a", "a", true}, {`[\]]`, "]", true}, {"*a*b*c", "xaybzc", true}, {"*a*b*c", "xaybz", false},
	} {
		if got := matchGlob(c.pattern, c.s); got != c.want {
			t.Errorf("%q on %q: %v", c.pattern, c.s, got)
		}
	}
}
