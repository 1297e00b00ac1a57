package resp

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
)

const (
	releaseText      = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	extendText       = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`
	addText          = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]+redis.call("pttl",KEYS[1])) else return 0 end`
	takeOrExtendText = `if redis.call("set",KEYS[1],ARGV[1],"NX","PX",ARGV[2]) then return 1 end if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`
	releaseSHA       = "b70c2384248f88e6b75b9f89241a180f856ad852"
)

func TestCommandsThatRedisHasNot(t *testing.T) {
	for _, conversation := range [][2]string{
		{"LOCK k 30000 TOKEN me", "^\\*6\r\n\\$5\r\ntoken\r\n\\$2\r\nme\r\n\\$5\r\nfence\r\n:\\d+\r\n\\$8\r\nvalidity\r\n:(30000|29\\d\\d\\d)\r\n$"},
		{"LOCK k 30000", "^\\*6\r\n\\$5\r\ntoken\r\n\\$32\r\n[0-9a-f]{32}\r\n\\$5\r\nfence\r\n:\\d+\r\n\\$8\r\nvalidity\r\n:(30000|29\\d\\d\\d)\r\n$"},
		{"SET k x NX EX 10 ; LOCK k 30000", "^\\$-1\r\n$"},
		{"HELLO 3 ; LOCK k 30000 TOKEN me", "^%3\r\n\\$5\r\ntoken\r\n\\$2\r\nme\r\n\\$5\r\nfence\r\n:\\d+\r\n\\$8\r\nvalidity\r\n:"},
		{"HELLO 3 ; SET k x EX 9 ; LOCK k 30000", "^_\r\n$"},
		{"LOCK k 30000 TOKEN me ; UNLOCK k you", "^:0\r\n$"},
		{"LOCK k 30000 TOKEN me ; UNLOCK k me", "^:1\r\n$"},
		{"LOCK k 30000 TOKEN me ; EXTEND k me 50000", "^:(50000|49\\d\\d\\d)\r\n$"},
		{"LOCK k 30000 TOKEN me ; EXTEND k you 50000", "^:0\r\n$"},
		{"LOCK k 30000 ; FENCE k 1125899906842624", "^:1\r\n$"},
		{"LOCK k 30000 ; FENCE k 1125899906842623", "^:0\r\n$"},
		{"LOCK k 30000 TOKEN me ; UNLOCK k me ; LOCK k 30000 ; FENCE k 1125899906842624", "^:0\r\n$"},
		{"BLPop k 0", "^-ERR unknown command 'BLPop', with args beginning with: 'k' '0' ; lockproxy serves no lists: .* see Scripts that are refused in docs/clients.md\r\n$"},
		{"LLEN k", "^-ERR unknown command 'LLEN', with args beginning with: 'k' \r\n$"},
		{"FENCE k 0", "^:0\r\n$"}, {"FENCE k -1", "^:0\r\n$"},
		{"FENCE k 1.5", "^-ERR value is not an integer or out of range\r\n$"},
		{"FENCE k 9223372036854775808", "^-ERR value is not an integer or out of range\r\n$"},
		{"FENCE k", "^-ERR wrong number of arguments for 'fence' command\r\n$"},
		{"FENCE lockproxy:fence:k 1", "^-ERR .*lockproxy:fence:k"},
		{"SET lockproxy:fence 1", "^-ERR .*lockproxy:fence"},
		{"LOCK k 0", "^-ERR invalid expire time in 'lock' command\r\n$"},
		{"LOCK k a", "^-ERR value is not an integer or out of range\r\n$"},
		{"LOCK k 1000 TOKEN", "^-ERR syntax error\r\n$"},
		{"SET k x NX EX 10 ; LOCK k 1000 WAIT 5", "^\\$-1\r\n$"},
		{"LOCK k 30000 WAIT 5 TOKEN me HOLD", "^\\*6\r\n\\$5\r\ntoken\r\n\\$2\r\nme\r\n"},
		{"LOCK k 1000 WAIT", "^-ERR syntax error\r\n$"},
		{"LOCK k 1000 WAIT x", "^-ERR value is not an integer or out of range\r\n$"},
		{"LOCK k 1000 WAIT -1", "^-ERR WAIT is a time in milliseconds, at most 86400000 \\(24h\\)\r\n$"},
		{"LOCK k 1000 WAIT 86400001", "^-ERR WAIT is a time in milliseconds, at most 86400000 \\(24h\\)\r\n$"},
		{"LOCK k 3", "-ERR TTL 3 ms is too short: less than 1 ms of validity would be left; ask for 4 ms or more\r\n"},
		{"LOCK k 3 WAIT 60000 HOLD", "^-ERR TTL 3 ms is too short: "},
		{"EXTEND k t 1", "^-ERR TTL 1 ms is too short: "},
		{"LOCK k 3600001", "^-ERR lock TTL 3600001 ms exceeds ttl_max 3600000 ms \\(1h\\); "},
		{"SET k v NX EX 3601", "^-ERR lock TTL 3601 s exceeds ttl_max 3600000 ms \\(1h\\); "},
		{"EXPIRE k 92233720368547", "^-ERR lock TTL 92233720368547 s exceeds ttl_max 3600000 ms \\(1h\\); "},
		{"PEXPIREAT k 9999999999999", "^-ERR lock TTL until Unix time 9999999999999 ms exceeds ttl_max 3600000 ms \\(1h\\); "},
		{"SET k v EXAT 9999999999", "^-ERR lock TTL until Unix time 9999999999 s exceeds ttl_max 3600000 ms \\(1h\\); "},
		{"SET k v EX 99999999", "^-ERR lock TTL 99999999 s exceeds ttl_max 3600000 ms \\(1h\\); "},
		{"SETEX k 3601 v", "^-ERR lock TTL "},
		{"SET k v EX 10 ; EXPIRE k 3601", "^-ERR lock TTL "},
		{"SET k v ; TTL k", "^:3600\r\n$"},
		{"SET k v NX ; PTTL k", "^:(3600000|3599\\d\\d\\d)\r\n$"},
		{"SET k v EX 10 ; PERSIST k", "^:1\r\n$"},
		{"SET k v EX 10 ; PERSIST k ; TTL k", "^:3600\r\n$"},
		{"PERSIST k", "^:0\r\n$"},
		{"SET k v NX EXAT 1", "^\\$-1\r\n$"}, // nothing could be held: not OK, although Redis says so
		{"SET k v NX GET EXAT 1", "^\\$0\r\n\r\n$"},
		{"READONLY", "^\\+OK\r\n$"},
		{"READWRITE", "^\\+OK\r\n$"},
		{"CLIENT SETINFO LIB-NAME x", "^\\+OK\r\n$"},
		{"CLIENT SETINFO FOO x", "^-ERR Unrecognized option 'FOO'\r\n$"},
		{"CLIENT NO-TOUCH ON", "^\\+OK\r\n$"},
		{"CONFIG SET save x", "^-ERR lockproxy does not support CONFIG SET"},
		{"CONFIG REWRITE", "^-ERR "}, {"CONFIG RESETSTAT", "^\\+OK\r\n$"},
		{"CLIENT ID", "^:1\r\n$"},
		{"CLIENT LIST", "^\\$\\d+\r\nid=1 addr=127.0.0.1:\\d+ laddr=127.0.0.1:\\d+ fd=0 name= age=0 idle=0 flags=N db=0 .* cmd=client\\|list user=default redir=-1 resp=2\n\r\n$"},
		{"SELECT 3 ; CLIENT SETNAME me ; HELLO 3 ; CLIENT INFO", "^=\\d+\r\ntxt:id=1 .* name=me .* db=3 .* cmd=client\\|info user=default redir=-1 resp=3\n\r\n$"},
		{"CLIENT KILL ID 1 SKIPME yes", "^:0\r\n$"},
		{"TIME", "^\\*2\r\n\\$10\r\n\\d+\r\n\\$\\d\r\n\\d+\r\n$"},
		{"LASTSAVE", "^:\\d{10}\r\n$"},
		{"COMMAND COUNT", "^:\\d+\r\n$"},
		{"COMMAND INFO get", "^\\*1\r\n\\*10\r\n\\$3\r\nget\r\n:2\r\n\\*2\r\n\\+readonly\r\n\\+fast\r\n:1\r\n:1\r\n:1\r\n\\*3\r\n\\+@read\r\n\\+@string\r\n\\+@fast\r\n\\*0\r\n"},
		{"COMMAND INFO client|id", "^\\*1\r\n\\*10\r\n\\$9\r\nclient\\|id\r\n:2\r\n\\*3\r\n\\+noscript\r\n\\+loading\r\n\\+stale\r\n:0\r\n:0\r\n:0\r\n\\*2\r\n\\+@slow\r\n\\+@connection\r\n"},
		{"COMMAND", "^\\*\\d+\r\n"},
		{"COMMAND DOCS get", "^\\*2\r\n\\$3\r\nget\r\n\\*8\r\n\\$7\r\nsummary\r\n\\$22\r\nGet the value of a key\r\n"},
		{"HELLO 3 ; COMMAND DOCS", "^%\\d+\r\n"},
		{"COMMAND LIST", "^\\*\\d+\r\n\\$4\r\nlock\r\n"},
		{"COMMAND LIST FILTERBY ACLCAT scripting", "^\\*8\r\n\\$4\r\neval\r\n"},
	} {
		c := newRig(t, Config{}).dial()
		requests := strings.Split(conversation[0], " ; ")
		var got string
		for _, req := range requests {
			got = c.ask(strings.Fields(req)...)
		}
		if !regexp.MustCompile(conversation[1]).MatchString(got) {
			t.Errorf("%s\n got %q\nwant %s", conversation[0], got, conversation[1])
		}
	}
}

