package resp

import (
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
	"lockproxy/script"
)

// A fakeUpstream takes connections, tells the commands that arrive, and answers what the test says.
type fakeUpstream struct {
	redis   *upstream.Redis
	arrived chan []string
	answers chan string // one write each
	over    chan struct{}
	running sync.WaitGroup
}

func newFakeUpstream(t testing.TB) *fakeUpstream {
	t.Helper()
	u := &fakeUpstream{arrived: make(chan []string, 100), answers: make(chan string, 100), over: make(chan struct{})}
	l := serveEach(t, &u.running, u.serve)
	t.Cleanup(func() { close(u.over) })
	u.redis = upstream.New(upstream.Options{Addr: l.Addr().String()})
	return u
}

// newUpstreamRig returns a fake upstream, a rig in front of it for which names that begin with lock: are locks', and a client.
func newUpstreamRig(t testing.TB) (*fakeUpstream, *rig, *client) {
	t.Helper()
	u := newFakeUpstream(t)
	r := newRig(t, Config{Upstream: u.redis, LockKeys: []string{"lock:*"}})
	return u, r, r.dial()
}

// serveEach listens, and serves each connection on a goroutine of running, all of which end with the test.
func serveEach(t testing.TB, running *sync.WaitGroup, serve func(net.Conn)) net.Listener {
	t.Helper()
	l := listen(t)
	running.Go(func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			running.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return l
}

// serve gives answers only to a connection that has asked, and has not ended: on a busy machine a proxy may have given up one that
// it takes for not made in time, and anybody may connect who seeks what was at this port before.
func (u *fakeUpstream) serve(conn net.Conn) {
	defer conn.Close()
	asked, ended := make(chan struct{}), make(chan struct{})
	defer close(ended)
	u.running.Go(func() { u.answer(conn, asked, ended) })
	ask := sync.OnceFunc(func() { close(asked) })
	eachRequest(conn, func(args []string) bool {
		u.arrived <- append([]string(nil), args...)
		ask()
		return true
	})
}

func (u *fakeUpstream) answer(conn net.Conn, asked, ended <-chan struct{}) {
	defer conn.Close()
	select {
	case <-asked:
	case <-ended:
	case <-u.over:
	}
	for {
		select {
		case text := <-u.answers:
			_, _ = io.WriteString(conn, text)
		case <-ended:
			return
		case <-u.over:
			return
		}
	}
}

// eachRequest calls f for every request that comes, until f returns false or the connection ends. args are f's while it runs. A
// greeting by PING is answered.
func eachRequest(conn net.Conn, f func(args []string) bool) {
	greeted := false
	everyRequest(conn, func(args []string) bool {
		if !greeted && args[0] == "PING" {
			greeted = true
			_, err := io.WriteString(conn, "+PONG\r\n")
			return err == nil
		}
		greeted = true
		return f(args)
	})
}

// everyRequest is eachRequest, greetings included.
func everyRequest(conn net.Conn, f func(args []string) bool) {
	p := wire.Parser{Limits: wire.Limits{Args: 1000, Bulk: 1 << 20, Command: 1 << 20}, Authed: true}
	var b []byte
	buf := make([]byte, 4<<10)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		b = append(b, buf[:n]...)
		for {
			n, err := p.Next(b)
			if n == 0 || err != nil {
				break
			}
			b = b[n:]
			if !f(p.Args) {
				return
			}
		}
	}
}

// wantRequest waits for a command.
func (u *fakeUpstream) wantRequest(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-u.arrived:
		if strings.Join(got, " ") != want {
			t.Fatalf("the upstream got %q, want %q", got, want)
		}
	case <-time.After(patienceMax):
		t.Fatalf("the upstream never got %q", want)
	}
}

func (u *fakeUpstream) wantNone(t *testing.T) {
	t.Helper()
	select {
	case got := <-u.arrived:
		t.Fatalf("the upstream got %q", got)
	default:
	}
}

