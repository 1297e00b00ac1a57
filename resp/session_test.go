package resp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockproxy/quorum"
)

func TestALockIsTakenRefusedAndReleased(t *testing.T) {
	r := newRig(t, Config{})
	a, b := r.dial(), r.dial()
	a.send(words("SET k me NX PX 30000"))
	a.want("+OK\r\n")
	b.send(words("set k you px 30000 nx"))
	b.want("$-1\r\n")
	b.send(words("UNLOCK k you"))
	b.want(":0\r\n")
	a.send(words("UNLOCK k me"))
	a.want(":1\r\n")
	b.send(words("SET k you NX PX 30000"))
	b.want("+OK\r\n")
}

// An earlier reply is not held back by a later command that waits, and a later one does not overtake.
func TestRepliesComeInTheOrderOfTheCommands(t *testing.T) {
	r := newRig(t, Config{})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(words("PING") + words("GET a") + words("GET b") + words("PING") + words("GET c"))
	for range 3 {
		<-arrived
	}
	c.want("+PONG\r\n") // although three commands wait
	r.engine.release(2) // c
	r.engine.release(1) // b
	r.engine.release(0) // a
	c.want("$-1\r\n$-1\r\n+PONG\r\n$-1\r\n")
}

func TestARequestMayArriveByteByByte(t *testing.T) {
	c := newRig(t, Config{}).dial()
	raw := words("SET k v NX EX 10") + "GET k\r\n" + words("ECHO abc")
	for i := range len(raw) {
		c.send(raw[i : i+1])
	}
	c.want("+OK\r\n$1\r\nv\r\n$3\r\nabc\r\n")
}

func TestPipeliningStopsAtTheLimitAndGoesOn(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Pipeline: 4}})
	arrived := r.engine.hold()
	c := r.dial()
	var raw strings.Builder
	for i := range 20 {
		raw.WriteString(words(fmt.Sprintf("GET k%d", i)))
	}
	c.send(raw.String())
	for i := range 4 {
		<-arrived
		if i == 3 {
			select {
			case name := <-arrived:
				t.Errorf("%s was submitted beyond the limit", name)
			case <-time.After(20 * time.Millisecond): // proves nothing when slow, finds a missing limit when not
			}
		}
	}
	for i := range 20 {
		r.engine.release(0)
		c.want("$-1\r\n")
		if i < 16 {
			<-arrived
		}
	}
}

// A command that may take several rounds has its key to itself; single-round commands share it.
func TestCommandsOnOneKeyWaitForEachOther(t *testing.T) {
	for _, c := range []struct{ first, second, at string }{
		{"DEL k", "GET k", "one"},
		{"GET k", "DEL k", "one"},
		{"DEL a k", "DEL k b", "one"},
		{"DEL a k", "EXISTS b k", "one"},
		{"SET k v XX", "SET k v", "one"},
		{"SET k v KEEPTTL", "SET k v", "one"},
		{"EXPIRE k 10", "EXPIRE k 10", "one"},
		{"GET k", "GET k", "both"},
		{"SET k v NX EX 10", "UNLOCK k v", "both"},
		{"SET k v", "SET k v", "both"},
		{"DEL k", "DEL j", "both"},
		{"EXPIRE a 1", "GET k", "both"},
	} {
		r := newRig(t, Config{})
		arrived := r.engine.hold()
		cl := r.dial()
		cl.send(words(c.first) + words(c.second) + words("PING"))
		<-arrived
		if c.first == "DEL a k" {
			<-arrived
		}
		if c.at == "both" {
			<-arrived
		}
		select {
		case name := <-arrived:
			t.Errorf("%s; %s: %s was submitted too early", c.first, c.second, name)
		case <-time.After(5 * time.Millisecond):
		}
		for !cl.peek("+PONG\r\n") {
			if r.engine.holds() {
				r.engine.release(0)
			}
		}
	}
}

// An addition may take a second round. A release between the two would have that find nothing.
func TestAnAdditionHasItsKeyToItself(t *testing.T) {
	r := newRig(t, Config{})
	arrived := r.engine.hold()
	cl := r.dial()
	cl.send(words("SET k v") + cmdline("EVAL", addText, "1", "k", "v", "9000"))
	<-arrived
	r.engine.release(0)
	<-arrived
	cl.send(words("UNLOCK k v"))
	select {
	case name := <-arrived:
		t.Errorf("%s was submitted too early", name)
	case <-time.After(5 * time.Millisecond):
	}
	r.engine.releaseAll()
	cl.want("+OK\r\n:1\r\n:1\r\n")
}

