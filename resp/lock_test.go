package resp

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockproxy/quorum"
)

// waiters waits until so many clients wait for k; the server owes nobody a signal.
func (r *rig) waiters(n int) {
	r.t.Helper()
	waitFor(r.t, fmt.Sprintf("not %d clients wait", n), func() bool { return r.server.gates.Waiting(quorum.Key{Name: "k"}) == n })
}

// newest is the fence of the key's latest lock, as clients are told it.
func (e *fakeEngine) newest(name string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strconv.FormatInt(e.fence[quorum.Key{Name: name}], 10)
}

// wantLocked reads LOCK's reply.
func (c *client) wantLocked(token string) {
	c.t.Helper()
	if got := c.reply(); !strings.HasPrefix(got, "*6\r\n$5\r\ntoken\r\n$"+string(rune('0'+len(token)))+"\r\n"+token+"\r\n$5\r\nfence\r\n:") {
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

func TestAWaiterThatHangsUpIsForgotten(t *testing.T) {
	r := newRig(t, Config{})
	r.dial().ask("LOCK", "k", "60000")
	c := r.dial()
	c.send(words("LOCK k 3600000 WAIT 3600000"))
	r.waiters(1)
	_ = c.Close()
	r.waiters(0)
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
	t.Parallel()
	r := newRig(t, Config{})
	c := r.dial()
	c.send(words("LOCK k 3000 TOKEN me HOLD"))
	c.wantLocked("me")
	r.extendedBy(3 * time.Second) // it has outlived its TTL
	if got := c.ask("GET", "k"); got != "$2\r\nme\r\n" {
		t.Fatalf("it was not extended: %q", got)
	}
	c.ask("UNLOCK", "k", "you") // is not its token
	r.extendedBy(time.Millisecond)
	if got := c.ask("UNLOCK", "k", "me"); got != ":1\r\n" {
		t.Fatalf("UNLOCK: %q", got)
	}
	if got := c.ask("LOCK", "k", "1000", "TOKEN", "me"); got == "$-1\r\n" {
		t.Fatal("it is still there")
	}
	waitFor(t, "a lock that is not held is extended", func() bool { return c.ask("GET", "k") == "$-1\r\n" })
}

// expires returns when k does.
func (r *rig) expires() time.Time {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	return r.engine.keys[quorum.Key{Name: "k"}].expires
}

// extendedBy waits until k expires that much later than now.
func (r *rig) extendedBy(more time.Duration) {
	r.t.Helper()
	first := r.expires()
	waitFor(r.t, "it is not extended", func() bool { return r.expires().Sub(first) >= more })
}

// Whoever extends a lock that is held changes for how long it is held each time: longer or shorter, by whatever command.
func TestAHeldLockKeepsTheTTLItWasExtendedBy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		held, by string
		extend   func(c *client, by string) string
	}{
		"longer":              {"1500", "3000", func(c *client, by string) string { return c.ask("EXTEND", "k", "me", by) }},
		"shorter":             {"60000", "3000", func(c *client, by string) string { return c.ask("EXTEND", "k", "me", by) }},
		"by PEXPIRE, longer":  {"1500", "3000", func(c *client, by string) string { return c.ask("PEXPIRE", "k", by) }},
		"by PEXPIRE, shorter": {"60000", "3000", func(c *client, by string) string { return c.ask("PEXPIRE", "k", by) }},
		"by PEXPIRE in EXEC": {"1500", "3000", func(c *client, by string) string {
			c.ask("MULTI")
			c.ask("PEXPIRE", "k", by)
			return c.ask("EXEC")
		}},
		"by GETEX, longer":  {"1500", "3000", func(c *client, by string) string { return c.ask("GETEX", "k", "PX", by) }},
		"by GETEX, shorter": {"60000", "3000", func(c *client, by string) string { return c.ask("GETEX", "k", "PX", by) }},
		"by SET":            {"60000", "3000", func(c *client, by string) string { return c.ask("SET", "k", "me", "XX", "PX", by) }},
		"by PSETEX":         {"1500", "3000", func(c *client, by string) string { return c.ask("PSETEX", "k", by, "me") }},
		"by a script that takes or extends": {"60000", "3000", func(c *client, by string) string {
			return c.ask("EVAL", takeOrExtendText, "1", "k", "me", by)
		}},
		"by script": {"1500", "3000", func(c *client, by string) string { return c.ask("EVAL", extendText, "1", "k", "me", by) }},
		"by more":   {"1500", "1500", func(c *client, by string) string { return c.ask("EVAL", addText, "1", "k", "me", by) }},
		"by more, twice": {"1500", "1500", func(c *client, by string) string {
			c.ask("EVAL", addText, "1", "k", "me", by)
			return c.ask("EVAL", addText, "1", "k", "me", by)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			client := r.dial()
			client.send(words("LOCK k " + c.held + " TOKEN me HOLD"))
			client.wantLocked("me")
			if got := c.extend(client, c.by); got[0] == '-' || got == ":0\r\n" || got == "$-1\r\n" {
				t.Fatalf("got %q", got)
			}
			promised := r.expires()
			waitFor(t, "it is not extended", func() bool {
				now := r.expires()
				if now.Before(promised) {
					t.Fatalf("it expires %v before its client was told it would", promised.Sub(now))
				}
				return now.Sub(promised) >= time.Second
			})
			if got := client.ask("GET", "k"); got != "$2\r\nme\r\n" {
				t.Errorf("it is lost: %q", got)
			}
		})
	}
}

