package upstream

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// A journal keeps what is logged.
type journal struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

// onItsWay is how a server ends that was met between the end of its listening and that of its connections.
var onItsWay = regexp.MustCompile(`cannot be used.*cause="(connection reset by peer|broken pipe|it closed the connection)"`)

// lines returns what was logged, without the times, and without how the kernel told that a connection broke.
func (j *journal) lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []string
	for line := range strings.Lines(j.text.String()) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), "level=")
		line, _, _ = strings.Cut(line, " after=")
		if strings.Contains(line, "broke") {
			line, _, _ = strings.Cut(line, " cause=")
		}
		if onItsWay.MatchString(line) {
			continue
		}
		all = append(all, line)
	}
	return all
}

// A server answers every command with the same line.
type server struct {
	t     *testing.T
	addr  string
	reply string

	l     net.Listener
	mu    sync.Mutex // guards what follows
	conns []net.Conn
	locks bool // it wants a login of connections that come now
	curt  int  // upon so many INFOs it hangs up
	all   sync.WaitGroup
}

func (s *server) start() {
	s.t.Helper()
	addr := s.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	var err error
	if s.l, err = net.Listen("tcp", addr); err != nil {
		s.t.Fatal(err)
	}
	s.addr = s.l.Addr().String()
	s.all.Go(func() {
		for {
			conn, err := s.l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			reply := s.reply
			if s.locks {
				reply = "-NOAUTH Authentication required.\r\n"
			}
			s.mu.Unlock()
			s.all.Go(func() { s.answer(conn, reply) })
		}
	})
}

func (s *server) wantLogin(refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locks = refused
}

func (s *server) answer(conn net.Conn, reply string) {
	defer conn.Close()
	b := make([]byte, 4096)
	for {
		n, err := conn.Read(b)
		if err != nil {
			return
		}
		s.mu.Lock()
		curt := s.curt > 0 && bytes.Contains(b[:n], []byte("INFO"))
		if curt {
			s.curt--
		}
		s.mu.Unlock()
		if curt {
			return
		}
		for range bytes.Count(b[:n], []byte("*")) { // one for each command
			if _, err := conn.Write([]byte(reply)); err != nil {
				return
			}
		}
	}
}

// cut ends all connections.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		_ = conn.Close()
	}
	s.conns = nil
}

func (s *server) stop() {
	_ = s.l.Close()
	s.cut()
	s.all.Wait()
}

// A server that is given a password while it runs goes on with the connections that are there.
func TestALoginThatIsWantedOfNewConnectionsIsNoticed(t *testing.T) {
	s := &server{t: t, reply: "+PONG\r\n"}
	s.start()
	defer s.stop()
	u := New(Options{Addr: s.addr, DialTimeout: 30 * time.Second})
	defer u.Close()
	u.watch(slog.New(slog.DiscardHandler), 5*time.Millisecond)
	greets := func(refused bool) {
		t.Helper()
		s.wantLogin(refused)
		until := time.Now().Add(30 * time.Second)
		for {
			conn, err := u.Dial(t.Context(), Greeting{})
			if err == nil {
				_ = conn.Close()
			}
			if (err != nil) == refused {
				return
			}
			if time.Now().After(until) {
				t.Fatalf("refused: %v, but got %v", refused, err)
			}
			time.Sleep(time.Millisecond)
		}
	}
	greets(false)
	greets(true)
	greets(false)
}