func TestScriptsAreAnsweredInTheirDialect(t *testing.T) {
	c := newRig(t, Config{}).dial()
	const spring = `local lockClientId = redis.call('GET', KEYS[1])
		if lockClientId == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) return true
		elseif not lockClientId then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return true end return false`
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"EVALSHA", releaseSHA, "1", "k", "me"}, "-NOSCRIPT No matching script. Please use EVAL.\r\n"},
		{[]string{"EVAL", releaseText, "1", "k", "me"}, ":0\r\n"},
		{[]string{"SCRIPT", "EXISTS", releaseSHA, "abc"}, "*2\r\n:1\r\n:0\r\n"},
		{[]string{"SET", "k", "me", "NX", "EX", "10"}, "+OK\r\n"},
		{[]string{"EVALSHA", releaseSHA, "1", "k", "you"}, ":0\r\n"},
		{[]string{"EVAL", extendText, "1", "k", "me", "20000"}, ":1\r\n"},
		{[]string{"TTL", "k"}, ":20\r\n"},
		{[]string{"EVAL", extendText, "1", "k", "you", "20000"}, ":0\r\n"},
		{[]string{"EVAL", spring, "1", "k", "you", "20000"}, "$-1\r\n"},
		{[]string{"EVALSHA", strings.ToUpper(releaseSHA), "1", "k", "me"}, ":1\r\n"},
		{[]string{"EVAL", spring, "1", "k", "you", "20000"}, ":1\r\n"},
		{[]string{"EVAL", spring, "1", "k", "you", "20000"}, ":1\r\n"},
		{[]string{"SCRIPT", "FLUSH"}, "+OK\r\n"},
		{[]string{"EVALSHA", releaseSHA, "1", "k", "me"}, "-NOSCRIPT No matching script. Please use EVAL.\r\n"},
		{[]string{"SCRIPT", "LOAD", releaseText}, "$40\r\n" + releaseSHA + "\r\n"},
		{[]string{"EVAL", extendText, "1", "k", "you", "9999999"}, "-ERR lock TTL 9999999 ms exceeds ttl_max 3600000 ms (1h); ask for less, or raise ttl_max on every lockproxy\r\n"},
	} {
		if got := c.ask(step.args...); got != step.want {
			t.Errorf("%v\n got %q\nwant %q", step.args, got, step.want)
		}
	}
}