// Those who know their token need not wait for LOCK's reply.
func TestAHoldKnowsWhatWasSentBehindItsLock(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	c := r.dial()
	c.send(words("LOCK k 60000 TOKEN me HOLD") + words("EXTEND k me 3000"))
	c.wantLocked("me")
	c.reply()
	r.extendedBy(2 * time.Second)
	c.ask("UNLOCK", "k", "me")
	c.send(words("LOCK k 60000 TOKEN me HOLD") + words("SET k me PX 3000"))
	c.wantLocked("me")
	c.want("+OK\r\n")
	r.extendedBy(2 * time.Second)
	c.ask("UNLOCK", "k", "me")
	c.send(words("LOCK k 300 TOKEN me HOLD") + words("UNLOCK k me") + words("LOCK k 300 TOKEN you HOLD"))
	c.wantLocked("me")
	c.want(":1\r\n")
	c.wantLocked("you")
	waitFor(t, "there is a hold of a lock that was refused or given back", func() bool {
		for _, s := range r.server.sessions.all() {
			s.holds.mu.Lock()
			defer s.holds.mu.Unlock()
			if len(s.holds.coming) > 0 || len(s.holds.kept) != 1 {
				return false
			}
		}
		return true
	})
	r.dial().ask("LOCK", "k", "300", "HOLD")
	r.extendedBy(300 * time.Millisecond)
	if got := c.ask("GET", "k"); got != "$3\r\nyou\r\n" {
		t.Errorf("got %q", got)
	}
	// RESET gives back what was taken in the same breath.
	c.send(words("LOCK j 60000 TOKEN me HOLD") + words("RESET"))
	c.wantLocked("me")
	c.want("+RESET\r\n")
	other := r.dial()
	other.send(words("LOCK j 300 TOKEN you WAIT 60000"))
	other.wantLocked("you")
}

// Its client locks once more with the same token, and gives that back.
func TestALockThatIsGrantedTooLateIsNotHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	late := func(is bool) {
		r.engine.mu.Lock()
		defer r.engine.mu.Unlock()
		r.engine.late = is
		clear(r.engine.keys)
	}
	c := r.dial()
	late(true)
	if got := c.ask("LOCK", "k", "300", "TOKEN", "me", "HOLD"); got != "$-1\r\n" {
		t.Fatalf("got %q", got)
	}
	late(false)
	c.send(words("LOCK k 300 TOKEN me HOLD") + words("UNLOCK k me"))
	c.wantLocked("me")
	c.want(":1\r\n")
	time.Sleep(200 * time.Millisecond)
	if got := c.ask("GET", "k"); got != "$-1\r\n" {
		t.Errorf("it is extended after it was given back: %q", got)
	}
}

