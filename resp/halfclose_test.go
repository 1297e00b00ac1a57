package resp

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// endInput shuts down the sending side, as nc does at the end of its input.
func (c *client) endInput() {
	c.t.Helper()
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
}

const notGiven = "-ERR no lock is given to a client that has shut down its sending side, as one does that is gone: " +
	"keep the connection open until the reply\r\n"

func TestWhatWasAskedForIsAnsweredAfterTheEndOfTheInput(t *testing.T) {
	for name, c := range map[string]struct{ send, want string }{
		"nothing":               {"", ""},
		"at once":               {words("PING") + "PING\r\n", "+PONG\r\n+PONG\r\n"},
		"a read":                {words("GET k"), "$2\r\nme\r\n"},
		"a release":             {words("UNLOCK k me") + words("EXISTS k"), ":1\r\n:0\r\n"},
		"an extension":          {words("PEXPIRE k 20000") + words("EXTEND k you 1000"), ":1\r\n:0\r\n"},
		"a script's release":    {cmdline("EVAL", `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`, "1", "k", "me"), ":1\r\n"},
		"a write":               {words("SET k you"), "+OK\r\n"},
		"one behind another":    {words("DEL k") + words("DEL k") + words("PING"), ":1\r\n:0\r\n+PONG\r\n"},
		"more than is run":      {strings.Repeat(words("GET k"), 500), strings.Repeat("$2\r\nme\r\n", 500)},
		"half a command":        {words("PING") + "*2\r\n$3\r\nGET\r\n$1\r\n", "+PONG\r\n"},
		"the end of a session":  {words("GET k") + words("QUIT") + words("PING"), "$2\r\nme\r\n+OK\r\n"},
		"no protocol":           {words("PING") + "*x\r\n", "+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n"},
		"a subscription":        {words("SUBSCRIBE c"), "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"},
		"a lock that is held":   {words("SET k you NX PX 1000") + words("LOCK k 1000"), "$-1\r\n$-1\r\n"},
		"a lock":                {words("SET j me NX PX 1000") + words("GET j"), notGiven + "$2\r\nme\r\n"},
		"a lock in a sequence":  {words("MULTI") + words("SET j me") + words("EXEC"), "+OK\r\n+QUEUED\r\n" + notGiven},
		"a lock that waits not": {words("PING") + words("LOCK j 1000"), "+PONG\r\n" + notGiven},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{Limits: Limits{Pipeline: 4}})
			r.dial().ask("SET", "k", "me", "PX", "30000")
			arrived := r.engine.hold()
			cl := r.dial()
			cl.ask("PING") // it is there, so that it is gone when there is one client
			cl.send(c.send)
			cl.endInput()
			waitFor(t, "the end of the input is not noticed", func() bool { return r.hears() || r.server.Stats().Clients == 1 })
			go func() {
				for range arrived {
					r.engine.release(0)
				}
			}()
			defer close(r.engine.arrived)
			cl.want(c.want)
			cl.wantEnd()
			waitFor(t, "the session goes on", func() bool { return r.server.Stats().Clients == 1 })
			for _, l := range r.engine.locks {
				<-l.abandoned
			}
		})
	}
}

// For an undo knows a lock by when it expires: one that was extended meanwhile would stay.
func TestALockIsNotExtendedBeforeItIsClearWhetherItsClientGetsIt(t *testing.T) {
	for name, extend := range map[string]string{
		"EXTEND": words("EXTEND k me 30000"),
		"script": cmdline("EVAL", extendText, "1", "k", "me", "30000"),
		"EXPIRE": words("EXPIRE k 30"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			arrived := r.engine.hold()
			c := r.dial()
			c.send(words("SET k me NX PX 1000") + extend)
			c.endInput()
			<-arrived
			waitFor(t, "the end of the input is not noticed", r.hears)
			if len(arrived) > 0 {
				t.Errorf("%s came with the lock", <-arrived)
			}
			r.engine.release(0)
			<-r.engine.onlyLock(t).abandoned
			<-arrived
			r.engine.release(0)
			c.want(notGiven)
		})
	}
}

// Nor before its reply is written, though it was granted long ago: a client that hangs up until then does not have it.
func TestALockIsNotExtendedBeforeItsReplyIsWritten(t *testing.T) {
	vote := "return redis.call('pexpire', KEYS[1], 60000)"
	for name, c := range map[string]struct{ take, extend string }{
		"EXTEND":           {words("SET k me NX PX 30000"), words("EXTEND k me 60000")},
		"script":           {words("SET k me NX PX 30000"), cmdline("EVAL", extendText, "1", "k", "me", "60000")},
		"EXPIRE":           {words("SETNX k me"), words("EXPIRE k 60")},
		"GETEX":            {words("LOCK k 30000 TOKEN me"), words("GETEX k EX 60")},
		"EXEC":             {words("SETNX k me"), words("MULTI") + words("EXPIRE k 60") + words("EXEC")},
		"behind an EXEC":   {words("MULTI") + words("SET k me") + words("EXEC"), words("EXPIRE k 60")},
		"vote":             {words("SETNX k me"), cmdline("EVAL", vote, "1", "k")},
		"vote, second key": {words("SETNX k me"), cmdline("EVAL", vote, "2", "j", "k")},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			cl := r.dial()
			cl.ask("EVAL", vote, "1", "x") // it is known from here on
			arrived := r.engine.hold()
			cl.send(words("GET slow") + c.take + c.extend)
			<-arrived
			<-arrived
			r.engine.release(1)
			lock := r.engine.onlyLock(t)
			select {
			case name := <-arrived:
				t.Errorf("%s came before the lock was the client's", name)
			case <-time.After(20 * time.Millisecond): // proves nothing when slow, finds what comes too early when not
			}
			_ = cl.Conn.(*net.TCPConn).SetLinger(0)
			_ = cl.Close()
			<-lock.abandoned
			r.awaitGone()
			if len(arrived) > 0 {
				t.Errorf("%s came after the client was gone", <-arrived)
			}
			r.engine.release(0)
		})
	}
}

