package resp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockproxy/quorum"
)

// What EXEC compares does not tell every change and its reverse: here a lock that was given back, and is taken again. But who
// has seen for himself that the key had changed is not told otherwise.
func TestWhatAClientSawChangeHasChanged(t *testing.T) {
	for question, look := range map[string]string{
		"GET k": "$-1\r\n", "EXISTS k": ":0\r\n", "TTL k": ":-2\r\n", "STRLEN k": ":0\r\n", "MGET j k": "*2\r\n$-1\r\n$-1\r\n",
		"GETDEL k": "$-1\r\n", "EVAL return(redis.call('get',KEYS[1])) 1 k": "$-1\r\n", "EVAL return(redis.call('get','k')) 0": "$-1\r\n",
	} {
		t.Run(question, func(t *testing.T) {
			r := newRig(t, Config{})
			c, other := r.dial(), r.dial()
			other.ask("SET", "k", "you", "NX", "PX", "60000")
			c.ask("WATCH", "k")
			other.ask("DEL", "k")
			c.send(words(question))
			c.want(look)
			other.ask("SET", "k", "you", "NX", "PX", "60000")
			c.send(words("MULTI") + words("SET k me PX 60000") + words("EXEC"))
			c.want("+OK\r\n+QUEUED\r\n*-1\r\n")
			if got := other.ask("GET", "k"); got != "$3\r\nyou\r\n" {
				t.Errorf("its lock was taken: %q", got)
			}
		})
	}
}

// Nor does it tell a lock that was taken and given back. Who was told of it, in whatever way, has seen the key change; who was
// told that nobody had it has not.
func TestWhatAClientHasFoundWasThere(t *testing.T) {
	for question, states := range map[string][]bool{ // held, or not, where that is told
		"GET k": {true, false}, "TTL k": {true, false}, "SET k me XX": {true, false}, "PEXPIRE k 60000": {true, false}, "DEL k": {true, false},
		"DELIFEQ k you": {true, false}, "EVALSHA " + releaseSHA + " 1 k you": {true, false}, "HGET k f": {true, false},
		"HLEN k": {true, false}, "LOCKINFO k": {true, false}, "SET k me NX PX 60000": {true}, "LOCK k 60000": {true}, "UNLOCK k you": {true},
		"EVAL return{} 1 k": {true}, "EVAL_RO return{} 1 k": {true}, "EVAL return(redis.call('get','k')) 0": {true, false},
	} {
		for _, held := range states {
			r := newRig(t, Config{})
			c, other := r.dial(), r.dial()
			c.ask("SCRIPT", "LOAD", releaseText)
			c.ask("WATCH", "k")
			if held {
				other.ask("SET", "k", "you", "NX", "PX", "60000")
				r.engine.answers = map[string]any{"hget": "v", "hlen": int64(1)}
			}
			c.ask(strings.Fields(question)...)
			other.ask("DEL", "k")
			c.ask("MULTI")
			c.ask("SET", "k", "me", "PX", "60000")
			want := map[bool]string{true: "*-1\r\n", false: "*1\r\n+OK\r\n"}[held]
			if got := c.ask("EXEC"); got != want {
				t.Errorf("%s, held: %v: %q", question, held, got)
			}
		}
	}
}

