package resp

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"lockproxy/quorum"
)

var number = regexp.MustCompile(`\n:\d+\r\n`)

// rounded puts 1 for every number but 0 in a reply, and spaces for the ends of its lines.
func rounded(reply string) string {
	reply = number.ReplaceAllStringFunc(reply, func(n string) string {
		if n != "\n:0\r\n" {
			n = "\n:1\r\n"
		}
		return n
	})
	return strings.TrimSpace(strings.ReplaceAll(regexp.MustCompile(`\$\d+\r\n`).ReplaceAllString(reply, ""), "\r\n", " "))
}

func TestLockInfoTellsWhatEachMasterSays(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	others := "addr 10.0.0.2:6379 state disconnected left :0 counts :0 reason connection refused type NIL token NIL ttl :0 " +
		"MAP8 addr 10.0.0.3:6379 state quarantined left :1 counts :0 reason quarantined 3s more type none token NIL ttl :0"
	for _, protocol := range []string{"2", "3"} {
		want := strings.NewReplacer("NIL", "_", "MAP", "%").Replace
		if protocol == "2" {
			want = strings.NewReplacer("NIL", "$-1", "MAP8", "*16", "MAP11", "*22").Replace
		}
		c.ask("HELLO", protocol)
		c.ask("DEL", "k")
		expect := func(reply string) {
			t.Helper()
			if got := rounded(c.ask("LOCKINFO", "k")); got != want(reply+" MAP8 "+others) {
				t.Errorf("RESP%s: got %q", protocol, got)
			}
		}
		expect("MAP11 state free type none token NIL validity :0 fence NIL waiters :0 client NIL name NIL library NIL user NIL masters *3 " +
			"MAP8 addr 10.0.0.1:6379 state clean left :0 counts :1 reason  type none token NIL ttl :0")
		c.ask("SET", "k", "me", "NX", "PX", "30000")
		expect("MAP11 state held type string token me validity :1 fence NIL waiters :0 client " + c.LocalAddr().String() + " name NIL library NIL user default masters *3 " +
			"MAP8 addr 10.0.0.1:6379 state clean left :0 counts :1 reason  type string token me ttl :1")
		c.ask("LOCK", "fenced"+protocol, "30000")
		if got := rounded(c.ask("LOCKINFO", "fenced"+protocol)); !strings.Contains(got, " validity :1 fence :1 waiters :0 ") {
			t.Errorf("RESP%s: got %q", protocol, got)
		}
	}
	waiter := r.dial()
	waiter.send(words("LOCK k 1000 WAIT 60000"))
	r.waiters(1)
	if got := rounded(c.ask("LOCKINFO", "k")); !strings.Contains(got, " waiters :1 ") {
		t.Errorf("got %q", got)
	}
}

// A logged is what a server has logged.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestForceUnlockReleasesAndIsLogged(t *testing.T) {
	log := &logged{}
	r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	holder, waiter, c := r.dial(), r.dial(), r.dial()
	holder.ask("HELLO", "3")
	holder.ask("LOCK", "k", "60000", "TOKEN", "s3cret", "HOLD")
	fence := r.engine.newest("k")
	waiter.send(words("LOCK k 60000 TOKEN w WAIT 60000"))
	r.waiters(1)
	if got := c.ask("FORCEUNLOCK", "k"); got != ":1\r\n" {
		t.Fatalf("got %q", got)
	}
	waiter.wantLocked("w")
	holder.want(">3\r\n$4\r\nlost\r\n$1\r\nk\r\n:" + fence + "\r\n") // long before it would have been extended
	if got := c.ask("FORCEUNLOCK", "nothing"); got != ":0\r\n" {
		t.Errorf("got %q", got)
	}
	r.engine.fail(errors.New("NOQUORUM 1 of 3"))
	if got := c.ask("FORCEUNLOCK", "k"); got != "-NOQUORUM 1 of 3\r\n" {
		t.Errorf("got %q", got)
	}
	who := fmt.Sprintf("client=%s id=3 user=default", c.LocalAddr())
	for _, want := range []string{
		"level=WARN msg=FORCEUNLOCK key=k db=0 outcome=deleted " + who,
		`key=nothing db=0 outcome="nothing was there" ` + who, `key=k db=0 outcome="NOQUORUM 1 of 3" ` + who,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("not logged: %s\n%s", want, log)
		}
	}
	if strings.Contains(log.String(), "s3cret") {
		t.Error("a token is logged")
	}
}

