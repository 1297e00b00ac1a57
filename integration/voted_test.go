package integration

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// A lock that somebody wrote for themselves: a hash of holders and counts. It replies 1 if it was taken, else 0.
const ownLock = `
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 1
end
return 0`

const counter = `local n = redis.call('incr', KEYS[1]) redis.call('pexpire', KEYS[1], 30000) return n`

// A split is three masters that do not hold the same.
type split struct {
	*testing.T
	masters []*harness.Redis
	addr    string // of the proxy
	client  *harness.Conn
}

func startSplit(t *testing.T) *split {
	s := &split{T: t, masters: startMasters(t, 3)}
	s.addr = startProxy(t, harness.Addrs(s.masters)).Addr
	s.client = dial(t, s.addr)
	allVote(t, s.client, s.masters)
	return s
}

// on sends a command to one master, past the proxy, and returns its raw reply.
func (s *split) on(master int, args ...string) string {
	s.Helper()
	reply, err := s.masters[master].Do(0, args...)
	if err != nil {
		s.Fatal(err)
	}
	return string(reply)
}

// settle waits until every master has done all that it was sent. A reply needs a quorum only, so one of them may not
// have seen the command yet; but each gets all commands on one connection, in order.
func (s *split) settle() {
	s.Helper()
	allVote(s, s.client, s.masters)
}

// everywhere checks what the masters reply in the end: what is put back on a late one is put back after the reply.
func (s *split) everywhere(want []string, args ...string) {
	s.Helper()
	s.settle()
	for i, w := range want {
		eventually(s, cleanMax, fmt.Sprintf("master %d, %q", i+1, args), func() error {
			if got := s.on(i, args...); got != w {
				return fmt.Errorf("got %q, want %q", got, w)
			}
			return nil
		})
	}
}

func (s *split) eval(want, text, key string, args ...string) {
	s.Helper()
	reply, err := s.client.Do(append([]string{"EVAL", text, "1", key}, args...)...)
	if err != nil {
		s.Fatal(err)
	}
	if got := string(reply); got != want && (want == "" || want[0] != '-' || !strings.HasPrefix(got, want)) {
		s.Fatalf("got %q, want %q", got, want)
	}
}

func TestAVotedScriptWinsWithAQuorum(t *testing.T) {
	s := startSplit(t)
	s.on(0, "HSET", "k", "you", "1")
	s.on(0, "PEXPIRE", "k", "30000")
	s.eval(":1\r\n", ownLock, "k", "me", "20000")
	s.everywhere([]string{"$1\r\n1\r\n", "$-1\r\n", "$-1\r\n"}, "HGET", "k", "you")
	s.everywhere([]string{"$-1\r\n", "$1\r\n1\r\n", "$1\r\n1\r\n"}, "HGET", "k", "me")
}

func TestWhatAVotedScriptDidAgainstTheQuorumIsPutBack(t *testing.T) {
	s := startSplit(t)
	for _, i := range []int{0, 2} {
		s.on(i, "HSET", "k", "you", "1")
		s.on(i, "PEXPIRE", "k", "30000")
	}
	s.eval(":0\r\n", ownLock, "k", "me", "20000")
	s.everywhere([]string{":1\r\n", ":0\r\n", ":1\r\n"}, "EXISTS", "k")
}

func TestMastersThatDisagreeAreAllPutBackWithTheirTTLs(t *testing.T) {
	s := startSplit(t)
	before := make([]string, 3)
	for i, n := range []string{"1", "5", "9"} {
		s.on(i, "SET", "k", n, "PX", strconv.Itoa(100_000+i*1000))
		before[i] = s.on(i, "PEXPIRETIME", "k")
	}
	s.eval("-NOQUORUM script ", counter, "k")
	s.everywhere([]string{"$1\r\n1\r\n", "$1\r\n5\r\n", "$1\r\n9\r\n"}, "GET", "k")
	s.everywhere(before, "PEXPIRETIME", "k")
}

func TestWhatAVotedScriptDeletedStaysDeleted(t *testing.T) {
	s := startSplit(t)
	for i := range 3 {
		s.on(i, "SET", "k", strconv.Itoa(i), "PX", "30000")
	}
	s.eval("-NOQUORUM script ", "local v = redis.call('get', KEYS[1]) redis.call('del', KEYS[1]) return v", "k")
	s.everywhere([]string{":0\r\n", ":0\r\n", ":0\r\n"}, "EXISTS", "k")
}