func TestNothingGoesUpstreamBeforeALogin(t *testing.T) {
	u := newFakeUpstream(t)
	r := newRig(t, Config{Upstream: u.redis, LockKeys: []string{"lock:*"}, Users: []User{{Name: "default", Password: password("pass")}}})
	c := r.dial()
	for _, command := range []string{"GET data", "NOSUCH", "LPUSH l x", "INFO", "SUBSCRIBE c", "SCRIPT LOAD x", "MONITOR"} {
		if reply := c.ask(strings.Fields(command)...); !strings.HasPrefix(reply, "-NOAUTH") && !strings.HasPrefix(reply, "-ERR unknown command") {
			t.Errorf("%s: %q", command, reply)
		}
	}
	u.wantNone(t)
	c.send(cmdline("AUTH", "pass") + cmdline("GET", "data"))
	u.wantRequest(t, "GET data")
	u.answers <- "$-1\r\n"
	c.want("+OK\r\n$-1\r\n")
}

func TestNeitherSideOvertakesTheOther(t *testing.T) {
	u, r, c := newUpstreamRig(t)
	arrived := r.engine.hold()
	c.send(words("GET a") + words("GET b") + words("SET lock:x tok NX PX 9000") + words("GET c"))
	u.wantRequest(t, "GET a")
	u.wantRequest(t, "GET b")
	u.answers <- "+a\r\n"
	c.want("+a\r\n")
	if len(arrived) > 0 {
		t.Fatal("the lock was asked for before what came in front of it was answered")
	}
	u.answers <- "+b\r\n"
	c.want("+b\r\n")
	<-arrived
	session := r.server.sessions.all()[0]
	waitFor(t, "GET c waits for the lock", func() bool {
		session.replies.mu.Lock()
		defer session.replies.mu.Unlock()
		return session.replies.waker.waitFor != nil
	})
	u.wantNone(t)
	r.engine.release(0)
	c.want("+OK\r\n")
	u.wantRequest(t, "GET c")
	u.answers <- "$1\r"
	u.answers <- "\nc\r\n"
	c.want("$1\r\nc\r\n")
}

func TestAMessageWaitsUntilAReplyIsWhole(t *testing.T) {
	u, r, c := newUpstreamRig(t)
	c.send(words("HELLO 3"))
	c.reply()
	c.send(words("SUBSCRIBE lock:channel") + words("GET big"))
	c.want(">3\r\n$9\r\nsubscribe\r\n$12\r\nlock:channel\r\n:1\r\n")
	u.wantRequest(t, "HELLO 3")
	u.answers <- "%0\r\n"
	u.wantRequest(t, "GET big")
	u.answers <- "*2\r\n$5\r\nhe"
	c.want("*2\r\n$5\r\nhe")
	if reply := r.dial().ask("PUBLISH", "lock:channel", "m"); reply != ":1\r\n" {
		t.Fatal(reply)
	}
	u.answers <- "llo\r\n"
	c.want("llo\r\n")
	u.answers <- "+x\r\n"
	c.want("+x\r\n>3\r\n$7\r\nmessage\r\n$12\r\nlock:channel\r\n$1\r\nm\r\n")
}

func TestAReplyWaitsUntilAMessageIsWhole(t *testing.T) {
	u, r, c := subscribed(t)
	u.answers <- ">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhe"
	c.want(">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhe")
	before := r.server.Stats().Commands
	c.send(words("PING"))
	for deadline := time.Now().Add(patienceMax); r.server.Stats().Commands == before; {
		if time.Now().After(deadline) {
			t.Fatal("PING was never run")
		}
		runtime.Gosched()
	}
	u.answers <- "llo\r\n"
	c.want("llo\r\n+PONG\r\n")
}

func TestARequestOfAnySizeIsSentWhole(t *testing.T) {
	u, _, c := newUpstreamRig(t)
	for _, size := range []int{0, sendSize - 40, sendSize, sendSize + 1, 3*sendSize + 7} {
		value := strings.Repeat("x", size)
		c.send(cmdline("SET", "k", value))
		u.wantRequest(t, "SET k "+value)
		u.answers <- "+OK\r\n"
		c.want("+OK\r\n")
	}
}

func TestAnUpstreamThatSpeaksNoRESPEndsTheConnection(t *testing.T) {
	u, r, c := newUpstreamRig(t)
	c.send(words("GET a"))
	u.wantRequest(t, "GET a")
	u.answers <- "HTTP/1.1 400 Bad Request\r\n\r\n"
	c.wantEnd()
	if n := r.server.Stats().UpstreamErrors; n != 1 {
		t.Errorf("%d errors counted", n)
	}
}

