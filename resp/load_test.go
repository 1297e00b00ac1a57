package resp

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/quorum/admission"
	"lockproxy/resp/upstream"
)

// fill has as many rounds under way as may be, and more do not end by themselves.
func (e *fakeEngine) fill() {
	for range admission.Least {
		e.control.Begin(1)
	}
}

func (e *fakeEngine) drain() {
	for range admission.Least {
		e.control.Failed(1)
	}
}

func (r *rig) inLine(n int) {
	r.t.Helper()
	waitFor(r.t, "clients in line", func() bool { return r.engine.control.Waiting() == n })
}

func TestAClientWaitsWhereTooMuchIsUnderWay(t *testing.T) {
	r := newRig(t, Config{})
	r.engine.fill()
	arrived := r.engine.hold()
	c := r.dial()
	c.send(words("PING") + words("SET k me NX PX 60000") + words("GET k") + words("PING"))
	c.want("+PONG\r\n")
	r.inLine(1)
	if got := r.dial().ask("PING"); got != "+PONG\r\n" {
		t.Errorf("another client, who asks nothing of the engine: %q", got)
	}
	c.send(words("PING")) // that more has come does not put it in line once more
	r.inLine(1)
	if len(arrived) > 0 {
		t.Fatalf("the engine was asked: %s", <-arrived)
	}
	r.engine.drain()
	<-arrived
	<-arrived
	r.engine.releaseAll()
	c.want("+OK\r\n$2\r\nme\r\n+PONG\r\n+PONG\r\n")
	r.inLine(0)
}

func TestACommandOnTheEmptyKeyWaitsInLineAsOnAnyOther(t *testing.T) {
	r := newRig(t, Config{})
	r.engine.fill()
	c := r.dial()
	c.send(cmdline("GET", "") + words("PING"))
	r.inLine(1)
	r.engine.drain()
	c.want("$-1\r\n+PONG\r\n")
}

func TestAClientInLineIsNotIdle(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Idle: 100 * time.Millisecond}})
	r.engine.fill()
	c := r.dial()
	c.send(words("SET k me PX 60000"))
	r.inLine(1)
	r.dial().wantEnd() // one that is idle, and came later
	r.engine.drain()
	c.want("+OK\r\n")
}

func TestOthersGoOnInPlaceOfAClientThatIsGone(t *testing.T) {
	r := newRig(t, Config{})
	r.engine.fill()
	gone, c := r.dial(), r.dial()
	gone.send(words("SET j me NX PX 60000"))
	r.inLine(1)
	c.send(words("SET k me NX PX 60000"))
	r.inLine(2)
	_ = gone.Conn.(*net.TCPConn).SetLinger(0) // else it may still read, for all that the server knows
	_ = gone.Close()
	r.inLine(1)
	r.engine.drain()
	c.want("+OK\r\n")
	if got := c.ask("EXISTS", "j"); got != ":0\r\n" {
		t.Errorf("a lock for a client that is gone: %q", got)
	}
}

func TestAClientThatSendsNothingMoreWaitsInLine(t *testing.T) {
	r := newRig(t, Config{})
	r.engine.fill()
	c := r.dial()
	c.send(words("SET k me PX 60000") + words("GET k"))
	c.endInput()
	r.inLine(1)
	r.engine.drain()
	c.want("+OK\r\n$2\r\nme\r\n")
	c.wantEnd()
}

// Its library connects anew, to another proxy, and sends the command again: it would hand an error on to the application.
func TestShutdownEndsTheConnectionOfAClientInLine(t *testing.T) {
	r := newRig(t, Config{})
	r.engine.fill()
	arrived := r.engine.hold()
	c := r.dial()
	c.send(words("PING") + words("SET k me NX PX 60000"))
	c.want("+PONG\r\n")
	r.inLine(1)
	done := r.shutDown()
	c.wantEnd()
	_ = c.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(arrived) > 0 || r.engine.control.Waiting() != 0 {
		t.Errorf("%d commands were begun, %d wait in line", len(arrived), r.engine.control.Waiting())
	}
}

func TestALongWaitInLineIsLoggedOnce(t *testing.T) {
	log := &logged{}
	r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	r.dial().ask("PING")
	s := r.server.sessions.all()[0]
	for _, waited := range []time.Duration{longLine - 1, longLine, 2 * longLine} {
		s.reader.warnLine(waited)
	}
	if got := log.String(); strings.Count(got, "wait in line") != 1 || !strings.Contains(got, "waited=1s") {
		t.Errorf("the log has %q", got)
	}
}