func TestErrorsOfTheEngine(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&quorum.NoQuorum{Masters: 3, Answered: 1, Causes: []quorum.Cause{{Addr: "a:1", Text: "refused\r\n+OK"}}},
			"-NOQUORUM 1 of 3 masters answered, 2 needed: a:1 refused  +OK\r\n"},
		{quorum.ErrWrongType, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
		{quorum.ErrClosed, "-ERR lockproxy is shutting down\r\n"},
		{errors.New("ERR something"), "-ERR something\r\n"},
	} {
		r := newRig(t, Config{})
		r.engine.err = c.err
		cl := r.dial()
		for _, line := range []string{"SET k v", "SET k v NX", "SET k v XX GET", "GET k", "DEL k j", "EXISTS k j", "TTL k",
			"EXPIRE k 1", "LOCK k 1000", "UNLOCK k t", "EXTEND k t 1000", "TYPE k", "SETNX k v"} {
			if got := cl.ask(strings.Fields(line)...); got != c.want {
				t.Errorf("%s: got %q, want %q", line, got, c.want)
			}
		}
	}
}

// An acquire-or-extend script hears which of the two it was, and neither if its reply comes too late.
func TestTheScriptThatTakesALockAgainHearsOfTheTruth(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	text := `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return redis.call("set",KEYS[1],ARGV[1],"NX","PX",ARGV[2]) end`
	ask := func() string { return c.ask("EVAL", text, "1", "k", "me", "60000") }
	got := []string{ask(), ask()}
	r.engine.mu.Lock()
	r.engine.late = true
	r.engine.mu.Unlock()
	if got = append(got, ask()); !slices.Equal(got, []string{"+OK\r\n", ":1\r\n", "$-1\r\n"}) {
		t.Errorf("taken, taken again, and too late: %q", got)
	}
}

