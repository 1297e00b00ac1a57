package resp

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"testing"
)

const (
	setLiteral  = "return redis.call('set','lock:lit','x','nx','px',5000)"
	setArgument = "return redis.call('set',ARGV[1],'x','nx','px',5000)"
	getData     = "return redis.call('get','data')"
	incrLiteral = "return redis.call('incr','lock:lit')"
	prefixed    = "return redis.call('incr','lock:' .. ARGV[1])"
	valued      = "return redis.call('set',KEYS[1],'lock:lit','nx','px',5000)"
	counting    = "-- 'lock:lit'\nreturn redis.call('incr', KEYS[1])"
	tokenInKeys = "if redis.call('get',KEYS[1]) == KEYS[2] then return redis.call('del',KEYS[1]) end return 0"
)

func shaOf(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestAScriptIsRunWhereTheKeyIsThatItWorksOn(t *testing.T) {
	const mixed, undeclared = "-ERR 'NAME' names a lock, 'lock:", "' must have it in KEYS; this one has it in its text\r\n"
	const upstream = "+there\r\n"
	for _, c := range []struct{ text, args, want string }{
		{setLiteral, "0", "+OK\r\n"},
		{setLiteral, "1 lock:lit", "+OK\r\n"},
		{setLiteral, "1 lock:other", "+OK\r\n"},
		{setLiteral, "1 data", mixed},
		{setArgument, "0 lock:arg", "+OK\r\n"},
		{setArgument, "0 {lock:arg}:2", "+OK\r\n"},
		{setArgument, "0 data", upstream},
		{setArgument, "0 data lock:token", upstream},
		{setArgument, "1 data lock:arg", mixed},
		{setArgument, "1 lock:other data", mixed},
		{setArgument, "1 lock:other lock:arg", "+OK\r\n"},
		{setArgument, "0 lockproxy:canary", "-ERR lockproxy keeps the key 'lockproxy:canary' for itself"},
		{getData, "0", upstream},
		{getData, "1 data", upstream},
		{getData, "1 lock:other", mixed},
		{valued, "1 data", upstream},
		{valued, "0", undeclared}, // which is not how it is understood
		{tokenInKeys, "2 lock:other token", ":0\r\n"},
		{tokenInKeys, "2 data lock:token", upstream},
		{tokenInKeys, "3 lock:other token data", ":0\r\n"},
		{counting, "2 lock:other data", mixed},
		{incrLiteral, "0", undeclared},
		{incrLiteral, "1 data", undeclared},
		{prefixed, "0 x", undeclared},
		{counting, "1 data", upstream},
		{counting, "1 data lock:arg", upstream},
		{counting, "0 lock:arg", "this one declares no keys"},
		{counting, "x lock:arg", upstream},
		{"return redis.call('lock:x')", "0", upstream}, // no command's name is a key
		{"#!lua flags=no-writes\nreturn redis.call('exists', 'lock:lit')", "0", undeclared},
		{strings.Repeat(" ", 1<<20) + incrLiteral, "0", undeclared},
	} {
		for _, name := range []string{"eval", "evalsha"} {
			u, r, client := newUpstreamRig(t)
			request := append([]string{name, c.text}, strings.Fields(c.args)...)
			if name == "evalsha" {
				if s, err := r.server.scripts.Load(c.text); err == nil { // what is too long is not known later
					r.server.scripts.KeepCompiled(s)
				} else {
					continue
				}
				request[1] = shaOf(c.text)
			}
			for range 2 { // the second time it is remembered
				client.send(cmdline(request...))
				if c.want == upstream {
					u.wantRequest(t, strings.Join(request, " "))
					u.answers <- upstream
				}
				reply := client.reply()
				if want := strings.Replace(c.want, "NAME", name, 1); !strings.Contains(reply, want) {
					t.Errorf("%q %s: got %q, want %q", request[:1], c.text+" "+c.args, reply, want)
				}
				u.wantNone(t)
				r.engine.mu.Lock()
				clear(r.engine.keys)
				r.engine.mu.Unlock()
			}
		}
	}
}

// A client that was told NOSCRIPT sends the text once, and the SHA-1 from then on.
func TestTheTextOfAScriptThatWentUpstreamIsKnownByItsSHA1(t *testing.T) {
	u, _, c := newUpstreamRig(t)
	sha := strings.ToUpper(shaOf(setArgument))
	for _, step := range [][]string{{"EVALSHA", sha, "0", "data"}, {"EVAL", setArgument, "0", "data"}, {"EVALSHA", sha, "0", "data"}} {
		c.send(cmdline(step...))
		u.wantRequest(t, strings.Join(step, " "))
		u.answers <- "+there\r\n"
		c.want("+there\r\n")
	}
	c.send(cmdline("EVALSHA", sha, "0", "lock:arg"))
	c.want("-NOSCRIPT No matching script. Please use EVAL.\r\n") // the masters were not given it
	c.send(cmdline("EVAL", setArgument, "0", "lock:arg") + cmdline("EVALSHA", sha, "0", "lock:arg"))
	c.want("+OK\r\n$-1\r\n")
	u.wantNone(t)
}

// Of such KEYS only the text can tell which is the key: a client that is told so sends it.
func TestAnUnknownSHA1WithALockAndAnotherNameInItsKeysIsNoScript(t *testing.T) {
	u, _, c := newUpstreamRig(t)
	rest := []string{"2", "lock:other", "token"}
	c.send(cmdline(append([]string{"EVALSHA", shaOf(tokenInKeys)}, rest...)...))
	c.want("-NOSCRIPT No matching script. Please use EVAL.\r\n")
	c.send(cmdline(append([]string{"EVAL", tokenInKeys}, rest...)...) + cmdline(append([]string{"EVALSHA", shaOf(tokenInKeys)}, rest...)...))
	c.want(":0\r\n:0\r\n")
	u.wantNone(t)
}

func TestScriptsWhereEveryNameIsALock(t *testing.T) {
	u := newFakeUpstream(t)
	r := newRig(t, Config{Upstream: u.redis, LockKeys: []string{"*"}})
	c := r.dial()
	for _, text := range []string{"return 1", "return redis.call('time')", "return redis.pcall( 'dbsize' )"} {
		c.send(cmdline("EVAL", text, "0"))
		u.wantRequest(t, "EVAL "+text+" 0")
		u.answers <- "+there\r\n"
		c.want("+there\r\n")
	}
	c.send(cmdline("EVAL", setArgument, "0", "any") + cmdline("EVAL", valued, "1", "other"))
	c.want("+OK\r\n+OK\r\n")
	if reply := c.ask("EVAL", "return redis.call('incr','n')", "0"); !strings.Contains(reply, "on the lock 'n' must have it in KEYS") {
		t.Error(reply)
	}
	u.wantNone(t)
}

func TestScriptsOnLocksInsideMulti(t *testing.T) {
	u, _, c := newUpstreamRig(t)
	c.send(words("MULTI") + cmdline("EVAL", setLiteral, "0") + words("EXEC"))
	c.want("+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n")
	c.send(words("MULTI") + cmdline("EVAL", incrLiteral, "0"))
	c.want("+OK\r\n-ERR a script that lockproxy is to run on the lock 'lock:lit' must have it in KEYS; this one has it in its text\r\n")
	c.send(words("EXEC"))
	c.want("-EXECABORT Transaction discarded because of previous errors.\r\n")
	u.wantNone(t)
	c.send(words("MULTI") + words("SET data 1"))
	u.wantRequest(t, "MULTI")
	u.wantRequest(t, "SET data 1")
	u.answers <- "+OK\r\n+QUEUED\r\n"
	c.want("+OK\r\n+QUEUED\r\n")
	c.send(cmdline("EVAL", setLiteral, "0"))
	if reply := c.reply(); !strings.HasPrefix(reply, "-ERR this transaction is about locks and about other keys") {
		t.Error(reply)
	}
}

func TestWhatIsNeitherForLocksNorForTheUpstreamIsRefused(t *testing.T) {
	u := newFakeUpstream(t)
	r := newRig(t, Config{Upstream: u.redis, LockKeys: []string{"lock:*"}, Limits: Limits{Args: 10, Bulk: 1000, Command: 3000}})
	c := r.dial()
	large := strings.Repeat("x", 900)
	const tooLarge = "-ERR a command that lockproxy serves itself is larger than max_args, max_bulk or max_command allow; raise them, or send less\r\n"
	for _, tc := range []struct{ request, want string }{
		{"DEL lock:1 lock:2 lock:3 lock:4 lock:5 lock:6 lock:7 lock:8 lock:9", ":0\r\n"},
		{"DEL lock:1 lock:2 lock:3 lock:4 lock:5 lock:6 lock:7 lock:8 lock:9 lock:10", tooLarge},
		{"SETNX lock:a " + large, ":1\r\n"},
		{"SETNX lock:b " + large + large, tooLarge},
		{"EVAL return(1) 1 lock:c" + strings.Repeat(" "+large, 4), tooLarge},
		{"DEL lock:" + large + " lock:" + large, ":0\r\n"},
		{"SYNC", "-ERR unknown command 'SYNC', with args beginning with: \r\n"},
		{"SCRIPT", "-ERR wrong number of arguments for 'script' command\r\n"},
		{"SCRIPT DEBUG YES", "-ERR unknown subcommand 'DEBUG'. Try SCRIPT HELP.\r\n"},
	} {
		if got := c.ask(strings.Fields(tc.request)...); got != tc.want {
			t.Errorf("%.40s: got %q, want %q", tc.request, got, tc.want)
		}
	}
	u.wantNone(t)
}

// A transaction, or what it watches, that is about both cannot be had as a whole.
func TestAWatchAndATransactionAreOnOneSide(t *testing.T) {
	for _, requests := range []string{ // each with what it sends to the upstream; the last is refused
		"WATCH lock:x; GET a > GET a; WATCH a",
		"WATCH a > WATCH a; WATCH lock:x",
		"WATCH lock:x; MULTI; SET a 1",
		"MULTI; GET lock:x; SET a 1",
		"MULTI; PUBLISH lock:x m; SET a 1",
		"MULTI; SET a 1 > MULTI > SET a 1; GET lock:x > DISCARD",
		"MULTI; SET a 1 > MULTI > SET a 1; PUBLISH lock:x m > DISCARD",
	} {
		u := newCrossing(t)
		c := newRig(t, Config{Upstream: u.redis, LockKeys: []string{"lock:*"}}).dial()
		steps := strings.Split(requests, "; ")
		for i, step := range steps {
			sent := strings.Split(step, " > ")
			c.send(words(sent[0]))
			for _, request := range sent[1:] {
				u.next(t, request).answer(t, "+OK\r\n")
			}
			refused := strings.HasPrefix(c.reply(), "-ERR this transaction is about locks and about other keys")
			if last := i == len(steps)-1; refused != last {
				t.Errorf("%s: %s: refused: %v", requests, step, refused)
			}
		}
		u.wantNone(t)
	}
}

// The upstream's SCRIPT FLUSH is also about the scripts on locks.
func TestScriptFlushIsForBothSides(t *testing.T) {
	u, _, c := newUpstreamRig(t)
	for _, request := range [][]string{{"SCRIPT", "LOAD", setArgument}, {"SCRIPT", "FLUSH"}} {
		c.send(cmdline(request...))
		u.wantRequest(t, strings.Join(request, " "))
		u.answers <- "+OK\r\n"
		c.want("+OK\r\n")
		if request[1] == "LOAD" {
			c.send(cmdline("EVALSHA", shaOf(setArgument), "0", "lock:a"))
			c.want("+OK\r\n")
		}
	}
	c.send(cmdline("EVALSHA", shaOf(setArgument), "1", "lock:a", "lock:a"))
	c.want("-NOSCRIPT No matching script. Please use EVAL.\r\n")
}

// What is refused here spoils a transaction that is there, too: the upstream has not heard of it.
func TestWhatIsRefusedHereSpoilsATransactionThere(t *testing.T) {
	u, _, c := newUpstreamRig(t)
	for _, request := range []string{"MULTI x", "DISCARD x", "WATCH", "RESET x", "EXEC x", "SYNC", "HELLO 3", "SELECT 1"} {
		c.send(words("MULTI") + words("SET data 1"))
		u.wantRequest(t, "MULTI")
		u.wantRequest(t, "SET data 1")
		u.answers <- "+OK\r\n+QUEUED\r\n"
		c.want("+OK\r\n+QUEUED\r\n")
		name, _, _ := strings.Cut(request, " ")
		refusal := "wrong number of arguments for '" + strings.ToLower(name) + "' command\r\n"
		switch name {
		case "SYNC":
			refusal = "unknown command 'SYNC', with args beginning with: \r\n"
		case "HELLO", "SELECT":
			refusal = "lockproxy does not run '" + strings.ToLower(name) + "' inside MULTI; send it before MULTI or after EXEC\r\n"
		}
		c.send(words(request))
		u.wantRequest(t, "DISCARD")
		u.answers <- "+OK\r\n"
		if name == "EXEC" {
			c.want("-EXECABORT Transaction discarded because of: " + refusal)
		} else {
			c.want("-ERR " + refusal)
			c.send(words("EXEC"))
			c.want("-EXECABORT Transaction discarded because of previous errors.\r\n")
		}
		c.send(words("GET data"))
		u.wantRequest(t, "GET data")
		u.answers <- "$-1\r\n"
		c.want("$-1\r\n")
	}
}

func BenchmarkDestinationOfAScript(b *testing.B) {
	u := newFakeUpstream(b)
	r := newRig(b, Config{Upstream: u.redis, LockKeys: []string{"lock:*", "*:lock", "job:*"}})
	for _, bench := range []struct{ name, command, script string }{
		{"text of 300 bytes", "EVAL", counting + strings.Repeat(" ", 260)},
		{"SHA-1", "EVALSHA", shaOf(counting)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			args := []string{bench.command, bench.script, "1", "data", strings.Repeat("x", 100)}
			cmd := r.server.commands.find(bench.command)
			b.ReportAllocs()
			for b.Loop() {
				if at, refused := r.server.router.destination(args, cmd); at != there || refused.is() {
					b.Fatal(refused)
				}
			}
		})
	}
}