// Whatever an upstream sends in whatever pieces, and whatever its client sends meanwhile, the session ends without a
// panic, and all that it reserved is given back.
func FuzzRelay(f *testing.F) {
	l := listen(f)
	var mu sync.Mutex // guards what follows
	var pieces [][]byte
	greets := false
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			mine, greet := pieces, greets
			mu.Unlock()
			go func() {
				defer conn.Close()
				if greet && !greeted(conn) {
					return
				}
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				for _, piece := range mine {
					if _, err := conn.Write(piece); err != nil {
						return
					}
				}
			}()
		}
	}()
	for _, seed := range []string{"+OK\r\n$1\r\na\r\n", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n",
		"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n+QUEUED\r\n", "-ERR\r\n-ERR\r\n-ERR\r\n", "x", "*1\r\n*9999999\r\n"} {
		for _, requests := range []string{"GET a;GET b", "SUBSCRIBE a;PING;UNSUBSCRIBE", "HELLO 3;SUBSCRIBE a;GET k;SET lock:a t NX PX 9", "MULTI;SET a b;EXEC;GET lock:a", "MULTI;GET a;PING;SELECT 3;EXEC;GET a", "BLPOP a 0;COMMAND INFO get lock",
			"CLIENT REPLY OFF;GET a;CLIENT REPLY ON;GET b", "SCRIPT EXISTS x;SELECT 3;LPUSH a b;RESET;GET a", "WATCH a;MULTI;SET lock:a b;EXEC;UNWATCH;QUIT"} {
			f.Add([]byte(seed), []byte{2, 9, 9}, []byte(strings.ReplaceAll(requests, ";", "\r\n")+"\r\n"))
			f.Add([]byte(seed), []byte{2, 9}, []byte(strings.ReplaceAll(requests, ";", "\r\n")+"\r\n"))
		}
	}
	f.Fuzz(func(t *testing.T, replies, cuts, requests []byte) {
		if len(replies) > 1<<12 || len(requests) > 1<<10 {
			return
		}
		mu.Lock()
		pieces, greets = chunks(replies, cuts), len(cuts)%2 == 1
		mu.Unlock()
		engine := newFakeEngine()
		up := upstream.New(upstream.Options{Addr: l.Addr().String(), DialTimeout: 50 * time.Millisecond})
		defer up.Close()
		srv := newServer(Config{Limits: Limits{Pipeline: 3, Args: 64, Bulk: 4096, Command: 8192, Memory: 1 << 20, Output: 2048},
			Upstream: up, LockKeys: []string{"lock:*"},
			Logger: slog.New(slog.NewTextHandler(panicLog{t}, nil))}, engine, script.NewCache(10), engine.fakeMessages)
		srv.lockOf = engine.lockOf
		near, far := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			buf := make([]byte, 1<<10)
			for {
				_ = far.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
				if _, err := far.Read(buf); err != nil {
					_ = far.Close()
					return
				}
			}
		}()
		go func() { _, _ = far.Write(requests) }()
		s := newSession(srv, near, 1)
		s.run()
		<-ended
		srv.gates.Close()
		engine.running.Wait()
		if used := srv.relief.memory.used(); used != 0 {
			t.Errorf("%d bytes are still reserved", used)
		}
		if s.replies.backlog.outBytes.Load() != 0 || s.replies.backlog.depth.Load() != 0 || s.replies.backlog.inBytes.Load() != 0 || srv.counters.links.Load() != 0 {
			t.Errorf("counts are off: out %d, depth %d, in %d, links %d", s.replies.backlog.outBytes.Load(), s.replies.backlog.depth.Load(), s.replies.backlog.inBytes.Load(), srv.counters.links.Load())
		}
	})
}

// greeted answers what a connection begins with, and COMMAND, and returns when something else is asked.
func greeted(conn net.Conn) bool {
	other := false
	eachRequest(conn, func(args []string) bool {
		reply := "+OK\r\n"
		switch args[0] {
		case "COMMAND":
			reply = crossingCommands
		case "CLIENT", "SELECT", "HELLO":
		default:
			other = true
			return false
		}
		_, err := io.WriteString(conn, reply)
		return err == nil
	})
	return other
}