// Validity is told in whole milliseconds, and 0 of them are no lock.
func TestALockOfLessThanAMillisecondIsNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{TTLMin: time.Millisecond})
	c := r.dial()
	if got := c.ask("LOCK", "k", "1"); got != "$-1\r\n" {
		t.Errorf("LOCK: %q", got)
	}
	c.ask("LOCK", "j", "60000", "TOKEN", "me")
	if got := c.ask("EXTEND", "j", "me", "1"); !strings.HasPrefix(got, "-NOQUORUM ") {
		t.Errorf("EXTEND: %q", got)
	}
	if late := r.server.Stats().Late; late != 2 {
		t.Errorf("%d were late", late)
	}
}

func TestAHeldLockIsExtendedInTimeThoughItsReplyWasLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.dial().ask("LOCK", "j", "60000")
	c := r.dial()
	c.send(words("LOCK j 5000 WAIT 4000") + words("LOCK k 5000 TOKEN me HOLD"))
	c.want("$-1\r\n")
	c.wantLocked("me")
	time.Sleep(1500 * time.Millisecond)
	if got := c.ask("GET", "k"); got != "$2\r\nme\r\n" {
		t.Errorf("got %q", got)
	}
}

func TestAHeldLockIsReleasedWhenItsClientIsGone(t *testing.T) {
	t.Parallel()
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
			other.send(words("LOCK k 60000 TOKEN you WAIT 60000"))
			other.wantLocked("you")
		})
	}
}

func TestAHeldLockThatIsLostIsToldInEveryWay(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*rig){
		"taken by force":          func(r *rig) { r.dial().ask("SET", "k", "you") },
		"no quorum until its end": func(r *rig) { r.engine.fail(errors.New("NOQUORUM")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			two, three, listener := r.dial(), r.dial(), r.dial()
			listener.send(words("SUBSCRIBE lockproxy:lost:k"))
			listener.reply()
			two.send(words("LOCK j 1000 TOKEN me HOLD"))
			two.wantLocked("me")
			three.ask("HELLO", "3")
			if got := three.ask("LOCK", "k", "1000", "TOKEN", "me", "HOLD"); !strings.HasPrefix(got, "%3\r\n") {
				t.Fatalf("got %q", got)
			}
			fence := r.engine.newest("k")
			lose(r)
			three.want(">3\r\n$4\r\nlost\r\n$1\r\nk\r\n:" + fence + "\r\n")
			if name != "taken by force" { // then j is lost, too
				waitFor(t, "nobody is told of j", func() bool { return strings.HasPrefix(two.ask("GET", "j"), "-LOST the lock on 'j'") })
			}
			r.engine.fail(nil)
			three.send(words("PING") + words("GET k") + words("PING"))
			three.want("+PONG\r\n-LOST the lock on 'k' could not be extended and may be another client's; this command was not run, the next will be\r\n+PONG\r\n")
			three.send(words("EXISTS nothing"))
			three.want(":0\r\n")
			if name == "taken by force" {
				listener.want(fmt.Sprintf("*3\r\n$7\r\nmessage\r\n$16\r\nlockproxy:lost:k\r\n$%d\r\n%s\r\n", len(fence), fence))
			}
		})
	}
}

// Masters may have made a held lock as short as its client asked, though they have not answered, nor answer any more. Then it is over
// when they keep it no longer, and not when it would have been.
func TestTheLossOfALockThatItsClientMadeShorterIsToldInTime(t *testing.T) {
	t.Parallel()
	gone := errors.New("NOQUORUM")
	for name, shorten := range map[string]func(*rig, *client){
		"EXTEND, not answered": func(r *rig, c *client) {
			r.engine.fail(gone)
			c.ask("EXTEND", "k", "me", "500")
		},
		"PEXPIRE, answered": func(r *rig, c *client) {
			arrived := r.engine.hold()
			c.send(words("PEXPIRE k 500"))
			<-arrived
			r.engine.release(0)
			<-arrived // what extends it from then on
			r.engine.fail(gone)
			r.engine.releaseAll()
		},
		"EXTEND, answered before an earlier extension": func(r *rig, c *client) {
			h, arrived := r.holdOf(quorum.Key{Name: "k"}), r.engine.hold()
			h.extend()
			<-arrived
			c.send(words("EXTEND k me 500"))
			<-arrived
			r.engine.release(1)
			r.engine.release(0)
			r.engine.fail(gone)
			r.engine.releaseAll()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			c := r.dial()
			c.send(words("LOCK k 3600000 TOKEN me HOLD"))
			c.wantLocked("me")
			shorten(r, c)
			waitFor(t, "its client is not told", func() bool { return r.server.Stats().HeldLost == 1 })
		})
	}
}