// An attempt that finds the votes split asks again, unless what the client has sent behind it on the key is under way; what it
// sends from then on waits.
func TestAnAttemptAsksAgainIfNothingIsBehindIt(t *testing.T) {
	for _, c := range []struct {
		first, second, third string
		again                bool
	}{
		{"SET k v NX PX 9000", "GET j", "UNLOCK k v", true},
		{"SETNX k v", "GET j", "GET k", true},
		{"LOCK k 9000", "GET j", "GET k", true},
		{"EVAL return(redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2])) 1 k v 9000", "EXISTS j", "DEL k", true},
		{"SET k v NX PX 9000", "UNLOCK k v", "", false},
		{"SETNX k v", "EXISTS j k", "", false},
	} {
		r := newRig(t, Config{})
		arrived := r.engine.hold()
		cl := r.dial()
		cl.send(words(c.first) + words(c.second))
		<-arrived
		<-arrived
		r.engine.mu.Lock()
		insist := r.engine.insist
		r.engine.mu.Unlock()
		if insist() != c.again {
			t.Errorf("%s; %s: it may ask again: %v", c.first, c.second, !c.again)
		}
		if c.again {
			cl.send(words(c.third))
			select {
			case name := <-arrived:
				t.Errorf("%s; %s: %s was submitted too early", c.first, c.third, name)
			case <-time.After(5 * time.Millisecond):
			}
			r.engine.release(0)
			<-arrived
		}
		r.engine.releaseAll()
	}
}

// holds says whether an operation waits for the test.
func (e *fakeEngine) holds() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.held) > 0
}

// peek reads one line if there is one, and says whether it was this.
func (c *client) peek(raw string) bool {
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	defer func() { _ = c.SetReadDeadline(time.Now().Add(patienceMax)) }()
	line, err := c.r.ReadString('\n')
	return err == nil && line == raw
}

// isAnswered says whether anything comes within a moment. It stays to be read.
func (c *client) isAnswered() bool {
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	defer func() { _ = c.SetReadDeadline(time.Now().Add(patienceMax)) }()
	_, err := c.r.Peek(1)
	return err == nil
}

func TestAHangUpIsNoticedWhileACommandWaits(t *testing.T) {
	for name, behind := range map[string]string{
		"nothing behind it":  "",
		"a command behind":   words("DEL k"), // has to wait for the first, so reading is paused
		"more than is run":   strings.Repeat(words("GET x"), 5000),
		"half a command":     "*3\r\n$3\r\nSE",
		"an inline fragment": "SET",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			arrived := r.engine.hold()
			c := r.dial()
			c.send(words("SET k me NX PX 30000") + behind)
			<-arrived
			_ = c.Conn.(*net.TCPConn).SetLinger(0) // else it may still read: see halfclose_test.go
			_ = c.Close()
			r.awaitGone() // while its command still waits
			r.engine.release(0)
			<-r.engine.onlyLock(t).abandoned
		})
	}
}

func TestALockWhoseClientHangsUpBeforeTheReplyIsAbandoned(t *testing.T) {
	r := newRig(t, Config{})
	arrived := r.engine.hold()
	c := r.dial()
	// The lock is granted, but its reply has to wait behind one that never comes.
	c.send(words("GET never") + words("SET k me NX PX 30000"))
	<-arrived
	<-arrived
	r.engine.release(1)
	_ = c.Close()
	<-r.engine.onlyLock(t).abandoned
}

func TestALockGrantedTooLateIsRefusedAndAbandoned(t *testing.T) {
	for _, line := range []string{"SET k me NX PX 30000", "SETNX k me", "LOCK k 1000", "SET k me NX GET EX 10"} {
		r := newRig(t, Config{})
		r.engine.late = true
		c := r.dial()
		want := map[string]string{"SETNX k me": ":0\r\n", "SET k me NX GET EX 10": "$0\r\n\r\n"}[line]
		if want == "" {
			want = "$-1\r\n"
		}
		if got := c.ask(strings.Fields(line)...); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
		<-r.engine.onlyLock(t).abandoned
		if late := r.server.Stats().Late; late != 1 {
			t.Errorf("%d late locks counted", late)
		}
	}
}