func TestInfoHasWhatClientsRead(t *testing.T) {
	cpu := func() (user, system time.Duration) { return 1500 * time.Millisecond, time.Microsecond }
	c := newRig(t, Config{Version: "1.2", CPU: cpu}).dial()
	c.ask("GET")
	c.ask("EVALSHA", strings.Repeat("0", 40), "0")
	c.ask("NOSUCH")
	got := c.ask("INFO")
	for _, line := range []string{"# Server", "redis_version:7.0.15", "redis_mode:standalone", "lockproxy_version:1.2", "role:master",
		"loading:0", "connected_slaves:0", "used_cpu_user:1.500000", "used_cpu_sys:0.000001",
		"# Modules", "errorstat_ERR:count=2", "errorstat_NOSCRIPT:count=1", "total_error_replies:3", "connected_clients:1", "masters:3", "quorum:2", "masters_connected:2",
		"master1:addr=10.0.0.2:6379,state=disconnected,cause=connection refused; twice,for_sec=0,left_sec=0,server=,version=,role=," +
			"clock_offset_msec=0,round_trip_usec=0,granted=0,refused=0,failed=0,batches_dropped=0," +
			"failed_late=0,failed_connection=0,failed_error=0,failed_forgot=0,failed_quarantined=0,failed_clock=0,failed_horizon=0",
		"master2_db8:addr=10.0.0.3:6379,state=quarantined,cause=quarantined 3s more (it is new; or empty),for_sec=1,left_sec=3",
		"attempts:3", "acquired:2"} {
		if !strings.Contains(got, "\r\n"+line+"\r\n") {
			t.Errorf("INFO lacks %q", line)
		}
	}
	if !regexp.MustCompile("\r\nrun_id:[0-9a-f]{40}\r\n").MatchString(got) {
		t.Error("INFO has no run_id of 40 hex digits")
	}
	if got := c.ask("INFO", "replication", "LOCKPROXY"); !strings.Contains(got, "# Replication") ||
		!strings.Contains(got, "# Lockproxy") || strings.Contains(got, "# Server") {
		t.Errorf("INFO replication lockproxy: %q", got)
	}
}

func TestClientReply(t *testing.T) {
	c := newRig(t, Config{}).dial()
	for _, line := range []string{"CLIENT REPLY SKIP", "SET k v NX EX 10", "GET k", "CLIENT REPLY OFF", "PING", "GET k",
		"CLIENT REPLY SKIP", "CLIENT REPLY ON", "PING"} {
		c.send(words(line))
	}
	c.want("$1\r\nv\r\n+OK\r\n+PONG\r\n")
	for _, empty := range []string{"\r\n", "*0\r\n"} {
		c.send(words("CLIENT REPLY SKIP") + empty + words("PING"))
		c.want("+PONG\r\n")
	}
}

// To Redis the Kelvin sign is no k, and a dotted I no i.
func TestOnlyASCIILettersHaveTwoCases(t *testing.T) {
	c := newRig(t, Config{}).dial()
	for request, want := range map[string]string{
		"CLIENT REPLY S\u212aIP": "-ERR syntax error\r\n", "CLIENT KILL \u0130D 99": "-ERR syntax error\r\n",
		"INFO \u212aEYSPACE": "$0\r\n\r\n",
	} {
		c.send(words(request))
		c.want(want)
	}
}

func TestAKilledClientIsGone(t *testing.T) {
	r := newRig(t, Config{})
	a, b := r.dial(), r.dial()
	a.ask("PING")
	b.ask("PING")
	if got := a.ask("CLIENT", "KILL", b.LocalAddr().String()); got != "+OK\r\n" {
		t.Errorf("got %q", got)
	}
	if _, err := b.r.ReadByte(); err == nil {
		t.Error("the killed client could still read")
	}
	a.send(words("CLIENT KILL TYPE normal SKIPME no"))
	a.want(":1\r\n")
	a.wantEnd()
}