// An earlier extension that is answered meanwhile was overtaken: masters count the shorter TTL from when that was asked for.
func TestAnEarlierExtensionProlongsNoLockThatItsClientHasMadeShorter(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	c := r.dial()
	c.send(words("LOCK k 3600000 TOKEN me HOLD"))
	c.wantLocked("me")
	h, arrived := r.holdOf(quorum.Key{Name: "k"}), r.engine.hold()
	h.extend()
	<-arrived
	c.send(words("EXTEND k me 60000"))
	<-arrived
	ends := func() time.Time {
		h.of.mu.Lock()
		defer h.of.mu.Unlock()
		return h.until()
	}
	before := ends()
	r.engine.release(0)
	if after := ends(); after.After(before) {
		t.Errorf("valid for %v longer", after.Sub(before))
	}
	r.engine.releaseAll()
	c.reply()
}

// Who waits for a lock that it holds loses that, and then has it anew, is told by the new one's reply.
func TestALossIsNotToldToWhoHasTheLockAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	c, other := r.dial(), r.dial()
	c.send(words("LOCK k 600 TOKEN me HOLD"))
	c.wantLocked("me")
	other.ask("SET", "k", "you")
	c.send(words("LOCK k 60000 TOKEN us WAIT 60000 HOLD"))
	waitFor(t, "it is not lost", func() bool { return r.server.Stats().HeldLost == 1 })
	other.ask("UNLOCK", "k", "you")
	c.wantLocked("us")
	if got := c.ask("EXTEND", "k", "us", "60000"); got[0] != ':' || got == ":0\r\n" {
		t.Errorf("got %q", got)
	}
}

// The transaction took another lock. Its reply has to wait, and the loss comes before it.
func TestALossIsToldThoughATransactionHadTheKey(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	c, other := r.dial(), r.dial()
	c.send(words("LOCK k 600 TOKEN me HOLD"))
	c.wantLocked("me")
	other.ask("LOCK", "w", "60000", "TOKEN", "you")
	c.send(words("LOCK w 60000 TOKEN us WAIT 60000") + words("MULTI") + words("GET k") + words("SET j me PX 60000") + words("EXEC"))
	waitFor(t, "EXEC has not taken place", func() bool { return other.ask("GET", "j") == "$2\r\nme\r\n" })
	other.ask("SET", "k", "you")
	waitFor(t, "it is not lost", func() bool { return r.server.Stats().HeldLost == 1 })
	other.ask("UNLOCK", "w", "you")
	c.wantLocked("us")
	c.want("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$2\r\nme\r\n+OK\r\n")
	if got := c.ask("GET", "k"); !strings.HasPrefix(got, "-LOST ") {
		t.Errorf("got %q", got)
	}
}

// Timers and Go's clock stand still while the machine is suspended, and masters' clocks do not.
func TestAHeldLockThatRanOutInASleepIsLostAtOnce(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"it is another's": nil, "no quorum answers": errors.New("NOQUORUM")} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			c := r.dial()
			c.send(words("LOCK k 3000000 TOKEN me HOLD"))
			c.wantLocked("me")
			r.dial().ask("SET", "k", "you")
			r.engine.fail(err)
			r.engine.slept.Store(int64(time.Hour))
			waitFor(t, "it is not lost", func() bool { return r.server.Stats().HeldLost == 1 })
		})
	}
}

// A client reads the new protocol from the reply to its HELLO on.
func TestALossIsNotToldInAProtocolThatTheClientDoesNotReadYet(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	c := r.dial()
	c.send(words("LOCK k 60000 TOKEN me HOLD"))
	c.wantLocked("me")
	r.dial().ask("LOCK", "j", "60000")
	c.send(words("LOCK j 1000 WAIT 1000") + words("HELLO 3"))
	waitFor(t, "HELLO is not run", func() bool {
		return slices.ContainsFunc(r.server.sessions.all(), func(s *session) bool { return strings.Contains(s.describe(), "resp=3") })
	})
	r.loseHeld("k")
	c.want("$-1\r\n")
	if got := c.reply(); !strings.HasPrefix(got, "%7\r\n") {
		t.Errorf("HELLO: %q", got)
	}
	if got := c.reply(); !strings.HasPrefix(got, ">3\r\n$4\r\nlost\r\n") {
		t.Errorf("got %q", got)
	}
}