// The commands of newer servers than the one that the integration suite compares with.
func TestCompareAndSetAndDelete(t *testing.T) {
	for _, c := range [][2]string{
		{"SET k a IFEQ a", "$-1\r\n"},
		{"SET k a IFNE a", "+OK\r\n"},
		{"SET k a ; SET k b IFEQ a", "+OK\r\n"},
		{"SET k a ; SET k b IFEQ a ; GET k", "$1\r\nb\r\n"},
		{"SET k a ; SET k b IFEQ x", "$-1\r\n"},
		{"SET k a ; SET k b IFEQ x ; GET k", "$1\r\na\r\n"},
		{"SET k a ; SET k b IFEQ x GET", "$1\r\na\r\n"},
		{"SET k a ; SET k b GET IFEQ a EX 10", "$1\r\na\r\n"},
		{"SET k a ; SET k b EX 10 ifeq a ; TTL k", ":10\r\n"},
		{"SET k a EX 10 ; SET k b IFEQ a KEEPTTL ; TTL k", ":10\r\n"},
		{"SET k a ; SET k b IFEQ a ; TTL k", ":3600\r\n"},
		{"SET k a ; SET k b IFNE a", "$-1\r\n"},
		{"SET k a ; SET k b IFNE x GET", "$1\r\na\r\n"},
		{"SET k b IFEQ x GET", "$-1\r\n"},
		{"SET k b IFEQ", "-ERR syntax error\r\n"},
		{"SET k b IFEQ a NX", "-ERR syntax error\r\n"},
		{"SET k b XX IFEQ a", "-ERR syntax error\r\n"},
		{"SET k b IFEQ a IFNE b", "-ERR syntax error\r\n"},
		{"SET k b IFDEQ a", "-ERR syntax error\r\n"},
		{"SET k b IFEQ a EX 0", "-ERR invalid expire time in 'set' command\r\n"},
		{"SET k b IFEQ a EX 3601", "-ERR lock TTL 3601 s exceeds ttl_max 3600000 ms (1h); ask for less, or raise ttl_max on every lockproxy\r\n"},
		{"DELEX k", ":0\r\n"},
		{"SET k a ; DELEX k", ":1\r\n"},
		{"SET k a ; DELEX k IFEQ a", ":1\r\n"},
		{"SET k a ; DELEX k IFEQ b", ":0\r\n"},
		{"SET k a ; DELEX k IFEQ b ; GET k", "$1\r\na\r\n"},
		{"SET k a ; DELEX k IFNE a", ":0\r\n"},
		{"SET k a ; delex k ifne b", ":1\r\n"},
		{"DELEX k IFEQ", "-ERR wrong number of arguments for 'delex' command\r\n"},
		{"DELEX k IFEQ a b", "-ERR wrong number of arguments for 'delex' command\r\n"},
		{"DELEX k IFDEQ a", ":0\r\n"},
		{"SET k a ; DELEX k IFDEQ a", "-ERR Invalid condition. Use IFEQ or IFNE\r\n"},
		{"SET k a ; MULTI ; DELIFEQ k b ; DELIFEQ k a ; DELIFEQ k a ; EXEC", "*3\r\n:0\r\n:1\r\n:0\r\n"},
		{"SET k a ; DELIFEQ k a", ":1\r\n"},
		{"SET k a ; DELIFEQ k b", ":0\r\n"},
		{"DELIFEQ k a", ":0\r\n"},
		{"HELLO 3 ; SET k a IFEQ a", "_\r\n"},
	} {
		client := newRig(t, Config{}).dial()
		got := ""
		for req := range strings.SplitSeq(c[0], " ; ") {
			got = client.ask(strings.Fields(req)...)
		}
		if got != c[1] {
			t.Errorf("%s\n got %q\nwant %q", c[0], got, c[1])
		}
	}
}

// To SET NX GET null says that the lock was granted, and none is until a time that has passed.
func TestALockUntilATimeThatHasPassedIsRefused(t *testing.T) {
	c := newRig(t, Config{}).dial()
	if got := c.ask("SET", "k", "a", "NX", "GET", "PXAT", "1000"); got != "$0\r\n\r\n" {
		t.Errorf("%q", got)
	}
	c.send(words("MULTI") + words("SET k a NX PXAT 1000") + words("SET k a NX GET PXAT 1000") + words("EXEC"))
	c.want("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$-1\r\n$0\r\n\r\n")
}

// Every command that names a key must leave our own keys alone.
func TestReservedKeysAreOutOfReachOfEveryCommand(t *testing.T) {
	c := newRig(t, Config{}).dial()
	want := "-ERR lockproxy keeps the key 'lockproxy:canary' for itself; use another name\r\n"
	tried := 0
	try := func(cmd *command) {
		if cmd.keys.none() {
			return
		}
		var request []string
		for len(request) < 8 || !cmd.accepts(len(request)) { // the most that any row demands, or more
			if request = append(request, "x"); len(request) > 20 {
				break
			}
		}
		for n := len(request); n > 0; n-- {
			if cmd.accepts(n) {
				request = request[:n]
				break
			}
		}
		copy(request, strings.Split(cmd.full, "|"))
		places := []int{cmd.keys.first, cmd.keys.last}
		if cmd.keys.numkeys > 0 {
			request[cmd.keys.numkeys] = "1"
			places = []int{cmd.keys.numkeys + 1}
			if len(request) <= places[0] {
				request = append(request, "x")
			}
		}
		for _, at := range places {
			if at < 0 {
				at += len(request)
			}
			if cmd.keys.step > 0 {
				at -= (at - cmd.keys.first) % cmd.keys.step
			}
			hostile := slices.Clone(request)
			hostile[at] = "lockproxy:canary"
			if got := c.ask(hostile...); got != want {
				t.Errorf("%q was answered %q", hostile, got)
			}
			tried++
		}
	}
	for _, cmd := range allCommands().rows {
		try(cmd)
		for _, sub := range cmd.subs {
			try(sub)
		}
	}
	if tried < 60 {
		t.Errorf("only %d requests were tried", tried)
	}
	for _, name := range []string{"lockproxy:quarantine", "lockproxy:horizon"} {
		if got := c.ask("SET", name, "x"); !strings.HasPrefix(got, "-ERR lockproxy keeps") {
			t.Errorf("%s: %q", name, got)
		}
	}
	c.ask("MULTI")
	c.ask("GET", "lockproxy:canary")
	if got := c.ask("EXEC"); !strings.HasPrefix(got, "-EXECABORT") {
		t.Errorf("EXEC: %q", got)
	}
}

