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
			want = strings.NewReplacer("NIL", "$-1", "MAP8", "*16", "MAP7", "*14").Replace
		}
		c.ask("HELLO", protocol)
		c.ask("DEL", "k")
		expect := func(reply string) {
			t.Helper()
			if got := rounded(c.ask("LOCKINFO", "k")); got != want(reply+" MAP8 "+others) {
				t.Errorf("RESP%s: got %q", protocol, got)
			}
		}
		expect("MAP7 state free type none token NIL validity :0 fence NIL waiters :0 masters *3 " +
			"MAP8 addr 10.0.0.1:6379 state clean left :0 counts :1 reason  type none token NIL ttl :0")
		c.ask("SET", "k", "me", "NX", "PX", "30000")
		expect("MAP7 state held type string token me validity :1 fence NIL waiters :0 masters *3 " +
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

const taking = `if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then redis.call('incr', KEYS[1] .. 'x') return redis.call('pexpire', KEYS[1], ARGV[2]) end`

func TestLocksListsWhatWasTakenByWhateverCommand(t *testing.T) {
	r := newRig(t, Config{LocksListed: 100})
	r.engine.locking = true
	c, other := r.dial(), r.dial()
	for _, command := range [][]string{
		{"SET", "a", "s3cret", "NX", "PX", "60000"},
		{"SETNX", "b", "s3cret"},
		{"LOCK", "c", "60000", "TOKEN", "s3cret", "HOLD"},
		{"GETSET", "d", "s3cret"},
		{"EVAL", taking, "1", "e", "s3cret", "60000"},
		{"MSETNX", "f", "s3cret"},
		{"SET", "x", "s3cret"}, // is no way to take a lock, and this one can be taken over it
	} {
		if got := c.ask(command...); strings.HasPrefix(got, "-") {
			t.Fatalf("%v: %q", command, got)
		}
	}
	if got := other.resources(); got != "a b c d e f" {
		t.Errorf("got %q", got)
	}
	held := regexp.MustCompile(`resource\r\n\$1\r\nc\r\n(?s:[^*]*)held\r\n:1`)
	reply := other.ask("LOCKS")
	if !held.MatchString(reply) || strings.Count(reply, "held\r\n:1") != 1 || strings.Contains(reply, "s3cret") {
		t.Errorf("got %q", reply)
	}
	for _, command := range [][]string{
		{"UNLOCK", "a", "s3cret"},
		{"DEL", "b", "e"},
		{"UNLOCK", "c", "s3cret"},
		{"SET", "d", "another"},
		{"EVAL", releaseText, "1", "f", "s3cret"},
	} {
		if got := other.ask(command...); strings.HasPrefix(got, "-") {
			t.Fatalf("%v: %q", command, got)
		}
	}
	if got := other.resources(); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestLocksTellsWhoHasTakenItAndForHowLong(t *testing.T) {
	r := newRig(t, Config{LocksListed: 100})
	c, other := r.dial(), r.dial()
	c.ask("SELECT", "3")
	c.ask("SET", "k", "me", "NX", "PX", "60000")
	waitFor(t, "its time does not pass", func() bool {
		reply := other.ask("LOCKS")
		var age, validity int
		at := strings.Index(reply, "age\r\n")
		_, _ = fmt.Sscanf(reply[at:], "age\r\n:%d\r\n$8\r\nvalidity\r\n:%d", &age, &validity)
		return age > 20 && age+validity <= 60005 && validity > 0
	})
	want := fmt.Sprintf("*1 *12 resource k db :1 client %s age :1 validity :1 held :0", c.LocalAddr())
	if got := rounded(other.ask("LOCKS", "MATCH", "k")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	noted := func() time.Duration {
		all := r.server.taken.list(func(string) bool { return true })
		return all[0].until - time.Since(r.server.taken.epoch)
	}
	for _, extend := range []string{"EXTEND k me 600000", "EXPIRE k 600", "SET k me XX PX 600000", "PERSIST k"} {
		if got := c.ask(strings.Fields(extend)...); strings.HasPrefix(got, "-") {
			t.Errorf("%s: %q", extend, got)
		}
		if left := noted(); left < 2*time.Minute {
			t.Errorf("after %s it is known for %v", extend, left)
		}
		c.ask("EXPIRE", "k", "60")
	}
	if got := rounded(other.ask("LOCKS", "MATCH", "k")); got != want {
		t.Errorf("extended, it is told as %q", got)
	}
	c.ask("PEXPIRE", "k", "10")
	waitFor(t, "it does not expire", func() bool { return other.resources() == "" })
}

// What becomes of a lock through another proxy, the masters know. Without a quorum it is told as it was noted.
func TestLocksAsksTheMastersWhetherALockIsHeldStill(t *testing.T) {
	r := newRig(t, Config{LocksListed: 1000})
	c := r.dial()
	for i := range 300 {
		c.ask("SET", fmt.Sprint("k", i), "me", "NX", "PX", "60000")
	}
	r.engine.mu.Lock()
	for i := range 290 { // more than are asked for at a time
		delete(r.engine.keys, quorum.Key{Name: fmt.Sprint("k", i)})
	}
	k := quorum.Key{Name: "k295"}
	r.engine.keys[k] = fakeEntry{"string", "another's", time.Now().Add(time.Minute)}
	r.engine.mu.Unlock()
	r.engine.fail(errors.New("NOQUORUM"))
	if got := len(strings.Fields(c.resources("COUNT", "1000"))); got != 300 {
		t.Errorf("without a quorum, %d are listed", got)
	}
	r.engine.fail(nil)
	if got := c.resources("COUNT", "4"); got != "k290 k291 k292 k293" {
		t.Errorf("got %q", got)
	}
	if got := c.resources(); got != "k290 k291 k292 k293 k294 k296 k297 k298 k299" {
		t.Errorf("got %q", got)
	}
}

func TestLocksHasItsBounds(t *testing.T) {
	c := newRig(t, Config{LocksListed: 121}).dial()
	for i := range 120 {
		c.ask("SET", fmt.Sprintf("k%03d", i), "me", "NX", "PX", "60000")
	}
	c.ask("SET", strings.Repeat("n", keepMax), "me", "NX", "PX", "60000")
	c.ask(append([]string{"SET", "long", "me", "PX", "60000"}, strings.Fields(strings.Repeat("NX ", keepMax/2))...)...)
	for _, try := range []struct{ args, want string }{
		{"MATCH k00[45]", "k004 k005"},
		{"match long", "long"},
		{"COUNT 2 MATCH k11*", "k110 k111"},
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
	if got := len(strings.Fields(c.resources())); got != 100 {
		t.Errorf("%d are listed", got)
	}
	off := newRig(t, Config{}).dial()
	off.ask("SET", "k", "me", "NX", "PX", "60000")
	if got := off.ask("LOCKS"); got != string(errLocksOff.appendTo(nil, false)) {
		t.Errorf("got %q", got)
	}
}

func TestLockInfoDoesNotSayWhatNobodyKnows(t *testing.T) {
	for _, state := range []quorum.LockState{quorum.LockUnclear, quorum.LockUnknown} {
		v := quorum.Viewed{State: state, View: quorum.View{Type: "none"}}
		want := fmt.Sprintf("*14 state %v type $-1 token $-1 validity $-1 fence $-1 waiters :0 masters *0", state)
		if got := rounded(string(lockInfo(&v, 0, 0).appendTo(nil, false))); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What is there stays, because a lock that is stuck is what one looks for, and what has expired makes room.
func TestAFullListOfLocksForgetsWhatHasExpired(t *testing.T) {
	all := newTaken(takenShards)
	note := func(name string, ttl time.Duration) {
		all.note(quorum.Taken{Key: quorum.Key{Name: name}, Token: "t", Fresh: true}, 10, takenLock{}, time.Now().Add(ttl))
	}
	names := func() (n int) {
		for i := range all.shards {
			n += len(all.shards[i].locks)
		}
		return n
	}
	for i := range 1000 {
		note(fmt.Sprint("stuck", i), time.Hour)
	}
	if n := names(); n != takenShards {
		t.Fatalf("%d are kept", n)
	}
	all.swept.Store(-int64(sweepEvery)) // long ago
	for i := range all.shards {
		s := &all.shards[i]
		for key, l := range s.locks {
			l.until = 0
			s.locks[key] = l
		}
	}
	if got := all.list(func(string) bool { return true }); len(got) != 0 {
		t.Errorf("%d that have expired are listed", len(got))
	}
	for i := range 1000 {
		note(fmt.Sprint("new", i), time.Hour)
		if i == 0 {
			all.drop(quorum.Key{Name: "new0"}, "t")
		}
	}
	if got := all.list(func(name string) bool { return strings.HasPrefix(name, "new") }); len(got) != takenShards {
		t.Errorf("%d have replaced what has expired", len(got))
	}
}

// A lock that is deleted gives its place back, whatever its token; one that nothing deleted keeps it.
func TestALockThatIsDeletedIsForgotten(t *testing.T) {
	r := newRig(t, Config{LocksListed: 10})
	c := r.dial()
	for name, command := range map[string]string{
		"DEL": "DEL x k y", "UNLINK": "UNLINK k", "FORCEUNLOCK": "FORCEUNLOCK k",
		"a SET in the past": "SET k v EXAT 1",
	} {
		c.ask("SET", "k", "me", "NX", "PX", "60000")
		if n := r.server.taken.count.Load(); n != 1 {
			t.Fatalf("%s: %d are noted", name, n)
		}
		r.engine.fail(errors.New("NOQUORUM"))
		c.ask(strings.Fields(command)...)
		if n := r.server.taken.count.Load(); n != 1 {
			t.Errorf("%s fails, and %d are noted", name, n)
		}
		r.engine.fail(nil)
		c.ask(strings.Fields(command)...)
		if n := r.server.taken.count.Load(); n != 0 {
			t.Errorf("after %s %d are noted", name, n)
		}
	}
}

func TestALockOfAClientThatIsGoneIsListed(t *testing.T) {
	r := newRig(t, Config{LocksListed: 100})
	c, other := r.dial(), r.dial()
	c.ask("SET", "left", "me", "NX", "PX", "60000")
	c.ask("LOCK", "held", "60000", "HOLD")
	_ = c.Close()
	waitFor(t, "what is left of it is not listed", func() bool { return other.resources() == "left" })
}

func TestLocksIsServedHereBesideAnUpstream(t *testing.T) {
	u := newFakeUpstream(t)
	c := newRig(t, Config{Upstream: u.redis, LockKeys: []string{"lock:*"}, LocksListed: 10}).dial()
	c.ask("SET", "lock:1", "me", "NX", "PX", "60000")
	if got := c.resources("MATCH", "*1"); got != "lock:1" {
		t.Errorf("got %q", got)
	}
	if got := c.ask("LOCKINFO", "data"); got != "-ERR 'data' is no lock's name, as no pattern of lock_keys matches it; use one that is, or add a pattern\r\n" {
		t.Errorf("got %q", got)
	}
	u.wantNone(t)
}