func TestAHeldLockIsHeldUntilItIsGivenBack(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	c.send(words("LOCK k 60000 TOKEN me HOLD"))
	c.wantLocked("me")
	c.send(words("EXPIRE k 0 NX") + words("EXPIRE k 0 GT") + words("DEL j") + words("MULTI") + words("DEL k") + words("DISCARD"))
	c.want(":0\r\n:0\r\n:0\r\n+OK\r\n+QUEUED\r\n+OK\r\n")
	if stats := r.server.Stats(); stats.Held != 1 {
		t.Errorf("%d are held", stats.Held)
	}
}

// Its client is not told that it has lost what it gave back.
func TestAHeldLockMayBeGivenBackAsAnyOther(t *testing.T) {
	for name, c := range map[string]struct{ release, want string }{
		"UNLOCK":          {words("UNLOCK k me"), ":1\r\n"},
		"DELIFEQ":         {words("DELIFEQ k me"), ":1\r\n"},
		"script":          {cmdline("EVAL", releaseText, "1", "k", "me"), ":1\r\n"},
		"DEL":             {words("DEL j k"), ":1\r\n"},
		"UNLINK":          {words("UNLINK k"), ":1\r\n"},
		"GETDEL":          {words("GETDEL k"), "$2\r\nme\r\n"},
		"DELEX":           {words("DELEX k IFEQ me"), ":1\r\n"},
		"GETSET":          {words("GETSET k you"), "$2\r\nme\r\n"},
		"EXEC":            {words("MULTI") + words("DEL k") + words("EXEC"), "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n"},
		"script, EXEC":    {words("MULTI") + cmdline("EVAL", releaseText, "1", "k", "me") + words("EXEC"), "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n"},
		"SET in the past": {words("SET k you XX PXAT 1"), "+OK\r\n"},
		"EXPIRE":          {words("EXPIRE k 0"), ":1\r\n"},
		"EXPIRE, if":      {words("EXPIRE k 0 XX LT"), ":1\r\n"},
		"SET":             {words("SET k you PX 60000"), "+OK\r\n"},
		"SET XX GET":      {words("SET k you XX GET"), "$2\r\nme\r\n"},
		"SETEX":           {words("SETEX k 60 you"), "+OK\r\n"},
		"FORCEUNLOCK":     {words("FORCEUNLOCK k"), ":1\r\n"},
		"script by vote":  {words("EVAL return{} 1 k"), "$-1\r\n"},
		"SET XX for 1 ms": {words("SET k me XX PX 1"), "+OK\r\n"}, // as ShedLock
		"SET for 1 ms":    {words("SET k me PX 1"), "+OK\r\n"},
		"GETEX for 3 ms":  {words("GETEX k PX 3"), "$2\r\nme\r\n"},
		"EXPIRE for 1 ms": {words("PEXPIRE k 1"), ":1\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			r.engine.deleting = true
			client := r.dial()
			client.send(words("LOCK k 60000 TOKEN me HOLD"))
			client.wantLocked("me")
			client.send(c.release)
			client.want(c.want)
			if stats := r.server.Stats(); stats.Held != 0 {
				t.Errorf("%d are held", stats.Held)
			}
			r.server.sessions.hurry(quorum.Key{Name: "k"})
			time.Sleep(20 * time.Millisecond) // proves nothing when slow, finds a hold that goes on when not
			if got := client.ask("GET", "k"); got != "$-1\r\n" && got != "$3\r\nyou\r\n" {
				t.Errorf("GET: %q", got)
			}
		})
	}
}