func TestWatchIsAwaitedByExec(t *testing.T) {
	r := newRig(t, Config{})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(words("WATCH k") + words("MULTI") + words("SET j v") + words("EXEC"))
	if name := <-arrived; name != "exec k" {
		t.Fatal(name)
	}
	waitFor(t, "EXEC does not wait", func() bool { return r.server.sessions.all()[0].reader.heldUp.Load() })
	if len(arrived) > 0 {
		t.Fatalf("then %s came to the engine, want only WATCH", <-arrived)
	}
	r.engine.release(0)
	c.want("+OK\r\n+OK\r\n+QUEUED\r\n")
	if name := <-arrived; name != "exec k" {
		t.Fatal(name)
	}
	r.engine.release(0)
	c.want("*1\r\n+OK\r\n")
}

func TestAWatchThatFailedLetsNoExecPass(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	r.engine.fail(quorum.ErrClosed)
	c.send(words("WATCH k"))
	c.want("-ERR lockproxy is shutting down\r\n")
	r.engine.fail(nil)
	c.send(words("MULTI") + words("SET k v") + words("EXEC") + words("GET k"))
	c.want("+OK\r\n+QUEUED\r\n*-1\r\n$-1\r\n")
}

func TestATransactionIsBounded(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Command: 1000, Input: 2000}})
	c := r.dial()
	full := "-ERR a transaction with the keys that it watches takes more than 1024 commands, 16384 arguments or 2000 bytes (max_input); make several of it\r\n"
	for i := range 5 {
		got := c.ask("WATCH", strings.Repeat("k", 400)+fmt.Sprint(i))
		if i == 0 && got != "+OK\r\n" || i == 4 && got != full {
			t.Errorf("%d: %q", i, got)
		}
	}
	c.ask("UNWATCH")
	c.ask("MULTI")
	refused := 0
	for range 40 {
		if got := c.ask("SET", "k", strings.Repeat("x", 100)); got == full {
			refused++
		}
	}
	if refused == 0 || refused == 40 {
		t.Errorf("%d of 40 were refused", refused)
	}
	if got := c.ask("EXEC"); got != string(errExecAbort.AppendTo(nil, false)) {
		t.Errorf("%q", got)
	}
	if used := r.server.relief.memory.used(); used > 500 {
		t.Errorf("%d bytes are still counted", used)
	}

	many := newRig(t, Config{})
	c = many.dial()
	full = strings.Replace(full, "2000 bytes", "16mb", 1)
	c.ask("MULTI")
	for i := range queuedMax + 1 {
		got := c.ask("PING")
		if want := map[bool]string{true: "+QUEUED\r\n"}[i < queuedMax]; want != "" && got != want {
			t.Fatalf("%d: %q", i, got)
		} else if want == "" && got != full {
			t.Errorf("%d: %q", i, got)
		}
	}
	c.ask("DISCARD")
	c.ask("MULTI")
	refusedAt := 0
	for i := 1; refusedAt == 0 && i < 100; i++ {
		if got := c.ask(append([]string{"MGET"}, slices.Repeat([]string{"k"}, 999)...)...); got != "+QUEUED\r\n" {
			refusedAt = i
		}
	}
	if refusedAt != 17 {
		t.Errorf("the %dth MGET of 1000 arguments was refused", refusedAt)
	}
	c.ask("DISCARD")
	var request []string
	for i := range 20 {
		request = append(request, fmt.Sprint("key", i), "v")
	}
	if got := c.ask(append([]string{"MSETNX"}, request...)...); got != ":1\r\n" {
		t.Errorf("%q", got)
	}
	if got := c.ask("MGET", "key19", "key3", "a", "b", "c", "d", "e", "f", "key0"); strings.Count(got, "$1\r\nv\r\n") != 3 {
		t.Errorf("%q", got)
	}
	for i := range keysMax {
		c.ask("WATCH", fmt.Sprint(i))
	}
	if got := c.ask("WATCH", "7", "one-more"); got != "-ERR more than 1024 keys are watched; UNWATCH, or watch fewer\r\n" {
		t.Errorf("%q", got)
	}
	if got := c.ask("WATCH", "7"); got != "+OK\r\n" {
		t.Errorf("%q", got)
	}
	c.ask("MULTI")
	c.ask("GET", "one-more")
	if got := c.ask("EXEC"); got != "-ERR a transaction on more than 1024 keys; make several of it\r\n" {
		t.Errorf("%q", got)
	}
	if got := c.ask("EXEC"); got != "-ERR EXEC without MULTI\r\n" {
		t.Errorf("%q", got)
	}
	_ = c.Close()
	many.dial().ask("PING")
	awaitNothingHeld(t, many)
}