// A Redis that has all the clients it takes says so to the next one, unasked, and hangs up. That passes: client libraries are to try
// again, as they do with a Redis that says it to them. One that runs a long script refuses SELECT as any other command.
func TestWhoIsRefusedForTheTimeBeingIsToTryAgain(t *testing.T) {
	const full, busy = "ERR max number of clients reached", "BUSY Redis is busy running a script."
	for _, why := range []string{full, busy} {
		l := serveEach(t, new(sync.WaitGroup), func(conn net.Conn) {
			_, _ = io.WriteString(conn, "-"+why+"\r\n")
			_ = conn.Close()
		})
		want := "-" + busy + "\r\n"
		if why == full {
			want = "-LOADING upstream " + l.Addr().String() + ": " + full + "\r\n"
		}
		for _, command := range []string{"HELLO 3/GET data", "SELECT 1/GET data", "CLIENT SETNAME app/GET data", "PING/MODULE.GET data"} {
			before, then, _ := strings.Cut(command, "/")
			r := newRig(t, Config{Upstream: upstream.New(upstream.Options{Addr: l.Addr().String()}), LockKeys: []string{"lock:*"}})
			c := r.dial()
			c.ask(strings.Fields(before)...)
			if reply := c.ask(strings.Fields(then)...); reply != want {
				t.Errorf("%s: %q, want %q", command, reply, want)
			}
		}
	}
}

// Client libraries subscribe anew by themselves when they have connected anew, and take an error for the end of the matter:
// redis-py, ioredis and go-redis would not hear another message.
func TestWhoSubscribesWhileTheUpstreamIsGoneIsDisconnected(t *testing.T) {
	l := listen(t)
	_ = l.Close()
	r := newRig(t, Config{Upstream: upstream.New(upstream.Options{Addr: l.Addr().String()}), LockKeys: []string{"lock:*"}})
	for _, command := range []string{"SUBSCRIBE news", "SUBSCRIBE lock:1 news", "PSUBSCRIBE n*", "SSUBSCRIBE news"} {
		c := r.dial()
		c.send(words("PING") + words(command) + words("ECHO more"))
		c.want("+PONG\r\n")
		c.wantEnd()
	}
	c := r.dial()
	c.send(words("SUBSCRIBE lock:1"))
	c.want("*3\r\n$9\r\nsubscribe\r\n$6\r\nlock:1\r\n:1\r\n")
}

func TestANameThatTheUpstreamRefusesIsNoFailure(t *testing.T) {
	u := newFakeUpstream(t)
	c := newRig(t, Config{Upstream: u.redis, LockKeys: []string{"lock:*"}}).dial()
	c.ask("CLIENT", "SETNAME", "app")
	c.send(words("GET data"))
	u.wantRequest(t, "CLIENT SETNAME app")
	u.answers <- "-NOPERM no\r\n"
	u.wantRequest(t, "PING")
	u.answers <- "-NOPERM no\r\n"
	u.wantRequest(t, "GET data")
	u.answers <- "+v\r\n"
	c.want("+v\r\n")
}

// The name and the protocol that a client changes are changed on its link, too, before the next command goes over it.
func TestALinkFollowsItsClient(t *testing.T) {
	u, _, c := newUpstreamRig(t)
	for _, change := range []string{"", "CLIENT SETNAME app", "HELLO 3", "HELLO 2"} {
		if change != "" {
			c.ask(strings.Fields(change)...)
		}
		c.send(words("GET a"))
		if change != "" {
			u.wantRequest(t, change)
			u.answers <- "+OK\r\n"
		}
		u.wantRequest(t, "GET a")
		u.answers <- "+v\r\n"
		c.want("+v\r\n")
	}
}

// What comes behind would be answered in another protocol.
func TestALinkThatDoesNotFollowItsClientEnds(t *testing.T) {
	u, _, c := newUpstreamRig(t)
	c.send(words("GET a"))
	u.wantRequest(t, "GET a")
	u.answers <- "+v\r\n"
	c.want("+v\r\n")
	c.ask("HELLO", "3")
	c.send(words("GET a"))
	u.wantRequest(t, "HELLO 3")
	u.answers <- "-NOPERM no\r\n+v\r\n"
	c.wantEnd()
}
