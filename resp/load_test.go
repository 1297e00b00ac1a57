package resp

import (
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockproxy/quorum/admission"
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
	s := r.server.clients()[0]
	for _, waited := range []time.Duration{longLine - 1, longLine, 2 * longLine} {
		s.warnLine(waited)
	}
	if got := log.String(); strings.Count(got, "wait in line") != 1 || !strings.Contains(got, "waited=1s") {
		t.Errorf("the log has %q", got)
	}
}

// A client that gets its turn while CLIENT PAUSE holds its command does not keep others from theirs.
func TestAPausedClientHoldsNobodyUp(t *testing.T) {
	r := newRig(t, Config{})
	r.engine.fill()
	var writers []*client
	for i := range 2 * admission.Least {
		c := r.dial()
		c.send(words("SET k" + strconv.Itoa(i) + " me NX PX 60000"))
		writers = append(writers, c)
	}
	r.inLine(len(writers))
	c := r.dial()
	c.ask("CLIENT", "PAUSE", "600000", "WRITE")
	r.engine.drain()
	waitFor(t, "all writers to be paused", func() bool {
		r.server.pause.mu.Lock()
		defer r.server.pause.mu.Unlock()
		return len(r.server.pause.waiting) == len(writers)
	})
	if got := c.ask("EXISTS", "k"); got != ":0\r\n" {
		t.Errorf("a read while writes are paused: %q", got)
	}
	c.ask("CLIENT", "UNPAUSE")
	for _, w := range writers {
		w.want("+OK\r\n")
	}
}