// The token may be one that many share.
func TestWhatAClientHasGivenBackIsNotReleasedAgainWhenItGoes(t *testing.T) {
	r := newRig(t, Config{})
	c, other := r.dial(), r.dial()
	c.send(words("LOCK k 60000 TOKEN 1 HOLD"))
	c.wantLocked("1")
	c.ask("UNLOCK", "k", "1")
	other.ask("SET", "k", "1", "NX", "PX", "60000")
	_ = c.Close()
	waitFor(t, "the session goes on", func() bool { return r.server.Stats().Clients == 1 })
	if got := other.ask("GET", "k"); got != "$1\r\n1\r\n" {
		t.Errorf("GET: %q", got)
	}
}

// An extension of a held lock overtakes the outcome of what its client gave the lock back by. It finds nothing, and that is no loss.
func TestALockThatItsClientIsGivingBackIsNotLost(t *testing.T) {
	for name, c := range map[string]struct{ release, want string }{
		"GETDEL":         {words("GETDEL k"), "$2\r\nme\r\n"},
		"GETSET":         {words("GETSET k you"), "$2\r\nme\r\n"},
		"EXEC":           {words("MULTI") + words("DEL k") + words("EXEC"), "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n"},
		"script by vote": {words("EVAL return{} 1 k"), "$-1\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			r.engine.deleting = true
			client := r.dial()
			client.send(words("LOCK k 60000 TOKEN me HOLD"))
			client.wantLocked("me")
			h := r.holdOf(quorum.Key{Name: "k"})
			telling := make(chan func(), 1)
			r.engine.mu.Lock()
			r.engine.telling = telling
			r.engine.mu.Unlock()
			client.send(c.release)
			tell := <-telling
			h.extend()
			tell()
			client.want(c.want)
			if stats := r.server.Stats(); stats.Held != 0 || stats.HeldLost != 0 {
				t.Errorf("%d are held, %d were lost", stats.Held, stats.HeldLost)
			}
		})
	}
}

// A command that might have ended the lock, and has not, puts off that its loss is told.
func TestALossIsToldWhenTheClientHasNotGivenTheLockBack(t *testing.T) {
	r := newRig(t, Config{})
	client := r.dial()
	client.send(words("LOCK k 3000 TOKEN me HOLD"))
	client.wantLocked("me")
	h := r.holdOf(quorum.Key{Name: "k"})
	telling := make(chan func(), 1)
	r.engine.mu.Lock()
	r.engine.telling = telling
	r.engine.mu.Unlock()
	client.send(words("GETEX k"))
	tell := <-telling
	r.dial().ask("SET", "k", "you")
	h.extend()
	if stats := r.server.Stats(); stats.HeldLost != 0 {
		t.Error("it was lost while its client might have given it back")
	}
	tell()
	client.want("$2\r\nme\r\n")
	waitFor(t, "it is not lost", func() bool { return r.server.Stats().HeldLost == 1 })
}

// holdOf is the hold of a key, whoever's.
func (r *rig) holdOf(key quorum.Key) *hold {
	r.t.Helper()
	for _, s := range r.server.sessions.all() {
		s.holds.mu.Lock()
		h := s.holds.kept[key]
		s.holds.mu.Unlock()
		if h != nil {
			return h
		}
	}
	r.t.Fatal("it is not held")
	return nil
}

// A lock that its client has made too short for any validity is not extended: masters would keep it for as long as it was valid.
func TestAHoldEndsWhereItsClientMakesItTooShort(t *testing.T) {
	lock, extend := words("LOCK k 60000 TOKEN me HOLD"), cmdline("EVAL", extendText, "1", "k", "me", "1")
	for name, together := range map[string]bool{"after the reply": false, "before the reply": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			c := r.dial()
			if together {
				c.send(lock + extend)
				c.wantLocked("me")
			} else {
				c.send(lock)
				c.wantLocked("me")
				c.send(extend)
			}
			c.want(":1\r\n")
			if stats := r.server.Stats(); stats.Held != 0 {
				t.Errorf("%d are held", stats.Held)
			}
		})
	}
}

// An extension of the hold may have come behind the change, and would keep what the client has given up.
func TestALockThatItsClientMakesTooShortIsReleased(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	c.send(words("LOCK k 60000 TOKEN me HOLD"))
	c.wantLocked("me")
	arrived := r.engine.hold()
	c.send(words("PEXPIRE k 1"))
	<-arrived
	r.engine.release(0)
	c.want(":1\r\n")
	select {
	case got := <-arrived:
		if got != "release k" {
			t.Errorf("%s came behind the change", got)
		}
		r.engine.release(0)
	case <-time.After(10 * time.Second):
		t.Error("it is not released")
	}
}