func TestNamesArePerDatabase(t *testing.T) {
	c := newRig(t, Config{Databases: 2}).dial()
	c.send(words("SET k v NX") + words("SELECT 1") + words("SET k w NX") + words("GET k") + words("SELECT 2") + words("SELECT 0") + words("GET k"))
	c.want("+OK\r\n+OK\r\n+OK\r\n$1\r\nw\r\n-ERR DB index is out of range\r\n+OK\r\n$1\r\nv\r\n")
}

func TestTTLsAreRounded(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, c := range []struct {
		e    expiry
		n    int64
		want time.Duration
		ok   bool
	}{
		{seconds, 10, 10 * time.Second, true}, {millis, 10, 10 * time.Millisecond, true},
		{unixSeconds, 1_000_010, 10 * time.Second, true}, {unixMillis, 1_000_000_010, 10 * time.Millisecond, true},
		{seconds, 1 << 62, 0, false}, {millis, 1<<63 - 1, 0, false}, {unixMillis, 1<<63 - 1, (1 << 63) / 1_000_000 * time.Millisecond, true},
		{unixMillis, -1 << 63, -1 << 63, true}, {millis, -1 << 63, -((1 << 63) / 1_000_000) * time.Millisecond, true},
	} {
		if got, ok := c.e.ttl(c.n, func() time.Time { return now }); got != c.want || ok != c.ok {
			t.Errorf("%+v.ttl(%d) = %v, %v; want %v, %v", c.e, c.n, got, ok, c.want, c.ok)
		}
	}
}

func TestOneFailureAmongSeveralKeysIsTheAnswer(t *testing.T) {
	for _, first := range []bool{true, false} {
		r := newRig(t, Config{})
		arrived := r.engine.hold()
		c := r.dial()
		c.send(words("DEL a b"))
		<-arrived
		<-arrived
		for i := range 2 {
			r.engine.fail(nil)
			if (i == 0) == first {
				r.engine.fail(quorum.ErrClosed)
			}
			r.engine.release(0)
		}
		c.want("-ERR lockproxy is shutting down\r\n")
	}
}

// fail makes every operation end with err from here on.
func (e *fakeEngine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
}

func TestEveryContainerHasHelp(t *testing.T) {
	c := newRig(t, Config{}).dial()
	for name, sub := range map[string]string{"OBJECT": "ENCODING", "client": "LIST", "PUBSUB": "NUMPAT", "CONFIG": "GET", "SCRIPT": "LOAD", "COMMAND": "COUNT"} {
		got := c.ask(name, "help")
		begins := "+" + strings.ToUpper(name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n"
		if !strings.Contains(got, begins) || !strings.Contains(got, "\r\n+"+sub+"\r\n+    ") || !strings.HasSuffix(got, "\r\n+HELP\r\n+    Prints this help.\r\n") {
			t.Errorf("%s HELP: %q", name, got)
		}
	}
	if got := c.ask("OBJECT", "HELP", "me"); got != "-ERR wrong number of arguments for 'object|help' command\r\n" {
		t.Errorf("got %q", got)
	}
}

func TestNumbersAreAsTheConfigurationHasThem(t *testing.T) {
	for n, want := range map[int]string{0: "0 bytes", 1000: "1000 bytes", 1 << 10: "1kb", 3 << 19: "1536kb", 128 << 20: "128mb", 1 << 30: "1gb"} {
		if got := wire.SizeText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// A command whose usage has no list refuses a word too many.
func TestOptionalArgumentsHaveAnEnd(t *testing.T) {
	c := newRig(t, Config{}).dial()
	var check func(rows []*command, before ...string)
	check = func(rows []*command, before ...string) {
		for _, row := range rows {
			words := append(slices.Clone(before), row.name)
			check(row.subs, words...)
			if row.arity >= 0 || row.subs != nil || strings.Contains(row.usage, "...") || row.name == "quit" { // Redis, too, quits with any arguments
				continue
			}
			words = append(words, strings.Fields(strings.Repeat("1 ", 60))...)
			if got := c.ask(words...); !strings.HasPrefix(got, "-") {
				t.Errorf("%s takes 60 arguments, and replies %q", row.full, got)
			}
		}
	}
	check(allCommands().rows)
}
