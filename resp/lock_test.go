package resp

import (
	"errors"
	"strings"
	"testing"
	"time"

	"lockproxy/quorum"
)

// waiters waits until so many clients wait for k; the server owes nobody a signal.
func (r *rig) waiters(n int) {
	r.t.Helper()
	for range 5000 {
		if r.server.gates.Waiting(quorum.Key{Name: "k"}) == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	r.t.Fatalf("%d clients wait, want %d", r.server.gates.Waiting(quorum.Key{Name: "k"}), n)
}

// wantLocked reads LOCK's reply.
func (c *client) wantLocked(token string) {
	c.t.Helper()
	if got := c.reply(); !strings.HasPrefix(got, "*4\r\n$5\r\ntoken\r\n$"+string(rune('0'+len(token)))+"\r\n"+token+"\r\n") {
		c.t.Fatalf("got %q", got)
	}
}

func TestWaitersGetTheLockInTheirOrder(t *testing.T) {
	r := newRig(t, Config{})
	holder, a, b := r.dial(), r.dial(), r.dial()
	holder.ask("LOCK", "k", "60000", "TOKEN", "x")
	a.send(words("LOCK k 60000 TOKEN a WAIT 60000") + words("PING"))
	r.waiters(1)
	b.send(words("LOCK k 60000 TOKEN b WAIT 60000"))
	r.waiters(2)
	holder.ask("UNLOCK", "k", "x")
	a.wantLocked("a")
	a.want("+PONG\r\n")
	a.ask("UNLOCK", "k", "a")
	b.wantLocked("b")
}

func TestAWaiterThatHangsUpIsForgottenAtOnce(t *testing.T) {
	r := newRig(t, Config{})
	r.dial().ask("LOCK", "k", "60000")
	c := r.dial()
	c.send(words("LOCK k 60000 WAIT 60000"))
	r.waiters(1)
	began := time.Now()
	_ = c.Close()
	r.waiters(0)
	if d := time.Since(began); d > 100*time.Millisecond {
		t.Errorf("after %v", d)
	}
}

func TestWhatFollowsAWaitOnItsKeyIsForWhenTheLockIsThere(t *testing.T) {
	r := newRig(t, Config{})
	holder, c := r.dial(), r.dial()
	holder.ask("LOCK", "k", "60000", "TOKEN", "x")
	c.send(words("LOCK k 60000 TOKEN c WAIT 60000") + words("UNLOCK k c"))
	r.waiters(1)
	holder.ask("UNLOCK", "k", "x")
	c.wantLocked("c")
	c.want(":1\r\n")
}

func TestShutdownEndsWaitsWithAnError(t *testing.T) {
	r := newRig(t, Config{})
	r.dial().ask("LOCK", "k", "60000")
	c := r.dial()
	c.send(words("LOCK k 60000 WAIT 60000"))
	r.waiters(1)
	go func() { _ = r.server.Shutdown(t.Context()) }()
	c.want("-ERR lockproxy is shutting down\r\n")
	c.wantEnd()
}

func TestAHeldLockIsExtendedUntilItIsGivenBack(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	c.send(words("LOCK k 300 TOKEN me HOLD"))
	c.wantLocked("me")
	for range 5 {
		time.Sleep(150 * time.Millisecond) // twice over its TTL, and more
		if got := c.ask("GET", "k"); got != "$2\r\nme\r\n" {
			t.Fatalf("it was not extended: %q", got)
		}
	}
	c.ask("UNLOCK", "k", "you") // is not its token
	time.Sleep(350 * time.Millisecond)
	if got := c.ask("UNLOCK", "k", "me"); got != ":1\r\n" {
		t.Fatalf("UNLOCK: %q", got)
	}
	if got := c.ask("LOCK", "k", "30", "TOKEN", "me"); got == "$-1\r\n" {
		t.Fatal("it is still there")
	}
	time.Sleep(60 * time.Millisecond)
	if got := c.ask("GET", "k"); got != "$-1\r\n" {
		t.Errorf("a lock that is not held was extended: %q", got)
	}
}

func TestAHeldLockIsReleasedWhenItsClientIsGone(t *testing.T) {
	for name, leave := range map[string]func(*client){
		"hangs up": func(c *client) { _ = c.Close() },
		"QUIT":     func(c *client) { c.send(words("QUIT")) },
		"RESET":    func(c *client) { c.send(words("RESET")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			c, other := r.dial(), r.dial()
			c.send(words("LOCK k 60000 TOKEN me HOLD"))
			c.wantLocked("me")
			leave(c)
			other.send(words("LOCK k 60000 TOKEN you WAIT 5000"))
			other.wantLocked("you")
		})
	}
}

func TestAHeldLockThatIsLostIsToldInEveryWay(t *testing.T) {
	for name, lose := range map[string]func(*rig){
		"taken by force": func(r *rig) { r.dial().ask("SET", "k", "you") },
		"no quorum until its end": func(r *rig) {
			r.engine.mu.Lock()
			r.engine.err = errors.New("NOQUORUM")
			r.engine.mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			r.engine.mu.Lock()
			r.engine.err = nil
			r.engine.mu.Unlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			two, three, listener := r.dial(), r.dial(), r.dial()
			listener.send(words("SUBSCRIBE lockproxy:lost:k"))
			listener.reply()
			two.send(words("LOCK j 60 TOKEN me HOLD"))
			two.wantLocked("me")
			three.ask("HELLO", "3")
			if got := three.ask("LOCK", "k", "60", "TOKEN", "me", "HOLD"); !strings.HasPrefix(got, "%2\r\n") {
				t.Fatalf("got %q", got)
			}
			lose(r)
			three.want(">2\r\n$4\r\nlost\r\n$1\r\nk\r\n")
			three.send(words("PING") + words("GET k") + words("PING"))
			three.want("+PONG\r\n-LOST the lock on 'k' could not be extended and may be another client's; this command was not run, the next will be\r\n+PONG\r\n")
			three.send(words("EXISTS nothing"))
			three.want(":0\r\n")
			if name == "taken by force" {
				listener.want("*3\r\n$7\r\nmessage\r\n$16\r\nlockproxy:lost:k\r\n$0\r\n\r\n")
				return
			}
			if got := two.ask("GET", "j"); !strings.HasPrefix(got, "-LOST the lock on 'j'") {
				t.Errorf("got %q", got)
			}
		})
	}
}