// awaitNothingHeld waits until closed clients have given their memory back.
func awaitNothingHeld(t *testing.T, r *rig) {
	t.Helper()
	waitFor(t, "bytes are still counted", func() bool {
		return r.server.relief.memory.used() == 0 && r.server.relief.strangers.budget.used() == 0
	})
	waitFor(t, "there are still strangers", func() bool {
		return r.server.relief.strangers.eldest() == nil && r.server.relief.strangers.eldestHolding() == nil
	})
}

func TestATransactionOfAClientThatIsGoneGivesItsMemoryBack(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	c.ask("WATCH", strings.Repeat("k", 100_000))
	c.ask("MULTI")
	c.ask("SET", "k", strings.Repeat("x", 100_000))
	if used := r.server.relief.memory.used(); used < 200_000 {
		t.Errorf("only %d bytes are counted", used)
	}
	_ = c.Close()
	awaitNothingHeld(t, r)
}

func TestATransactionGrantedTooLateIsAbandoned(t *testing.T) {
	r := newRig(t, Config{})
	r.engine.late = true
	c := r.dial()
	late := "-NOQUORUM no validity is left of the TTL: it is too short, or the masters answered too late\r\n"
	if got := c.ask("GETSET", "k", "v"); got != late {
		t.Errorf("%q", got)
	}
	<-r.engine.onlyLock(t).abandoned
}

func TestATransactionWhoseClientHangsUpIsAbandoned(t *testing.T) {
	r := newRig(t, Config{})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(words("MULTI") + words("SETNX k v") + words("EXPIRE k 9") + words("EXEC"))
	<-arrived
	_ = c.Close()
	r.awaitGone()
	r.engine.release(0)
	<-r.engine.onlyLock(t).abandoned
}

// awaitGone waits until no client is connected.
func (r *rig) awaitGone() {
	r.t.Helper()
	waitFor(r.t, "a client is still there", func() bool { return r.server.Stats().Clients == 0 })
}

func TestWhatATransactionCannotHold(t *testing.T) {
	c := newRig(t, Config{}).dial()
	for _, line := range []string{"SUBSCRIBE x", "CLIENT KILL ID 9", "LOCK k 1000", "HGET k f", "CLIENT REPLY OFF", "CLIENT ID", "SELECT 0", "HELLO 3", "PUBSUB NUMPAT",
		"EVAL return{} 1 k", "DEBUG JMAP"} {
		c.ask("MULTI")
		if got := c.ask(strings.Fields(line)...); got[0] != '-' {
			t.Errorf("%s: %q", line, got)
		}
		if got := c.ask("EXEC"); !strings.HasPrefix(got, "-EXECABORT ") {
			t.Errorf("%s, EXEC: %q", line, got)
		}
	}
	c.ask("MULTI")
	if got := c.ask("EVAL", "return{}", "1", "k"); !strings.HasSuffix(got, "does not run it inside MULTI; send it before MULTI or after EXEC\r\n") {
		t.Errorf("%q", got)
	}
	c.ask("DISCARD")
	c.ask("WATCH", "k")
	c.ask("SELECT", "1")
	c.ask("MULTI")
	c.ask("SET", "k", "v")
	if got := c.ask("EXEC"); !strings.HasPrefix(got, "-ERR the watched keys are in another database") {
		t.Errorf("%q", got)
	}
}