func TestATTLBeyondTTLMaxIsLoggedOnceInAWhile(t *testing.T) {
	log := &logged{}
	r := newRig(t, Config{TTLMax: time.Hour, Logger: slog.New(slog.NewTextHandler(log, nil))})
	c := r.dial()
	want := "-ERR lock TTL 86400 s exceeds ttl_max 3600000 ms (1h); ask for less, or raise ttl_max on every lockproxy\r\n"
	for range 3 {
		if got := c.ask("SET", "k", "s3cret", "NX", "EX", "86400"); got != want {
			t.Fatalf("got %q", got)
		}
	}
	line := `level=WARN msg="a lock was refused: its TTL exceeds ttl_max" client=` + c.LocalAddr().String() + " id=1 reply="
	if n := strings.Count(log.String(), line); n != 1 || strings.Contains(log.String(), "s3cret") {
		t.Errorf("logged %d times: %s", n, log)
	}
}

// Who guesses passwords must not be able to fill a disk with lines.
func TestRefusedLoginsAreLoggedOnceInAWhile(t *testing.T) {
	log := &logged{}
	r := newRig(t, Config{Users: []User{{Name: "default", Password: password("a")}}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	guess := func() {
		if got := r.dial().ask("AUTH", "s3cret"); !strings.HasPrefix(got, "-WRONGPASS ") {
			t.Fatalf("got %q", got)
		}
	}
	for range 3 {
		guess()
	}
	const line = `level=WARN msg="login refused" client=`
	if n := strings.Count(log.String(), line); n != 1 || strings.Contains(log.String(), "s3cret") {
		t.Errorf("logged %d times: %s", n, log)
	}
	r.tellAgain("login refused")
	guess()
	if n := strings.Count(log.String(), line); n != 2 || !strings.Contains(log.String(), " all_so_far=4") {
		t.Errorf("a minute later logged %d times: %s", n, log)
	}
	if n := r.server.Stats().LoginsRefused; n != 4 {
		t.Errorf("counted %d", n)
	}
}

func TestACommandThatIsNotServedIsLoggedOnceInAWhile(t *testing.T) {
	log := &logged{}
	r := newRig(t, Config{Users: []User{{Name: "default", Password: password("a")}}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	c := r.dial()
	const line = `level=WARN msg="a command was refused: without an upstream, only locks are served" command=INCR client=`
	c.ask("INCR", "n")
	if strings.Contains(log.String(), line) {
		t.Errorf("logged before login: %s", log)
	}
	c.ask("AUTH", "a")
	for range 3 {
		if got, want := c.ask("INCR", "s3cret"), "-ERR unknown command 'INCR', with args beginning with: 's3cret' \r\n"; got != want {
			t.Fatalf("got %q", got)
		}
	}
	if n := strings.Count(log.String(), line); n != 1 || strings.Contains(log.String(), "s3cret") {
		t.Errorf("logged %d times: %s", n, log)
	}
}

func TestForceUnlockIsARightOfItsOwn(t *testing.T) {
	r := newRig(t, Config{Users: []User{{Name: "default", Password: password("a")}, {Name: "ops", Password: password("b"), ForceUnlock: true}}})
	c := r.dial()
	for _, try := range []struct{ auth, want string }{
		{"AUTH a", "-NOPERM this user has no permissions to run the 'forceunlock' command; log in as one that has force_unlock in users, or give it that\r\n"},
		{"AUTH ops b", ":1\r\n"},
		{"AUTH a", "-NOPERM this user has no permissions to run the 'forceunlock' command; log in as one that has force_unlock in users, or give it that\r\n"},
	} {
		c.ask(strings.Fields(try.auth)...)
		c.ask("SET", "k", "me", "NX", "PX", "30000")
		if got := c.ask("FORCEUNLOCK", "k"); got != try.want {
			t.Errorf("%s: got %q", try.auth, got)
		}
	}
}

// resources returns the names that LOCKS lists, in its order.
func (c *client) resources(args ...string) string {
	c.t.Helper()
	reply := c.ask(append([]string{"LOCKS"}, args...)...)
	if strings.HasPrefix(reply, "-") {
		return reply
	}
	var names []string
	for _, m := range regexp.MustCompile(`resource\r\n\$\d+\r\n([^\r]*)\r\n`).FindAllStringSubmatch(reply, -1) {
		names = append(names, m[1])
	}
	return strings.Join(names, " ")
}

func TestLocksListsWhatAQuorumHolds(t *testing.T) {
	r := newRig(t, Config{})
	c, other := r.dial(), r.dial()
	for _, command := range [][]string{
		{"SET", "a", "me", "NX", "PX", "60000"},
		{"SETNX", "b", "me"},
		{"LOCK", "c", "60000", "TOKEN", "me", "HOLD"},
		{"SET", "d", "me"},
	} {
		if got := c.ask(command...); strings.HasPrefix(got, "-") {
			t.Fatalf("%v: %q", command, got)
		}
	}
	if got := other.resources(); got != "a b c d" {
		t.Errorf("got %q", got)
	}
	other.ask("SELECT", "3")
	if got := other.resources(); got != "" {
		t.Errorf("of another database: %q", got)
	}
	r.engine.fail(errors.New("NOQUORUM nobody knows"))
	if got := c.resources(); got != "-NOQUORUM nobody knows\r\n" {
		t.Errorf("got %q", got)
	}
}

// Who keeps a lock by HOLD through this proxy, and how many clients wait for it here, the proxy knows.
func TestLocksTellsOfALockAllThatIsKnown(t *testing.T) {
	r := newRig(t, Config{})
	c, other := r.dial(), r.dial()
	c.ask("LOCK", "k", "60000", "TOKEN", "me", "HOLD")
	want := "*6 locks *1 *20 resource k type string token me fence :1 validity :1 waiters :0 client " + c.LocalAddr().String() +
		" name NIL library NIL user default unclear :0 end all"
	want = strings.ReplaceAll(want, "NIL", "$-1")
	if got := rounded(other.ask("LOCKS", "MATCH", "k")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	waiter := r.dial()
	waiter.send("LOCK k 60000 WAIT 60000\r\n")
	waitFor(t, "nobody waits", func() bool { return strings.Contains(other.ask("LOCKS"), "waiters\r\n:1\r\n") })
	other.ask("LOCKS") // the last one may have begun its search before the waiter came
	if got := r.engine.searched[len(r.engine.searched)-1].First; fmt.Sprint(got) != "[k]" {
		t.Errorf("first of all, %q is looked at", got)
	}
	_ = c.Close()
	waitFor(t, "the next does not get it", func() bool { return strings.Contains(other.ask("LOCKS"), waiter.LocalAddr().String()) })
	r.engine.mu.Lock()
	r.engine.keys[quorum.Key{Name: "h"}] = fakeEntry{"hash", "", time.Now().Add(time.Minute)}
	r.engine.mu.Unlock()
	if got := rounded(other.ask("LOCKS", "MATCH", "h")); got != "*6 locks *1 *20 resource h type hash token $-1 fence $-1 validity :1 waiters :0 "+
		"client $-1 name $-1 library $-1 user $-1 unclear :0 end all" {
		t.Errorf("got %q", got)
	}
}

func TestLocksHasItsBounds(t *testing.T) {
	c := newRig(t, Config{}).dial()
	for i := range 120 {
		c.ask("SET", fmt.Sprintf("k%03d", i), "me", "NX", "PX", "60000")
	}
	for _, try := range []struct{ args, want string }{
		{"MATCH k00[45]", "k004 k005"},
		{"match k007", "k007"},
		{"COUNT 2 MATCH k11[01]*", "k110 k111"},
		{"MATCH n*", ""},
		{"COUNT 0", "-ERR COUNT is a number of locks from 1 to 1000; use MATCH to see others\r\n"},
		{"COUNT 1001", "-ERR COUNT is a number of locks from 1 to 1000; use MATCH to see others\r\n"},
		{"COUNT x", "-ERR value is not an integer or out of range\r\n"},
		{"COUNT", "-ERR syntax error\r\n"},
		{"MATCH", "-ERR syntax error\r\n"},
		{"ALL", "-ERR syntax error\r\n"},
		{"MATCH " + strings.Repeat("*", 257), "-ERR the pattern has more than 256 bytes; use a shorter one\r\n"},
	} {
		if got := c.resources(strings.Fields(try.args)...); got != try.want {
			t.Errorf("%s: got %q", try.args, got)
		}
	}
	if got := c.ask("LOCKS"); strings.Count(got, "resource") != 100 || !strings.HasSuffix(got, "end\r\n$5\r\ncount\r\n") {
		t.Errorf("%d are listed: %q", strings.Count(got, "resource"), got[len(got)-40:])
	}
}

// Masters are given a pattern that costs them no more than looking at the names; of a name alone no master is searched.
func TestLocksGivesMastersOnlyPatternsThatAreCheap(t *testing.T) {
	for _, c := range []struct {
		pattern, given string
		names          []string
	}{
		{"*", "*", nil},
		{"job:*", "job:*", nil},
		{"*:[0-9]*", "*:[0-9]*", nil},
		{"*a*a*b", "", nil},
		{"job:7", "", []string{"job:7"}},
		{"", "", []string{""}},
		{`job\:7`, `job\:7`, nil},
	} {
		r := newRig(t, Config{})
		r.dial().ask("LOCKS", "MATCH", c.pattern)
		got := r.engine.searched[0]
		if got.Pattern != c.given || fmt.Sprint(got.Names) != fmt.Sprint(c.names) || (got.Names == nil) != (c.names == nil) || got.Within != locksWithin {
			t.Errorf("%q: masters are given %q, names %q", c.pattern, got.Pattern, got.Names)
		}
	}
}

func TestLockInfoDoesNotSayWhatNobodyKnows(t *testing.T) {
	for _, state := range []quorum.LockState{quorum.LockUnclear, quorum.LockUnknown} {
		v := quorum.Viewed{State: state, View: quorum.View{Type: "none"}}
		want := fmt.Sprintf("*22 state %v type $-1 token $-1 validity $-1 fence $-1 waiters :0 client $-1 name $-1 library $-1 user $-1 masters *0", state)
		if got := rounded(string(lockInfo(newRig(t, Config{}).server, quorum.Key{}, &v, 0).AppendTo(nil, false))); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLocksIsServedHereBesideAnUpstream(t *testing.T) {
	u := newFakeUpstream(t)
	c := newRig(t, Config{Upstream: u.redis, LockKeys: []string{"lock:*"}}).dial()
	c.ask("SET", "lock:1", "me", "NX", "PX", "60000")
	if got := c.resources("MATCH", "*1"); got != "lock:1" {
		t.Errorf("got %q", got)
	}
	if got := c.ask("LOCKINFO", "data"); got != "-ERR 'data' is no lock's name, as no pattern of lock_keys matches it; use one that is, or add a pattern\r\n" {
		t.Errorf("got %q", got)
	}
	u.wantNone(t)
}

// The empty token is nobody's: a client that gives it back takes no lock, and the holder of a hash stays known.
func TestAReleaseWithoutATokenForgetsNobody(t *testing.T) {
	r := newRig(t, Config{})
	key := quorum.Key{Name: "k"}
	r.server.takers.note(key, noToken, 7, time.Now().Add(time.Minute), time.Minute)
	r.dial().ask("UNLOCK", "k", "")
	if got := r.server.takers.of(key, noToken); got != 7 {
		t.Errorf("session %d has the lock, want 7", got)
	}
}