// It waits no longer than that, whatever the writer has in hand.
func TestALockIsExtendedWhenItsReplyIsWritten(t *testing.T) {
	r := newRig(t, Config{})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(words("GET slow") + words("SET k me NX PX 30000") + words("EXTEND k me 60000") + words("PING"))
	<-arrived
	<-arrived
	r.engine.release(1)
	r.engine.release(0)
	c.want("$-1\r\n+OK\r\n")
	<-arrived
	r.engine.release(0)
	if got := c.reply(); got == ":0\r\n" {
		t.Error("it was not extended")
	}
	c.want("+PONG\r\n")
}

// A lock that nobody can be told of is undone as soon as it is granted, whatever its reply has to wait for.
func TestALockIsNotKeptForTheRepliesBeforeIt(t *testing.T) {
	for name, endFirst := range map[string]bool{"granted before": false, "granted after": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			arrived := r.engine.hold()
			c := r.dial()
			c.send(words("GET a") + words("SET k me NX PX 30000") + words("PING"))
			<-arrived
			<-arrived
			if endFirst {
				c.endInput()
				waitFor(t, "the end of the input is not noticed", r.hears)
			}
			r.engine.release(1)
			if !endFirst {
				c.endInput()
			}
			<-r.engine.onlyLock(t).abandoned
			r.engine.release(0)
			c.want("$-1\r\n" + notGiven + "+PONG\r\n")
			c.wantEnd()
		})
	}
}

// hears says whether a client is known to send nothing more.
func (r *rig) hears() bool {
	for _, s := range r.server.sessions.all() {
		s.replies.mu.Lock()
		ended := s.replies.waker.sentAll != nil
		s.replies.mu.Unlock()
		if ended {
			return true
		}
	}
	return false
}

func TestNobodyWaitsOrHoldsForAClientThatSendsNothingMore(t *testing.T) {
	for name, send := range map[string]string{
		"waits":                  words("LOCK k 1000 WAIT 60000"),
		"waits behind others":    words("DEL x") + words("DEL x") + words("LOCK k 1000 WAIT 60000") + words("PING"),
		"would hold":             words("LOCK free 1000 HOLD"),
		"would hold, and waits":  words("LOCK k 1000 WAIT 60000 HOLD"),
		"would wait, it is free": words("LOCK free 1000 WAIT 60000"),
	} {
		t.Run(name, func(t *testing.T) {
			var log endings
			r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			holder := r.dial()
			holder.ask("SET", "k", "me", "NX", "PX", "60000")
			c := r.dial()
			c.send(send)
			c.endInput()
			replies, err := io.ReadAll(c.Conn)
			if strings.Contains(string(replies), "$-1") || err != nil { // it would claim that somebody else holds the lock
				t.Errorf("answered %q, %v", replies, err)
			}
			waitFor(t, "the session goes on", func() bool { return r.server.Stats().Clients == 1 })
			if got := holder.ask("SET", "free", "me", "NX", "PX", "1000"); got != "+OK\r\n" && got != "$-1\r\n" {
				t.Error(got)
			}
			if n := log.Load(); n > 0 {
				t.Errorf("%d connections were ended in the end", n)
			}
		})
	}
}

// endings counts what a server logs of connections that it has ended by force.
type endings struct{ atomic.Int64 }

func (e *endings) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "connection ended") {
		e.Add(1)
	}
	return len(b), nil
}

func TestAHeldLockIsReleasedAtTheEndOfTheInput(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	c.ask("LOCK", "k", "60000", "HOLD")
	c.endInput()
	c.wantEnd()
	r.awaitGone()
	if got := r.dial().ask("EXISTS", "k"); got != ":0\r\n" {
		t.Errorf("EXISTS: %s", got)
	}
}

// A client that is gone altogether, or resets the connection while its last command runs, keeps nothing.
func TestAClientThatIsGoneAfterTheEndOfItsInputKeepsNothing(t *testing.T) {
	for name, linger := range map[string]int{"closed": -1, "reset": 0} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			arrived := r.engine.hold()
			c := r.dial()
			c.send(words("SET k me NX PX 30000"))
			<-arrived
			c.endInput()
			waitFor(t, "the end of the input is not noticed", r.hears)
			_ = c.Conn.(*net.TCPConn).SetLinger(linger)
			_ = c.Close()
			r.engine.release(0)
			<-r.engine.onlyLock(t).abandoned
			r.awaitGone()
		})
	}
}

// What the engine or the upstream never answers does not keep the session for ever.
func TestTheLastCommandHasATimeout(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Write: 50 * time.Millisecond}})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(words("DEL k") + words("GET k"))
	<-arrived
	c.endInput()
	c.wantEnd()
	r.awaitGone()
	r.engine.release(0)
}