// A client that adds less than is gone of it by then does not give a lock up: the hold goes on with the TTL that it had.
func TestAHoldOutlivesAnAdditionThatIsTooSmall(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	c.send(words("LOCK k 60000 TOKEN me HOLD"))
	c.wantLocked("me")
	h := r.server.sessions.all()[0].holds.kept[quorum.Key{Name: "k"}]
	r.engine.slept.Store(int64(time.Hour)) // nothing is left
	c.send(cmdline("EVAL", addText, "1", "k", "me", "1"))
	c.reply()
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if h.req.TTL != time.Minute {
		t.Errorf("it is extended by %v", h.req.TTL)
	}
}

// What leaves it its token leaves it its lock.
func TestAHeldLockThatItsClientSetsAgainIsHeld(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	c.send(words("LOCK k 60000 TOKEN me HOLD"))
	c.wantLocked("me")
	for _, line := range []string{"SET k me PX 60000", "SET k me XX PX 60000", "PSETEX k 60000 me", "SET j me", "EVAL return{} 1 k"} {
		c.ask(strings.Fields(line)...)
	}
	if stats := r.server.Stats(); stats.Held != 1 {
		t.Errorf("%d are held", stats.Held)
	}
}

// A transaction takes place as a whole or not at all, also where it is a part of it that is told of the loss.
func TestATransactionOnALostLockDoesNotTakePlace(t *testing.T) {
	for name, before := range map[string]bool{"queued before": true, "queued behind": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			c := r.dial()
			c.send(words("LOCK k 60000 TOKEN me HOLD"))
			c.wantLocked("me")
			c.ask("MULTI")
			c.ask("SET", "j", "v")
			if before {
				c.ask("GET", "k")
			}
			r.loseHeld("k")
			want := "-EXECABORT Transaction discarded because of previous errors.\r\n"
			if before {
				want = "-EXECABORT Transaction discarded because of: LOST the lock on 'k'"
			} else if got := c.ask("GET", "k"); !strings.HasPrefix(got, "-LOST") {
				t.Errorf("GET: %q", got)
			}
			if got := c.ask("EXEC"); !strings.HasPrefix(got, want) {
				t.Errorf("EXEC: %q", got)
			}
			c.send(words("EXISTS j") + words("GET k"))
			c.want(":0\r\n$3\r\nyou\r\n")
		})
	}
}

// A channel is no key, though commands on sharded ones have it where others have their keys.
func TestAChannelIsNotALostLock(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	c.send(words("LOCK k 60000 TOKEN me HOLD"))
	c.wantLocked("me")
	r.loseHeld("k")
	if got := c.ask("SPUBLISH", "k", "message"); got != ":0\r\n" {
		t.Errorf("SPUBLISH: %q", got)
	}
	if got := c.ask("GET", "k"); !strings.HasPrefix(got, "-LOST") {
		t.Errorf("GET: %q", got)
	}
}

// loseHeld gives a lock that a connection holds to another client, and waits until that is noticed.
func (r *rig) loseHeld(name string) {
	r.t.Helper()
	lost := r.server.Stats().HeldLost
	r.dial().ask("SET", name, "you")
	r.server.sessions.hurry(quorum.Key{Name: name})
	waitFor(r.t, "nobody journal that it is lost", func() bool { return r.server.Stats().HeldLost > lost })
}

// A client adds so little to a lock as good as over that nothing is promised: the hold is over, and nothing else.
func TestAnAdditionThatPromisesNothingEndsTheHold(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	c.send(words("LOCK k 60000 TOKEN me HOLD"))
	c.wantLocked("me")
	c.ask("PING") // the hold has begun
	for _, s := range r.server.sessions.all() {
		s.holds.mu.Lock()
		h := s.holds.kept[quorum.Key{Name: "k"}]
		s.holds.mu.Unlock()
		h.extended(quorum.Extended{Held: true})
		s.holds.mu.Lock()
		if !h.over {
			t.Error("the lock is held on")
		}
		s.holds.mu.Unlock()
	}
}
