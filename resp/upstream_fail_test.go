package resp

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockproxy/resp/upstream"
)

// An upstream that has maxclients connections answers those that it has, so that whoever watches it finds it well: but
// commands for which a connection is to be made fail.
func TestCommandsThatTheUpstreamTurnsAwayAreCountedAndLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	var running sync.WaitGroup
	l := serveEach(t, &running, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "-ERR max number of clients reached\r\n")
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	})
	up := upstream.New(upstream.Options{Addr: l.Addr().String()})
	t.Cleanup(up.Close)
	log := &logged{}
	r := newRig(t, Config{Upstream: up, LockKeys: []string{"lock:*"}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	c := r.dial()
	for range 3 {
		if got := c.ask("INCR", "n"); !strings.HasPrefix(got, "-LOADING ") || !strings.Contains(got, "ERR max number of clients reached") {
			t.Errorf("got %q", got)
		}
	}
	if n := r.server.Stats().UpstreamErrors; n != 3 {
		t.Errorf("%d counted, want 3", n)
	}
	if n := strings.Count(log.String(), `msg="a command for the upstream failed"`); n != 1 || !strings.Contains(log.String(), "max number of clients") {
		t.Errorf("told %d times, want once:\n%s", n, log)
	}
}

func TestAnUpstreamThatWantsALoginIsNotTakenForLockproxyWantingOne(t *testing.T) {
	t.Parallel()
	var running sync.WaitGroup
	l := serveEach(t, &running, func(conn net.Conn) {
		defer conn.Close()
		everyRequest(conn, func([]string) bool {
			_, err := io.WriteString(conn, "-NOAUTH Authentication required.\r\n")
			return err == nil
		})
	})
	up := upstream.New(upstream.Options{Addr: l.Addr().String()})
	t.Cleanup(up.Close)
	want := "-ERR the user and password in lockproxy's setting upstream are missing or wrong: upstream " + l.Addr().String() +
		": NOAUTH Authentication required.\r\n"
	c := newRig(t, Config{Upstream: up, LockKeys: []string{"lock:*"}}).dial()
	for _, request := range []string{"GET a", "INCR a", "WATCH a"} {
		if got := c.ask(strings.Fields(request)...); got != want {
			t.Errorf("%s: %q", request, got)
		}
	}
}

// A restart of the upstream ends the connections of all clients that wait there, and is one event.
func TestALostUpstreamIsOneLineForAllItsClients(t *testing.T) {
	t.Parallel()
	u := newCrossing(t)
	log := &logged{}
	r := newRig(t, Config{Upstream: u.redis, LockKeys: []string{"lock:*"}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	const n = 20
	for range n {
		r.dial().send(words("GET a"))
	}
	var all []net.Conn
	for range n {
		all = append(all, u.next(t, "GET a").conn)
	}
	for _, conn := range all {
		_ = conn.Close()
	}
	waitFor(t, "clients are still there", func() bool { return r.server.Stats().Clients == 0 })
	toldOnce(t, r, log, n)
}

// What a client has at the upstream is gone with its link, so the client must not go on as if it had that. One that has nothing there
// journal nothing.
func TestWhoHasStateAtTheUpstreamEndsWithItsLink(t *testing.T) {
	t.Parallel()
	replies := map[string]string{"COMMAND": crossingCommands, "HELLO": "%0\r\n", "INCR": ":1\r\n", "SET": "+QUEUED\r\n", "EXEC": "*0\r\n",
		"subscribe": ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", "unsubscribe": ">3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n"}
	for _, tc := range []struct {
		does []string
		ends bool
	}{
		{[]string{"INCR n"}, false},
		{[]string{"WATCH a"}, true},
		{[]string{"WATCH a", "UNWATCH"}, false},
		{[]string{"WATCH a", "MULTI"}, true},
		{[]string{"WATCH a", "MULTI x", "UNWATCH"}, false},
		{[]string{"WATCH a", "MULTI", "EXEC"}, false},
		{[]string{"MULTI", "SET a 1"}, true},
		{[]string{"MULTI", "SET a 1", "EXEC"}, false},
		{[]string{"MULTI", "SET a 1", "DISCARD"}, false},
		{[]string{"MULTI", "SET a 1", "GET lock:x"}, false}, // refused: nothing of it is left there
		{[]string{"MULTI", "SET a 1", "PING", "EXEC"}, false},
		{[]string{"SUBSCRIBE c"}, true},
		{[]string{"SUBSCRIBE c", "SUBSCRIBE lock:x"}, true},
		{[]string{"SUBSCRIBE c", "UNSUBSCRIBE c"}, false},
		{[]string{"INCR n", "SUBSCRIBE lock:x"}, false},
		{[]string{"MONITOR"}, true},
		{[]string{"EVAL x 1 a"}, true},
		{[]string{"EVALSHA " + strings.Repeat("a", 40) + " 1 a", "INCR n"}, true},
		{[]string{"SCRIPT LOAD x"}, true},
		{[]string{"SCRIPT EXISTS x"}, true},
		{[]string{"NOSUCH a"}, true},
		{[]string{"CONFIG SET x y"}, true},
		{[]string{"CONFIG GET x", "INFO", "SET a 1"}, false},
		{[]string{"EVAL x 1 a", "RESET", "HELLO 3", "INCR n"}, false},
		{[]string{"MONITOR", "RESET", "HELLO 3", "INCR n"}, false},
	} {
		t.Run(strings.Join(tc.does, ", "), func(t *testing.T) {
			var running sync.WaitGroup
			var latest atomic.Pointer[net.Conn] // over which a client's command came
			l := serveEach(t, &running, func(conn net.Conn) {
				eachRequest(conn, func(args []string) bool {
					reply, ok := replies[args[0]]
					if !ok {
						reply = "+OK\r\n"
					}
					if args[0] != "COMMAND" {
						latest.Store(&conn)
					}
					_, err := io.WriteString(conn, reply)
					return err == nil
				})
				_ = conn.Close()
			})
			up := upstream.New(upstream.Options{Addr: l.Addr().String()})
			t.Cleanup(up.Close)
			r := newRig(t, Config{Upstream: up, LockKeys: []string{"lock:*"}})
			c := r.dial()
			c.ask("HELLO", "3")
			for _, command := range tc.does {
				c.ask(strings.Fields(command)...)
			}
			own := r.server.sessions.all()[0]
			is := func(holds func(*link) bool) func() bool {
				return func() bool {
					own.uplink.mu.Lock()
					defer own.uplink.mu.Unlock()
					return own.uplink.link != nil && holds(own.uplink.link) // none: the session has ended
				}
			}
			waitFor(t, "the upstream still owes something", is(func(l *link) bool { return len(l.expected) == 0 }))
			_ = (*latest.Load()).Close()
			if tc.ends {
				c.wantEnd()
				return
			}
			waitFor(t, "the link is not known to have ended", is(func(l *link) bool { return l.dead }))
			c.ask("PING")
		})
	}
}

// One that turns a client's own connection away says so in the place of a first reply, and what is behind it would mean something else.
func TestAnUpstreamThatRefusesWhatComesFirstIsOneLineForAllClients(t *testing.T) {
	t.Parallel()
	u := newCrossing(t)
	log := &logged{}
	r := newRig(t, Config{Upstream: u.redis, LockKeys: []string{"lock:*"}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	const n = 3
	for range n {
		r.dial().send(words("MULTI") + words("SET a 1"))
		first := u.next(t, "MULTI")
		u.next(t, "SET a 1")
		first.answer(t, "-ERR max number of clients reached\r\n")
	}
	waitFor(t, "clients are still there", func() bool { return r.server.Stats().Clients == 0 })
	toldOnce(t, r, log, n)
}

// An upstream that reads no more, as one that has stopped, ends the connections of clients that send more than the kernel takes.
func TestAnUpstreamThatDoesNotReadIsCounted(t *testing.T) {
	t.Parallel()
	var running sync.WaitGroup
	l := serveEach(t, &running, func(conn net.Conn) {
		eachRequest(conn, func(args []string) bool {
			if args[0] != "COMMAND" {
				return false
			}
			_, err := io.WriteString(conn, crossingCommands)
			return err == nil
		})
		<-t.Context().Done()
		_ = conn.Close()
	})
	up := upstream.New(upstream.Options{Addr: l.Addr().String(), DialTimeout: patienceMax})
	t.Cleanup(up.Close)
	log := &logged{}
	r := newRig(t, Config{Upstream: up, LockKeys: []string{"lock:*"}, Limits: Limits{Write: 50 * time.Millisecond},
		Logger: slog.New(slog.NewTextHandler(log, nil))})
	const n = 3
	for range n {
		c := r.dial()
		go func() { _, _ = io.WriteString(c, strings.Repeat(words("SET a "+strings.Repeat("v", 64<<10)), 512)) }()
	}
	waitFor(t, "clients are still there", func() bool { return r.server.Stats().Accepted == n && r.server.Stats().Clients == 0 })
	toldOnce(t, r, log, n)
}

// toldOnce expects one line of the log about n commands that were lost.
// What is told of a connection that broke has no addresses in it: those of both ends are known, but for a port that is another each
// time.
func TestALostConnectionIsToldWithoutItsAddresses(t *testing.T) {
	t.Parallel()
	u := newCrossing(t)
	log := &logged{}
	r := newRig(t, Config{Upstream: u.redis, LockKeys: []string{"lock:*"}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	r.dial().send(words("GET a"))
	conn := u.next(t, "GET a").conn.(*net.TCPConn)
	_ = conn.SetLinger(0)
	_ = conn.Close()
	waitFor(t, "the client is still there", func() bool { return r.server.Stats().Clients == 0 })
	if text := log.String(); !strings.Contains(text, `cause="connection reset by peer"`) {
		t.Error(text)
	}
}

func toldOnce(t *testing.T, r *rig, log *logged, n uint64) {
	t.Helper()
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `msg="a command for the upstream failed"`) {
		t.Errorf("want one line, got\n%s", text)
	}
	if got := r.server.Stats().UpstreamErrors; got != n {
		t.Errorf("%d counted, want %d", got, n)
	}
}