func TestTheLogSaysWhenTheUpstreamGoesAndComes(t *testing.T) {
	s := &server{t: t, reply: "+PONG\r\n"}
	s.start()
	s.stop() // the address stays ours to listen on
	var log journal
	u := New(Options{Addr: s.addr, DialTimeout: 30 * time.Second})
	defer u.Close()
	u.watch(slog.New(slog.NewTextHandler(&log, nil)), 5*time.Millisecond)

	where := " upstream=" + s.addr
	down := func(cause string) string {
		return `WARN msg="the upstream cannot be used: its commands get an error, or wait; locks go on"` + where + " cause=" + cause
	}
	up := `INFO msg="the upstream can be used again"` + where
	var want []string
	logged := func(next ...string) {
		t.Helper()
		want = append(want, next...)
		for end := time.Now().Add(30 * time.Second); len(log.lines()) < len(want) && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // between two looks, not instead of one
		}
		if got := log.lines(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	logged(down(`"connection refused"`))
	s.start()
	logged(up)
	if cause := u.Cause(); cause != "" {
		t.Errorf("it is there, but %q", cause)
	}
	s.cut()
	logged(`WARN msg="the upstream broke its connections, and is there again"` + where)
	s.stop()
	logged(down(`"connection refused"`))
	s.reply = "-LOADING Redis is loading the dataset in memory\r\n"
	s.start()
	logged(down(`"LOADING Redis is loading the dataset in memory"`))
	s.stop()
	logged(down(`"connection refused"`))
	s.reply = "-NOPERM this user has no permissions to run the 'ping' command\r\n"
	s.start()
	logged(up)
	u.Close()
	s.stop()
}

// Else a client's first command there goes round, over one new connection after the other, until there are max_clients.
func TestAnUpstreamThatLeadsToALockproxyIsNotUsed(t *testing.T) {
	s := &server{t: t, reply: "$11\r\n# Lockproxy\r\n"}
	s.start()
	defer func() { s.stop() }()
	u := New(Options{Addr: s.addr, DialTimeout: 30 * time.Second})
	defer u.Close()
	u.watch(slog.New(slog.DiscardHandler), 5*time.Millisecond)
	await := func(cause string) {
		t.Helper()
		for end := time.Now().Add(patienceMax); u.Cause() != cause && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // between two looks, not instead of one
		}
		if got := u.Cause(); got != cause {
			t.Fatalf("the cause is %q, want %q", got, cause)
		}
	}
	await(errLoop.Error())
	if conn, err := u.DialPatiently(t.Context(), Greeting{}); !errors.Is(err, errLoop) {
		t.Errorf("got %v, %v", conn, err)
	}
	s.stop()
	s.reply = "+PONG\r\n"
	s.start()
	await("")
	conn, err := u.DialPatiently(t.Context(), Greeting{})
	if err != nil {
		t.Fatal("it leads elsewhere now, but ", err)
	}
	_ = conn.Close()
}

// watch returns what looks at a server only when it is told to, and its log.
func watch(t *testing.T, s *server) (*watcher, *journal) {
	s.start()
	t.Cleanup(s.stop)
	var log journal
	u := New(Options{Addr: s.addr, DialTimeout: 30 * time.Second})
	t.Cleanup(u.Close)
	w := &watcher{upstream: u, log: slog.New(slog.NewTextHandler(&log, nil))}
	t.Cleanup(func() { w.line.close() })
	return w, &log
}

func TestAnUpstreamThatBreaksConnectionsAllTheTimeDoesNotFillTheLog(t *testing.T) {
	s := &server{t: t, reply: "+PONG\r\n"}
	w, log := watch(t, s)
	for range 5 {
		w.look(t.Context())
		s.cut()
	}
	if lines := log.lines(); len(lines) != 1 || w.broken != 4 {
		t.Errorf("it broke %d times, want 4, and the log has %q, want one line", w.broken, lines)
	}
}

// Clients can use it, and that is what upstream_down is about.
func TestAnUpstreamThatHangsUpUponTheQuestionForALockproxyIsThere(t *testing.T) {
	s := &server{t: t, reply: "+PONG\r\n", curt: 1000}
	w, log := watch(t, s)
	look := func(want string) {
		t.Helper()
		if w.look(t.Context()); w.upstream.Cause() != want {
			t.Errorf("cause %q, want %q", w.upstream.Cause(), want)
		}
	}
	look("")
	look("")
	if lines := log.lines(); len(lines) > 0 {
		t.Errorf("the log has %q", lines)
	}
	// Where a lockproxy was found, it may be one that hangs up.
	w.upstream.bar(errLoop)
	s.cut()
	look("it closed the connection")
}

// A lockproxy that ends hangs up, too, and behind its address there may be the next.
func TestALockproxyIsFoundBehindOneThatHangsUp(t *testing.T) {
	s := &server{t: t, reply: "$11\r\n# Lockproxy\r\n", curt: 1}
	w, _ := watch(t, s)
	if w.look(t.Context()); w.upstream.Cause() != errLoop.Error() {
		t.Errorf("cause %q, want %q", w.upstream.Cause(), errLoop)
	}
}

func TestCloseDoesNotWaitForAnUpstreamThatIsSilent(t *testing.T) {
	s := &server{t: t}
	s.start()
	defer s.stop()
	u := New(Options{Addr: s.addr, DialTimeout: time.Minute})
	u.Watch(slog.New(slog.DiscardHandler))
	for connected := false; !connected; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		connected = len(s.conns) > 0
		s.mu.Unlock()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.Close()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Error("Close waits for an answer")
	}
}