func TestScriptsInATransaction(t *testing.T) {
	c := newRig(t, Config{}).dial()
	c.ask("SCRIPT", "LOAD", releaseText)
	for _, step := range []struct{ request, want string }{
		{"SET k me EX 10", "+OK\r\n"},
		{"MULTI", "+OK\r\n"},
		{"EVALSHA " + releaseSHA + " 1 k you", "+QUEUED\r\n"},
		{"EVALSHA " + releaseSHA + " 1 k me", "+QUEUED\r\n"},
		{"EVALSHA " + releaseSHA + " 1 k me", "+QUEUED\r\n"},
		{"SET k you NX EX 10", "+QUEUED\r\n"},
		{"EXEC", "*4\r\n:0\r\n:1\r\n:0\r\n+OK\r\n"},
		{"GET k", "$3\r\nyou\r\n"},
	} {
		if got := c.ask(strings.Fields(step.request)...); got != step.want {
			t.Errorf("%s\n got %q\nwant %q", step.request, got, step.want)
		}
	}
	c.ask("MULTI")
	if got := c.ask("EVALSHA_RO", releaseSHA, "1", "k", "you"); !strings.Contains(got, "does not run it inside MULTI") {
		t.Errorf("a script that may not write: %q", got)
	}
}

// Of several who are told a value that they delete, only one may be; of others, all may (quorum.Claim).
func TestOnlyWhatIsToldIsClaimed(t *testing.T) {
	r := newRig(t, Config{})
	for lines, want := range map[string]quorum.EditKind{
		"DEL k": quorum.Delete, "EXISTS k,DEL k": quorum.Delete, "SET k w XX,DEL k": quorum.Delete, "DELEX k IFEQ v": quorum.Delete,
		"GETDEL k": quorum.Claim, "GET k,DEL k": quorum.Claim, "MGET j k,UNLINK k": quorum.Claim, "GETEX k PXAT 1": quorum.Claim,
		"SET k w GET EXAT 1": quorum.Claim, "GET k": quorum.Keep, "GET j,DEL k": quorum.Delete, "GETRANGE k 0 0,DELIFEQ k v": quorum.Claim,
	} {
		now := []quorum.View{{Exists: true, Type: "string", Value: "v", TTL: time.Minute}, {Type: "none"}}
		p := newPlan(time.Hour, indexed([]string{"k", "j"}), now)
		for line := range strings.SplitSeq(lines, ",") {
			args := strings.Fields(line)
			p.cmd = r.server.commands.find(args[0])
			p.cmd.plan(p, args)
		}
		if got := p.edits()[0].Kind; got != want {
			t.Errorf("%s: %d, want %d", lines, got, want)
		}
	}
}

func TestReadsOfHashes(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	requests := []string{"HGET k f", "HEXISTS k f", "HLEN k", "HSTRLEN k f", "HKEYS k", "HVALS k", "HGETALL k", "HMGET k f g",
		"OBJECT ENCODING k"}
	check := func(want ...string) {
		t.Helper()
		for i, line := range requests {
			if got := c.ask(strings.Fields(line)...); got != want[i] {
				t.Errorf("%s: got %q, want %q", line, got, want[i])
			}
		}
	}
	// No answer has a quorum: as if the key were not there.
	check("$-1\r\n", ":0\r\n", ":0\r\n", ":0\r\n", "*0\r\n", "*0\r\n", "*0\r\n", "*2\r\n$-1\r\n$-1\r\n", "$-1\r\n")
	r.engine.answers = map[string]any{"hget": "v", "hexists": int64(1), "hlen": int64(1), "hstrlen": int64(1),
		"hkeys": []any{"f"}, "hvals": []any{"v"}, "hgetall": []any{"f", "v"}, "hmget": []any{"v", nil}, "object": "listpack"}
	check("$1\r\nv\r\n", ":1\r\n", ":1\r\n", ":1\r\n", "*1\r\n$1\r\nf\r\n", "*1\r\n$1\r\nv\r\n",
		"*2\r\n$1\r\nf\r\n$1\r\nv\r\n", "*2\r\n$1\r\nv\r\n$-1\r\n", "$8\r\nlistpack\r\n")
	c.ask("HELLO", "3")
	if got := c.ask("HGETALL", "k"); got != "%1\r\n$1\r\nf\r\n$1\r\nv\r\n" {
		t.Errorf("%q", got)
	}
}