// A client that sends nothing more gets no lock, so a command of its own that waits in line behind its LOCK is not begun. While what it
// asked for before is answered, its turn is for others.
func TestAClientThatBeginsNothingMoreHoldsNobodyUp(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, e *fakeEngine, _ *Server, dial func() net.Conn) {
		arrived := e.hold()
		send := func(c net.Conn, requests string) {
			if _, err := io.WriteString(c, requests); err != nil {
				t.Error(err)
			}
		}
		var clients []net.Conn
		for range admission.Least {
			c := dial()
			send(c, words("DEL under-way")+words("LOCK other 1000 WAIT 60000"))
			clients = append(clients, c)
		}
		synctest.Wait()
		e.fill()
		for _, c := range clients {
			send(c, words("DEL k"))
		}
		synctest.Wait()
		if n := e.control.Waiting(); n != len(clients) {
			t.Errorf("%d wait in line", n)
		}
		for _, c := range clients {
			_ = c.Close()
		}
		synctest.Wait()
		e.drain()
		before := len(arrived)
		other := dial()
		send(other, words("DEL k"))
		synctest.Wait()
		if len(arrived) != before+1 {
			t.Error("another client has to wait")
		}
		_ = other.Close()
		e.releaseAll()
	})
}

// Where the upstream hangs, locks go on: a client that waits for it keeps no turns that it was given for more locks.
func TestAClientThatWaitsForTheUpstreamHoldsNobodyUp(t *testing.T) {
	lock, data := words("SET lock:a me PX 60000"), words("SET data x")
	for name, tc := range map[string]struct {
		writes           int // that each connection to the upstream takes
		before, requests string
	}{
		"that takes no requests":                     {1, "", lock + data},
		"that takes no requests, when it is in line": {1, "", data + lock},
		"that takes no more":                         {2, data, lock + words("SUBSCRIBE c")},
		"that does not greet":                        {0, "", lock + data},
		"that does not tell its commands":            {0, "", lock + words("LPUSH data x")},
		"that does not tell them to a transaction":   {0, "", lock + words("MULTI") + words("LPUSH data x")},
		"that does not greet, for a script":          {0, "", lock + words("SCRIPT LOAD x")},
	} {
		t.Run(name, func(t *testing.T) {
			up, hangs := hangingUpstream(t, tc.writes)
			r := newRig(t, Config{Upstream: up, LockKeys: []string{"lock:*"}, Limits: Limits{Write: time.Hour}})
			defer hangs.end()
			load := r.engine.control
			c := r.dial()
			if c.send(tc.before); tc.before != "" {
				c.want("+OK\r\n")
			}
			takeAll(load)
			c.send(tc.requests)
			waitFor(t, "it is not in line, nor waits for the upstream", func() bool { return load.Waiting() > 0 || hangs.any() })
			freeSome(load) // it is given several turns
			waitFor(t, "it does not wait for the upstream", hangs.any)
			freeSome(load)
			takeAll(load)
			if n, most := load.Rounds(); n < most {
				t.Errorf("it keeps %d turns", most-n)
			}
		})
	}
}

// What is left to be sent to the upstream does not cost a client its place.
func TestAClientInLineStaysThereWhenTheUpstreamIsToldToDiscard(t *testing.T) {
	u, r, c := newUpstreamRig(t)
	c.send(words("MULTI") + words("SET data 1"))
	u.wantRequest(t, "MULTI")
	u.wantRequest(t, "SET data 1")
	u.answers <- "+OK\r\n+QUEUED\r\n"
	c.want("+OK\r\n+QUEUED\r\n")
	r.engine.fill()
	c.send(words("SET lock:a me PX 60000") + words("EXEC") + words("SET lock:a me PX 60000"))
	u.wantRequest(t, "DISCARD")
	r.inLine(1)
	for range 2 {
		if reply := c.reply(); reply[0] != '-' {
			t.Errorf("got %q", reply)
		}
	}
	r.engine.drain()
	c.want("+OK\r\n")
}

// takeAll begins rounds until no more may be under way.
func takeAll(c *admission.Control) {
	p := c.Place(func() {})
	for p.Admit(1) {
		c.Begin(1)
	}
	p.Leave()
}

// freeSome ends rounds until nobody is in line.
func freeSome(c *admission.Control) {
	for c.Waiting() > 0 {
		c.Failed(1)
	}
}

// hangs are the writes to an upstream that hang.
type hangs struct {
	n    atomic.Int64
	over chan struct{}
}

func (h *hangs) any() bool { return h.n.Load() > 0 }
func (h *hangs) end()      { close(h.over) }

// hangingUpstream answers each request. Each connection takes so many writes; what is written next hangs until the test ends it.
func hangingUpstream(t *testing.T, writes int) (*upstream.Redis, *hangs) {
	var running sync.WaitGroup
	l := serveEach(t, &running, func(conn net.Conn) {
		defer conn.Close()
		eachRequest(conn, func([]string) bool {
			_, err := io.WriteString(conn, "+OK\r\n")
			return err == nil
		})
	})
	h := &hangs{over: make(chan struct{})}
	up := upstream.New(upstream.Options{Addr: l.Addr().String(), Wrap: func(c net.Conn) net.Conn { return &hanging{c, h, writes} }})
	t.Cleanup(up.Close)
	return up, h
}

type hanging struct {
	net.Conn
	hangs *hangs
	left  int // writes until one hangs
}

func (c *hanging) Write(b []byte) (int, error) {
	if c.left--; c.left < 0 {
		c.hangs.n.Add(1)
		<-c.hangs.over
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}