// A master that answers after the others have decided must not keep what they decided against.
func TestALateVoteIsPutBack(t *testing.T) {
	s := startSplit(t)
	s.eval(":1\r\n", ownLock, "warm", "me", "20000")
	s.on(0, "HSET", "k", "you", "1")
	s.on(1, "HSET", "k", "you", "1")
	if err := s.masters[2].Pause(); err != nil {
		t.Fatal(err)
	}
	s.eval(":0\r\n", ownLock, "k", "me", "20000")
	if err := s.masters[2].Resume(); err != nil {
		t.Fatal(err)
	}
	err := harness.Poll(5*time.Second, func() error {
		if got := s.on(2, "INFO", "commandstats"); !strings.Contains(got, "cmdstat_hincrby:calls=2,") {
			return fmt.Errorf("the late master has not run the script: %s", got)
		}
		if got := s.on(2, "EXISTS", "k"); got != ":0\r\n" {
			return fmt.Errorf("the late master keeps the key: %q", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	s.everywhere([]string{":1\r\n", ":1\r\n", ":0\r\n"}, "EXISTS", "k")
}

// A lock with many holders, as RReadWriteLock has, is a table on each master, in an order of its own.
func TestAHashIsTheSameInWhateverOrder(t *testing.T) {
	s := startSplit(t)
	hset := []string{"HSET", "k"}
	for i := range 600 {
		hset = append(hset, strconv.Itoa(i), "1")
	}
	for i := range s.masters {
		s.on(i, hset...)
		s.on(i, "PEXPIRE", "k", "30000")
		hset = append(append(hset[:2:2], hset[402:]...), hset[2:402]...)
	}
	expect(t, s.client, ":1\r\n", "EXISTS", "k")
	expect(t, s.client, "+hash\r\n", "TYPE", "k")
	s.on(0, "HDEL", "k", "7")
	s.on(1, "HSET", "k", "7", "2")
	expect(t, s.client, ":0\r\n", "EXISTS", "k")
	s.on(0, "HSET", "k", "7", "1")
	expect(t, s.client, ":1\r\n", "DEL", "k")
}

func TestAVotedScriptNeedsAQuorum(t *testing.T) {
	s := startSplit(t)
	s.eval(":1\r\n", ownLock, "warm", "me", "20000")
	s.masters[1].Kill()
	s.eval(":1\r\n", ownLock, "k", "me", "20000")
	s.masters[2].Kill()
	s.eval("-NOQUORUM ", ownLock, "k2", "me", "20000")
	// The reply does not wait for the one master that can still answer.
	eventually(t, cleanMax, "the attempt without a quorum is put back", func() error {
		if got := s.on(0, "EXISTS", "k2"); got != ":0\r\n" {
			return fmt.Errorf("its key is there: %q", got)
		}
		return nil
	})
}

// A script that is sent again comes within the time that its vote has, or not at all; so on a slow machine it may take
// more than one attempt to see it.
func TestAVotedScriptThatTheMastersForgotIsSentAgain(t *testing.T) {
	s := startSplit(t)
	s.eval(":1\r\n", ownLock, "k", "me", "20000")
	s.eval(":1\r\n", ownLock, "k", "me", "20000")
	s.settle()
	if got := s.on(0, "INFO", "commandstats"); !strings.Contains(got, "cmdstat_evalsha:") {
		t.Error("the script was never run by its SHA-1")
	}
	for i := range 20 {
		direct(t, s.masters, "SCRIPT", "FLUSH")
		key := fmt.Sprint("k", i)
		s.eval(":1\r\n", ownLock, key, "me", "20000")
		s.settle()
		if s.on(0, "HGET", key, "me") == "$1\r\n1\r\n" {
			return
		}
	}
	t.Error("a master that forgot the script is not sent it again")
}

// The TTL is kept by the masters for longer than the script asked for, and the script does not see that.
func TestKeysOfVotedScriptsAreKeptLikeAnyLock(t *testing.T) {
	s := startSplit(t)
	sent := time.Now().UnixMilli()
	s.eval(":1\r\n", ownLock, "k", "me", "100000")
	s.settle()
	kept := 100_000 + 1000 + 2 + grace.Milliseconds()
	expiry := func(master int, key string) (int64, bool) { // not by PEXPIRETIME, which is new in Redis 7
		left, ok := harness.Int([]byte(s.on(master, "PTTL", key)))
		return time.Now().UnixMilli() + left, ok && left > 0
	}
	for i := range 3 {
		ends, ok := expiry(i, "k")
		if set := ends - kept; !ok || set < sent-1 || set > time.Now().UnixMilli() {
			t.Errorf("master %d keeps the key until %d ms after it was asked to, want about %d", i+1, ends-sent, kept)
		}
		horizon, ok := expiry(i, "lockproxy:horizon")
		if !ok || horizon < ends {
			t.Errorf("master %d: the horizon ends at %d, the lock at %d", i+1, horizon, ends)
		}
	}
	reply, err := s.client.Do("EVAL", "return redis.call('pttl', KEYS[1]) + 0", "1", "k")
	if ms, ok := harness.Int(reply); err != nil || !ok || ms > 100_000 || ms < 100_000-(time.Now().UnixMilli()-sent)-30 {
		t.Errorf("the script sees a TTL of %q, %v", reply, err)
	}
}

// A library may keep such an error to itself, so the log tells it, too.
func TestAVotedScriptThatSetsALongerTTLThanTTLMaxIsRefused(t *testing.T) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	c := dial(t, proxy.Addr)
	reply, err := c.Do("EVAL", ownLock, "1", "k", "me", "3600001")
	want := "above ttl_max, 3600000 ms; ask for less, or raise ttl_max on every lockproxy\r\n"
	if err != nil || !strings.HasPrefix(string(reply), "-ERR script ") || !strings.HasSuffix(string(reply), want) {
		t.Errorf("got %q, %v", reply, err)
	}
	expect(t, c, ":0\r\n", "EXISTS", "k")
	eventually(t, cleanMax, "it is logged", func() error {
		if out := proxy.Output(); !strings.Contains(out, "its TTL exceeds ttl_max") {
			return fmt.Errorf("not in: %s", out)
		}
		return nil
	})
}

// A key that a script renames or copies keeps what is added to its TTL, and the script does not see that either.
func TestAVotedScriptDoesNotSeeWhatIsAddedToTheTTLOfAKeyThatItMoved(t *testing.T) {
	s := startSplit(t)
	for i, moved := range []string{"redis.call('rename', KEYS[1], KEYS[2])", "redis.call('copy', KEYS[1], KEYS[2])"} {
		from, to := fmt.Sprint("from", i), fmt.Sprint("to", i)
		s.eval(":1\r\n", ownLock, from, "me", "1000000")
		reply, err := s.client.Do("EVAL", moved+" return redis.call('pttl', KEYS[2]) > 1000000", "2", from, to)
		if err != nil || string(reply) != "$-1\r\n" { // false
			t.Errorf("%s: does the script see a TTL above 1000 s? %q, %v", moved, reply, err)
		}
	}
}

// Masters run a script some milliseconds apart, and each has a clock of its own: what it replies of them is no reason to
// disagree.
func TestMastersAgreeButForWhatClocksTold(t *testing.T) {
	s := startSplit(t)
	start := time.Now().Unix()
	for i := range 3 {
		s.on(i, "SET", "k", "v", "PX", strconv.Itoa(100_000+i*7))
	}
	reply, err := s.client.Do("EVAL", "return {redis.call('pttl', KEYS[1]), redis.call('time')[1], 'x', redis.call('ttl', KEYS[1])}", "1", "k")
	var ms, seconds, ttl int64
	if n, _ := fmt.Sscanf(string(reply), "*4\r\n:%d\r\n$10\r\n%d\r\n$1\r\nx\r\n:%d\r\n", &ms, &seconds, &ttl); n != 3 || err != nil ||
		ms < 50_000 || ms > 100_014 || seconds < start || seconds > start+60 || ttl != (ms+500)/1000 {
		t.Errorf("got %q, %v", reply, err)
	}
	s.on(2, "SET", "k", "v", "PX", "1000000")
	s.on(1, "DEL", "k")
	s.eval("-NOQUORUM script ", "return {redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])} and redis.call('pttl', KEYS[1]) - 1", "k")
	for range 20 {
		if reply, err := s.client.Do("EVAL", "return redis.call('time')", "1", "k"); err != nil || reply[0] != '*' {
			t.Fatalf("got %q, %v", reply, err)
		}
	}
}

// redissonLock is Redisson's RLock since 3.10, as its tryLock sends it.
const redissonLock = "if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then " +
	"redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; return redis.call('pttl', KEYS[1]);"

// springObtain is what Spring Integration's registry sends.
// Votes are split, and what one master has done is not known, so that the script may not be run again. What another client has set
// may be put back at any moment, and nobody would wake a Redisson that was told to wait until that is over.
func TestWhoCannotBeAskedForAgainIsToldToComeBackSoon(t *testing.T) {
	masters := startMasters(t, 3)
	relays, addrs := startRelays(t, masters)
	s := &split{T: t, masters: masters, addr: startProxy(t, addrs).Addr}
	s.client = dial(t, s.addr)
	s.settle()
	s.on(1, "HSET", "k", "b", "1")
	s.on(1, "PEXPIRE", "k", "30000")
	relays[0].Catch("not twice")
	if err := s.client.Send(harness.Encode(nil, "EVAL", redissonLock, "1", "k", "30000", "not twice")); err != nil {
		t.Fatal(err)
	}
	eventually(t, cleanMax, "the script is on its way to the first master", relays[0].Caught)
	relays[0].Cut()
	reply, err := s.client.Reply()
	var ttl int
	if n, scanErr := fmt.Sscanf(string(reply), ":%d\r\n", &ttl); err != nil || n != 1 || ttl <= 0 || int64(ttl) > instanceTimeout.Milliseconds() {
		t.Errorf("got %q, %v, %v", reply, err, scanErr)
	}
	relays[0].Deliver()
}

const springObtain = `local lockClientId = redis.call('GET', KEYS[1])
if lockClientId == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return true
elseif not lockClientId then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return true
end
return false`

// Redisson sleeps for as long as a refusal says, Spring Integration until somebody releases the lock, and a scheduled job asks once. So of those that
// ask for a free lock at one moment, through several proxies, one has to get it, also where votes are split easily: with
// one master of three down. On a machine that is busy with other things they may all be out of step for as long as they
// try, once in a thousand times.
func TestOfThoseThatAskAtOnceForAFreeLockOneGetsIt(t *testing.T) {
	masters := startMasters(t, 3)
	var proxies []*harness.Proxy
	for range 3 {
		proxies = append(proxies, startProxy(t, harness.Addrs(masters)))
	}
	clients := make([]*harness.Conn, 6)
	for i := range clients {
		clients[i] = dial(t, proxies[i%3].Addr)
	}
	masters[2].Kill()
	for library, ask := range map[string]struct {
		request func(name, token string) []string
		granted string
	}{
		"Redisson": {func(name, token string) []string {
			return []string{"EVAL", redissonLock, "1", name, "60000", token}
		}, "$-1\r\n"},
		"Spring Integration": {func(name, token string) []string {
			return []string{"EVAL", springObtain, "1", name, token, "60000"}
		}, ":1\r\n"},
		"ShedLock": {func(name, token string) []string {
			return []string{"SET", name, token, "NX", "PX", "60000"}
		}, "+OK\r\n"},
		"LOCK": {func(name, token string) []string {
			return []string{"LOCK", name, "60000", "TOKEN", token}
		}, "*6\r\n"},
	} {
		t.Run(library, func(t *testing.T) {
			none := 0
			for n := range 150 {
				switch winners := askTogether(t, clients, ask.granted, func(i int) []string {
					return ask.request(fmt.Sprintf("at-once-%s-%d", library, n), fmt.Sprintf("client-%d", i))
				}); {
				case winners == 0:
					none++
				case winners > 1:
					t.Fatalf("%d of %d clients got the lock", winners, len(clients))
				}
			}
			if none > 2 {
				t.Errorf("%d of 150 times no client got the lock", none)
			}
		})
	}
}

// askTogether has all clients make their requests at one moment, and returns how many were granted.
func askTogether(t *testing.T, clients []*harness.Conn, granted string, request func(i int) []string) int {
	t.Helper()
	var winners atomic.Int32
	together(len(clients), func(i int) {
		for {
			switch reply, err := clients[i].Do(request(i)...); {
			case err != nil:
				t.Error(err)
			case strings.HasPrefix(string(reply), "-NOQUORUM"):
				continue // a busy machine
			case strings.HasPrefix(string(reply), granted):
				winners.Add(1)
			case reply[0] == '-':
				t.Errorf("got %q", reply)
			}
			return
		}
	})
	return int(winners.Load())
}

// A script may give a key the very expiry that the key has, to the millisecond. It is kept for longer then, as if the
// expiry were another one, and is not where the script only looks as if it had set one.
func TestAnExpiryThatIsSetAnewIsTold(t *testing.T) {
	s := startSplit(t)
	type row struct {
		anew bool
		text string
	}
	rows := []row{
		{true, `return redis.call('PEXPIREAT', KEYS[1], ARGV[1])`},
		{true, `return redis.call('expireat', KEYS[1], ARGV[1] / 1000)`},
		{true, `return redis.pcall('SET', KEYS[1], 'v', 'PXAT', ARGV[1])`},
		{true, `return redis.call('SET', KEYS[1], 'v', 'get', 'xx', 'ExAt', ARGV[1] / 1000)`},
		{true, `redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], 'v', 'NX', 'PXAT', ARGV[1])`},
		{true, `return redis.call('GETEX', KEYS[1], 'PXAT', ARGV[1])`},
		{true, `return redis.call('RESTORE', KEYS[1], ARGV[1], redis.call('DUMP', KEYS[1]), 'REPLACE', 'ABSTTL')`},
		{true, `redis.call('PEXPIREAT', KEYS[1], ARGV[1]) redis.call('RENAME', KEYS[1], KEYS[2]) return redis.call('COPY', KEYS[2], KEYS[1])`},
		{true, `redis.call('PEXPIREAT', KEYS[1], ARGV[1]) return redis.call('SET', KEYS[1], 'v', 'KEEPTTL')`},
		{false, `return redis.call('GET', KEYS[1])`},
		{false, `return redis.call('SET', KEYS[1], 'w', 'NX', 'PXAT', ARGV[1])`},
		{false, `return redis.pcall('SET', KEYS[1], 'w', 'NX', 'GET', 'PXAT', ARGV[1])`},
		{false, `return redis.call('SET', KEYS[1], 'EX', 'KEEPTTL')`},
		{false, `return redis.pcall('PEXPIREAT', KEYS[1], ARGV[1], 'GT')`},
		{false, `return redis.call('PEXPIREAT', KEYS[2], ARGV[1])`},
		{false, `return redis.call('GETEX', KEYS[1])`},
		{false, `return redis.pcall('RESTORE', KEYS[1], ARGV[1], redis.call('DUMP', KEYS[1]), 'ABSTTL')`},
		{false, `redis.call('RENAME', KEYS[1], KEYS[2]) return redis.call('RENAMENX', KEYS[2], KEYS[1])`},
	}
	if s.on(0, "SET", "probe", "v", "IFEQ", "w")[0] != '-' {
		rows = append(rows,
			row{true, `return redis.call('SET', KEYS[1], 'v', 'IFEQ', 'v', 'GET', 'PXAT', ARGV[1])`},
			row{false, `return redis.call('SET', KEYS[1], 'v', 'IFEQ', 'px', 'GET', 'PXAT', ARGV[1])`},
			row{false, `return redis.call('SET', KEYS[1], 'v', 'IFEQ', 'px', 'PXAT', ARGV[1])`})
	}
	const ttl = 600_000
	for i, r := range rows {
		key := strconv.Itoa(i)
		ends := (time.Now().UnixMilli()/1000)*1000 + ttl
		for master := range s.masters {
			s.on(master, "SET", key, "v", "PXAT", strconv.FormatInt(ends, 10))
		}
		if _, err := s.client.Do("EVAL", r.text, "2", key, "other:"+key, strconv.FormatInt(ends, 10)); err != nil {
			t.Fatal(err)
		}
		s.settle()
		for master := range s.masters {
			now := time.Now().UnixMilli()
			reply := s.on(master, "PTTL", key)
			left, err := strconv.ParseInt(strings.Trim(reply, ":\r\n"), 10, 64)
			if more := now + left - ends; err != nil || left < 0 || r.anew != (more > ttl/200) {
				t.Errorf("%s: on master %d it is kept for %d ms more: %q, %v", r.text, master, more, reply, err)
			}
		}
	}
}

// A master lacks the lock, and so takes it for a script that other masters refuse. The master puts it back: to WATCH nothing has changed.
func TestWhatAMinorityDidAndPutBackIsNoChangeToWatch(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, harness.Addrs(masters))
	holder, other := dial(t, p.Addr), dial(t, p.Addr)
	allVote(t, holder, masters)
	const take = "local is = redis.call('get', KEYS[1]) if is then return 'held by ' .. is end redis.call('set', KEYS[1], ARGV[1], 'px', 60000) return 'yours'"
	expect(t, holder, "+OK\r\n", "SET", "k", "me", "NX", "PX", "60000")
	if _, err := masters[0].Do(0, "DEL", "k"); err != nil {
		t.Fatal(err)
	}
	expect(t, holder, "+OK\r\n", "WATCH", "k")
	expect(t, holder, "$2\r\nme\r\n", "GET", "k")
	expect(t, other, "$10\r\nheld by me\r\n", "EVAL", take, "1", "k", "you")
	expect(t, holder, "+OK\r\n", "MULTI")
	expect(t, holder, "+QUEUED\r\n", "DEL", "k")
	expect(t, holder, "*1\r\n:1\r\n", "EXEC")
}