func TestALockThatWasAnsweredIsNotAbandoned(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	c.ask("SET", "k", "me", "NX", "EX", "10")
	_ = c.Close()
	r.awaitGone()
	select {
	case <-r.engine.onlyLock(t).abandoned:
		t.Error("the client's lock was undone behind its back")
	default:
	}
}

// Masters may hold it still. A watchdog that is told that the lock is lost gives up.
func TestAnExtensionWhoseReplyIsTooLateIsInDoubt(t *testing.T) {
	const watchdog = "if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then redis.call('pexpire', KEYS[1], ARGV[1]); return 1; end; return 0;"
	r := newRig(t, Config{})
	r.engine.locking = true
	c := r.dial()
	c.ask("SET", "k", "me", "NX", "EX", "10")
	r.engine.late = true
	for name, words := range map[string][]string{
		"a command":        {"EXTEND", "k", "me", "1000"},
		"a script":         {"EVAL", extendText, "1", "k", "me", "1000"},
		"a script by vote": {"EVAL", watchdog, "1", "j", "1000", "me"},
		"one nobody knows": {"EVAL", unheardOf, "1", "j"},
	} {
		if got, want := c.ask(words...), "-"+quorum.ErrLate.Error()+"\r\n"; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestShutdownAnswersWhatIsRunningAndRunsNothingMore(t *testing.T) {
	r := newRig(t, Config{})
	arrived := r.engine.hold()
	idle, busy := r.dial(), r.dial()
	idle.ask("PING")
	busy.send(words("SET k me NX EX 10"))
	<-arrived
	done := r.shutDown()
	idle.wantEnd()
	_ = idle.Close()
	busy.send(words("SET j me NX EX 10"))
	r.engine.release(0)
	busy.want("+OK\r\n")
	busy.wantEnd()
	_ = busy.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", r.addr); err == nil {
		t.Error("the port is still open")
	}
}

func TestShutdownGivesUpWhenItsContextEnds(t *testing.T) {
	r := newRig(t, Config{})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(words("SET k me NX EX 10"))
	<-arrived
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.server.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	r.engine.release(0)
	<-r.engine.onlyLock(t).abandoned
}

func TestAPanicEndsOneConnection(t *testing.T) {
	r := newRig(t, Config{})
	other, c := r.dial(), r.dial()
	other.ask("PING")
	r.server.scripts = nil
	c.send(words("EVAL x 0"))
	c.wantEnd()
	other.send(words("PING"))
	other.want("+PONG\r\n")
}

// What a session holds as a bug is met must not keep what ends it from ending it.
func TestABugInAReplyEndsOneConnection(t *testing.T) {
	r := newRig(t, Config{})
	r.server.commands = newTable(append(connectionCommands,
		&command{name: "atonce", arity: 1, run: func(*call) Reply { return Array{nil} }},
		&command{name: "claimed", arity: 1, run: func(c *call) Reply {
			c.claim(overlapAny, "", made).resolve(outcome{reply: Array{nil}})
			return nil
		}}))
	for _, name := range []string{"ATONCE", "CLAIMED"} {
		c := r.dial()
		c.send(words(name))
		c.wantEnd()
	}
}

// A fullListener has no file left for a client, as often as it is asked, and says that it is asked.
type fullListener struct {
	net.Listener
	asked chan struct{}
}

func (l fullListener) Accept() (net.Conn, error) {
	select {
	case l.asked <- struct{}{}:
	default:
	}
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
}

// Twenty attempts a second are not twenty lines.
func TestClientsThatCannotBeAcceptedAreLoggedOnceAMinute(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	l := fullListener{listen(t), make(chan struct{}, 4)}
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(l) }()
	for range cap(l.asked) { // all but the last are told, or not, before the next
		<-l.asked
	}
	_ = r.server.Shutdown(t.Context())
	if err := <-served; !errors.Is(err, ErrServerClosed) {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "cannot accept clients: if files are what lacks, raise ulimit -n"); n != 1 {
		t.Errorf("%d lines, want 1:\n%s", n, log.String())
	}
}
