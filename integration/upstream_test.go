package integration

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// A front is a proxy with an upstream behind it, and a Redis that answers what an application would see without.
type front struct {
	oracle, upstream *harness.Redis
	masters          []*harness.Redis
	proxy            *harness.Proxy
}

// startFront starts them. Locks are what lock:* matches.
func startFront(t testing.TB, flags ...string) *front {
	t.Helper()
	both := startMasters(t, 2)
	f := &front{oracle: both[0], upstream: both[1], masters: startMasters(t, 3)}
	f.proxy = startProxy(t, harness.Addrs(f.masters), append([]string{"--upstream", "redis://" + f.upstream.Addr, "--lock-keys", "lock:*", "--dial-timeout", "10s"}, flags...)...)
	return f
}

// A passage is commands that mean nothing to the proxy: one line each, words apart. A number behind a | says how many
// replies there are, if not one. What depends on time or chance is left out.
var passages = map[string]string{
	"strings": `SET s hello
		GET s
		APPEND s ,world
		STRLEN s
		GETRANGE s 0 4
		SETRANGE s 0 J
		INCR n
		INCRBY n 41
		DECR n
		INCRBYFLOAT f 1.5
		MSET a 1 b 2 c 3
		MGET a b c missing
		MSETNX a 1 d 4
		SET s x NX
		SET s x XX GET
		SETEX e 100 v
		TTL e
		GETDEL a
		GETEX b PERSIST
		SETBIT bits 7 1
		BITCOUNT bits
		BITFIELD bits GET u4 0
		LCS b c
		SUBSTR s 0 0
		GET
		SET s
		INCR s
		EXISTS a b c c
		DEL a b c
		UNLINK s n
		TYPE f
		OBJECT ENCODING f
		OBJECT HELP
		OBJECT NOSUCH f
		DUMP missing
		RENAME missing other
		COPY f f2
		TOUCH f f2
		RANDOMKEY x`,
	"lists": `RPUSH l a b c d
		LPUSH l z
		LRANGE l 0 -1
		LINDEX l 1
		LINSERT l BEFORE b x
		LLEN l
		LPOP l
		RPOP l 2
		LMOVE l m LEFT RIGHT
		RPOPLPUSH m l
		LPOS l b
		LSET l 0 q
		LTRIM l 0 1
		LMPOP 2 m l LEFT
		BLPOP l 1
		BRPOP empty l 0.01
		BLMOVE empty l LEFT LEFT 0.01
		BLMPOP 0.01 1 empty LEFT
		SORT l ALPHA
		SORT l BY w_* GET # STORE sorted
		SORT_RO l ALPHA
		GET l`,
	"hashes, sets": `HSET h a 1 b 2
		HGETALL h
		HMGET h a x
		HINCRBY h a 5
		HDEL h b
		HEXISTS h a
		HKEYS h
		HVALS h
		HSCAN h 0
		HRANDFIELD h 1
		SADD s1 a b c
		SADD s2 b c d
		SINTERCARD 2 s1 s2
		SISMEMBER s1 a
		SMISMEMBER s1 a z
		SCARD s1
		SINTERSTORE s3 s1 s2
		SSCAN one 0
		ZADD z 1 a 2 b 3.5 c
		ZRANGE z 0 -1 WITHSCORES
		ZSCORE z c
		ZRANK z b
		ZUNION 2 z z2 WITHSCORES
		ZUNIONSTORE z3 2 z z2
		ZINTER 1 z WITHSCORES
		ZMSCORE z a nosuch
		ZPOPMIN z
		BZPOPMAX z 1
		ZMPOP 1 z MAX
		GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
		GEODIST g Palermo Catania
		GEOPOS g Palermo
		GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ASC
		PFADD p a b c
		PFCOUNT p
		SET h x KEEPTTL GET`,
	"streams": `XADD st 1-1 f v
		XADD st 2-1 f w
		XLEN st
		XRANGE st - +
		XREAD COUNT 1 STREAMS st 0
		XREAD BLOCK 10 STREAMS st $
		XGROUP CREATE st g 0
		XREADGROUP GROUP g me COUNT 1 STREAMS st >
		XPENDING st g
		XACK st g 1-1
		XINFO GROUPS st
		XTRIM st MAXLEN 1
		XDEL st 2-1`,
	"the server": `PING
		ECHO x
		SCAN 0 MATCH nothing*
		KEYS nothing*
		SET k v
		DBSIZE
		SELECT 3
		SET three 3
		DBSIZE
		MOVE three 4
		SELECT 4
		GET three
		SELECT 0
		GET k
		SWAPDB 0 5
		GET k
		SWAPDB 0 5
		CONFIG SET hz 20
		CONFIG GET hz
		CONFIG SET nosuch 1
		CONFIG GET save
		COMMAND GETKEYS SORT a STORE b
		COMMAND GETKEYS EVAL x 1.0 k
		COMMAND INFO get nosuch
		COMMAND LIST FILTERBY MODULE nosuch
		COMMAND DOCS nosuch get
		COMMAND COUNT x
		COMMAND NOSUCH
		WAIT 0 0
		OBJECT FREQ k
		MEMORY USAGE nosuch
		ACL CAT nosuch
		ACL LIST
		SLOWLOG RESET
		LATENCY RESET
		FUNCTION LIST
		NOSUCH a b
		LPUSHY a
		CLUSTER INFO
		PUBSUB CHANNELS nosuch
		PUBSUB NUMPAT
		PUBSUB NUMSUB x
		PUBLISH nobody hears
		FLUSHDB
		DBSIZE`,
	"scripts": `EVAL return{KEYS[1],ARGV[1],redis.call('SET',KEYS[1],ARGV[1])} 1 k v
		EVAL return{1,2,{3,'four'},false} 0
		EVAL return{err='MY_error'} 0
		EVAL return(redis.call('NOSUCH')) 0
		EVAL nosuch( 0
		EVAL return(1) x
		EVAL return(1) 5 a
		EVALSHA 0000000000000000000000000000000000000000 0
		EVALSHA nosuch 1 k
		SCRIPT LOAD return(redis.call('GET',KEYS[1]))
		EVALSHA f4d8ebc0c5c2cdcb5f1fbb8f4b0c7ed7b1b16e2d 1 k
		SCRIPT LOAD nosuch(
		SCRIPT LOAD return(0x1p4)
		EVALSHA fc14e295c6df0ade919dc45df0069375b366c599 1 k
		SCRIPT EXISTS 0000000000000000000000000000000000000000
		EVAL_RO return(redis.call('GET',KEYS[1])) 1 k
		SCRIPT FLUSH
		SCRIPT NOSUCH
		FUNCTION LOAD NOSUCH
		FCALL nosuch 1 k`,
	"transactions": `MULTI
		SET t 1
		INCR t
		GET t
		EXEC
		MULTI
		PING
		SET t 5
		ECHO x
		EXEC
		MULTI
		EXEC
		MULTI
		PING
		EXEC
		MULTI
		SET t 6
		DISCARD
		GET t
		MULTI
		SET
		SET t 7
		EXEC
		GET t
		MULTI
		NOSUCH
		EXEC
		MULTI
		SET t x
		INCR t
		LPUSH t 1
		EXEC
		MULTI
		MULTI
		SET t 1
		EXEC
		EXEC
		DISCARD
		WATCH t u
		MULTI
		SET t 8
		EXEC
		WATCH t
		SET t 9
		MULTI
		SET t 10
		EXEC
		WATCH t
		SET t 11
		UNWATCH
		MULTI
		SET t 12
		EXEC
		WATCH t
		SET t 13
		MULTI
		EXEC
		WATCH t
		MULTI
		WATCH u
		DISCARD
		MULTI
		RPUSH tl a b
		BLPOP tl 0
		BLPOP nothing 0
		EXEC
		MULTI
		DBSIZE
		CONFIG GET nosuch
		DISCARD
		WATCH t
		EXEC refused
		SET t 14
		MULTI
		GET t
		EXEC`,
	"subscriptions": `SUBSCRIBE a b | 2
		PSUBSCRIBE c* | 1
		UNSUBSCRIBE a b | 2
		PUNSUBSCRIBE | 1
		UNSUBSCRIBE | 1
		SET k v
		LRANGE nosuch 0 -1
		SSUBSCRIBE sh | 1
		SUNSUBSCRIBE sh | 1
		SUBSCRIBE x x | 2
		UNSUBSCRIBE x | 1
		RPUSH lm message a b
		LRANGE lm 0 -1`,
	"subscribed": `WATCH w
		SUBSCRIBE a
		GET
		GET k
		NOSUCH k
		LPUSH l
		XGROUP CREATE x g $ MKSTREAM
		XGROUP CREATE x
		CONFIG GET databases
		CLIENT NOSUCH
		SCRIPT EXISTS 0000000000000000000000000000000000000000
		MULTI
		DISCARD
		UNSUBSCRIBE a
		AUTH default any`,
	"replies off": `CLIENT REPLY SKIP | 0
		SET r 1 | 0
		GET r
		CLIENT REPLY OFF | 0
		SET r 2 | 0
		INCR r | 0
		CLIENT REPLY ON
		GET r
		CLIENT REPLY SKIP | 0
		RESET | 0
		GET r`,
	"clients": `CLIENT GETNAME
		CLIENT SETNAME me
		CLIENT GETNAME
		CLIENT UNBLOCK 0
		CLIENT UNBLOCK 999999999 ERROR
		CLIENT UNBLOCK x
		CLIENT UNBLOCK 0 maybe
		CLIENT KILL ID 999999999
		CLIENT LIST ID 999999999
		CLIENT NO-EVICT ON
		CLIENT CACHING NO x
		CLIENT NOSUCH`,
	"exec while subscribed": `WATCH t
		SUBSCRIBE c
		EXEC
		UNSUBSCRIBE c
		SET t 1
		MULTI
		GET t
		EXEC`,
	"reset": `SELECT 2
		SET k two
		MULTI
		SET k x
		RESET
		GET k
		SELECT 2
		GET k`,
}

// steps parses a passage.
func passageSteps(text string) (requests [][]string, replies []int) {
	for line := range strings.Lines(text) {
		words, n, counted := strings.Cut(strings.TrimSpace(line), "|")
		number := 1
		if counted {
			if _, err := fmt.Sscan(n, &number); err != nil {
				panic(err)
			}
		}
		requests, replies = append(requests, strings.Fields(words)), append(replies, number)
	}
	return requests, replies
}

func TestWhatIsNoLockPassesByteForByte(t *testing.T) {
	f := startFront(t)
	for _, m := range modes {
		for name, text := range passages {
			t.Run(m.name+"/"+name, func(t *testing.T) {
				direct(t, []*harness.Redis{f.oracle, f.upstream}, "FLUSHALL")
				o, p := dial(t, f.oracle.Addr), dial(t, f.proxy.Addr)
				defer func() { _, _ = o.Close(), p.Close() }()
				hello(t, m.hello, o, p)
				requests, replies := passageSteps(text)
				for len(requests) > 0 {
					group := 1
					if m.together {
						group = len(requests)
					}
					var raw []byte
					for _, r := range requests[:group] {
						raw = harness.Encode(raw, r...)
					}
					if err := errors.Join(m.send(o, raw), m.send(p, raw)); err != nil {
						t.Fatal(err)
					}
					for i := range group {
						for range replies[i] {
							if !comparePair(t, name, requests[i], "", o, p, time.Now()) {
								return
							}
						}
					}
					requests, replies = requests[group:], replies[group:]
				}
			})
		}
	}
}

func TestLargeValuesPassUpstream(t *testing.T) {
	f := startFront(t)
	c := dial(t, f.proxy.Addr)
	big := strings.Repeat("0123456789", 1<<20)
	expect(t, c, "+OK\r\n", "SET", "big", big)
	reply, err := c.Do("GET", "big")
	if got, _ := harness.Bulk(reply); err != nil || got != big {
		t.Fatalf("GET: %d bytes, %v", len(got), err)
	}
	many := []string{"RPUSH", "many"}
	for i := range 20_000 {
		many = append(many, fmt.Sprint("element:", i))
	}
	expect(t, c, ":20000\r\n", many...)
	if reply, err = c.Do("LRANGE", "many", "0", "-1"); err != nil || !bytes.HasPrefix(reply, []byte("*20000\r\n")) {
		t.Fatalf("LRANGE: %.40q, %v", reply, err)
	}
	reply, err = c.Do("SET", "lock:big", big, "NX", "PX", "1000")
	if err != nil || !strings.HasPrefix(string(reply), "-ERR a command that lockproxy serves itself is larger") {
		t.Fatalf("a lock's command is bounded all the same: %q, %v", reply, err)
	}
	expect(t, c, ":10485760\r\n", "STRLEN", "big")
	script := "return #'" + strings.Repeat("x", 300<<10) + "'"
	reply, err = c.Do("SCRIPT", "LOAD", script)
	sha, isBulk := harness.Bulk(reply)
	if err != nil || !isBulk {
		t.Fatalf("SCRIPT LOAD: %.80q, %v", reply, err)
	}
	expect(t, c, ":307200\r\n", "EVALSHA", sha, "1", "data")

	// A pipeline whose replies are many times what connections hold while nobody reads them.
	var raw []byte
	for range 50_000 {
		raw = harness.Encode(raw, "GET", "key-without-value-of-some-length")
	}
	for range 5 {
		raw = harness.Encode(raw, "GET", "big")
	}
	if err := c.Send(raw); err != nil {
		t.Fatal(err)
	}
	for i := range 50_005 {
		reply, err := c.Reply()
		if err != nil || i < 50_000 && string(reply) != "$-1\r\n" || i >= 50_000 && len(reply) < len(big) {
			t.Fatalf("reply %d: %.40q, %v", i, reply, err)
		}
	}
}

func TestPipelinesOfLocksAndDataAreAnsweredInOrder(t *testing.T) {
	f := startFront(t)
	c := dial(t, f.proxy.Addr)
	var raw []byte
	var want []string
	add := func(reply string, args ...string) {
		raw, want = harness.Encode(raw, args...), append(want, reply)
	}
	for i := range 200 {
		lock := fmt.Sprint("lock:", i)
		add("+OK\r\n", "SET", lock, "tok", "NX", "PX", "30000")
		add(fmt.Sprintf(":%d\r\n", i+1), "INCR", "counter")
		add("$-1\r\n", "GET", "nothing")
		add("+PONG\r\n", "PING")
		add("$3\r\ntok\r\n", "GET", lock)
		add("+OK\r\n", "SET", "data", fmt.Sprint(i))
		add(":1\r\n", "DEL", lock)
		add("$-1\r\n", "GET", lock)
	}
	if err := c.Send(raw); err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		reply, err := c.Reply()
		if err != nil || string(reply) != w {
			t.Fatalf("reply %d: got %q, %v, want %q", i, reply, err, w)
		}
	}
}

// portalocker's lock belongs to whom NUMSUB shows nobody else.
func TestTheChannelsOfLocksAreCountedWhereTheyAre(t *testing.T) {
	f := startFront(t)
	c := dial(t, f.proxy.Addr)
	for _, channel := range []string{"lock:c", "data"} {
		expect(t, c, fmt.Sprintf("*2\r\n$%d\r\n%s\r\n:0\r\n", len(channel), channel), "PUBSUB", "NUMSUB", channel)
		expect(t, dial(t, f.proxy.Addr), fmt.Sprintf("*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:1\r\n", len(channel), channel), "SUBSCRIBE", channel)
		eventually(t, 10*time.Second, channel+" is counted", func() error {
			reply, err := c.Do("PUBSUB", "NUMSUB", channel)
			if err == nil && !strings.HasSuffix(string(reply), ":1\r\n") {
				err = fmt.Errorf("%q", reply)
			}
			return err
		})
	}
}

// What is a lock for one proxy, and not for the other, could have two holders.
func TestProxiesWithOtherLockKeysSaySo(t *testing.T) {
	f := startFront(t) // lock:*
	other := startProxy(t, harness.Addrs(f.masters), "--upstream", "redis://"+f.upstream.Addr, "--lock-keys", "other:*,lock:*")
	for _, p := range []*harness.Proxy{f.proxy, other} {
		eventually(t, time.Minute, "a line in the log", func() error {
			if out := p.Output(); !strings.Contains(out, "another proxy of this upstream takes other names for locks") {
				return errors.New(out)
			}
			return nil
		})
	}
	for _, said := range []string{`here="lock:* other:*"`, `there=lock:*`} {
		if out := other.Output(); !strings.Contains(out, said) {
			t.Errorf("%s is not in\n%s", said, out)
		}
	}
}

func TestWhatMixesLocksAndDataIsRefused(t *testing.T) {
	f := startFront(t)
	c := dial(t, f.proxy.Addr)
	refused := func(part string, args ...string) {
		t.Helper()
		reply, err := c.Do(args...)
		if err != nil || !strings.HasPrefix(string(reply), "-ERR ") || !strings.Contains(string(reply), part) {
			t.Fatalf("%q: got %q, %v, want an error that says %q", args, reply, err, part)
		}
	}
	const mixed, mixedTransaction = "names a lock, 'lock:1', and another key", "about locks and about other keys"
	refused(mixed, "MGET", "lock:1", "data")
	refused(mixed, "DEL", "data", "lock:1")
	refused(mixed, "EVAL", "return 1", "2", "lock:1", "data")
	refused(mixed, "WATCH", "data", "lock:1")
	refused(mixed, "RENAME", "lock:1", "data")
	refused(mixed, "ZUNIONSTORE", "data", "1", "lock:1")
	refused(mixed, "SORT", "data", "STORE", "lock:1")
	refused(mixed, "PUBSUB", "NUMSUB", "lock:1", "data")
	refused("declares no keys", "EVAL", "return redis.call('INCR', ARGV[1])", "0", "lock:1", "t")
	refused("has it in its text", "EVAL", "return redis.call('INCR', 'lock:1')", "1", "data")
	refused(mixed, "EVAL", "return redis.call('SET', ARGV[1], ARGV[2], 'NX')", "1", "data", "lock:1", "t")
	refused(mixed, "EVAL", "return redis.call('GET', 'data')", "1", "lock:1")
	refused("declares no keys", "FCALL", "f", "0", "lock:1")
	refused("not found", "FCALL", "f", "0", "data")
	refused("unknown subcommand", "SCRIPT", "DEBUG", "YES")
	refused("does not run 'incr' on locks, and lock_keys makes 'lock:1' one; use another name", "INCR", "lock:1")
	refused("is no lock's name", "LOCK", "data", "1000")
	refused("for itself", "SET", "lockproxy:canary", "x")
	refused("for itself", "INCR", "lockproxy:canary")
	expect(t, c, "*0\r\n", "LRANGE", "data", "0", "-1")

	for _, order := range [][2][]string{
		{{"SET", "data", "1"}, {"SET", "lock:1", "t", "NX", "PX", "9000"}},
		{{"SET", "lock:1", "t", "NX", "PX", "9000"}, {"SET", "data", "1"}},
		{{"SET", "lock:1", "t", "NX", "PX", "9000"}, {"INCR", "data"}},
	} {
		expect(t, c, "+OK\r\n", "MULTI")
		expect(t, c, "+QUEUED\r\n", "PING")
		expect(t, c, "+QUEUED\r\n", order[0]...)
		refused(mixedTransaction, order[1]...)
		expect(t, c, "+QUEUED\r\n", "SET", "data", "2")
		expect(t, c, "-EXECABORT Transaction discarded because of previous errors.\r\n", "EXEC")
		expect(t, c, "$-1\r\n", "GET", "data")
		expect(t, c, "$-1\r\n", "GET", "lock:1")
	}
	expect(t, c, "+OK\r\n", "WATCH", "data")
	refused(mixedTransaction, "WATCH", "lock:1")
	expect(t, c, "+OK\r\n", "MULTI")
	refused(mixedTransaction, "SET", "lock:1", "t", "NX", "PX", "9000")
	expect(t, c, "-EXECABORT Transaction discarded because of previous errors.\r\n", "EXEC")
	expect(t, c, "+OK\r\n", "WATCH", "lock:1")
	expect(t, c, "+OK\r\n", "MULTI")
	refused(mixedTransaction, "SET", "data", "1")
	expect(t, c, "-EXECABORT Transaction discarded because of previous errors.\r\n", "EXEC")

	// A transaction on locks alone is what it is without upstream.
	expect(t, c, "+OK\r\n", "MULTI")
	expect(t, c, "+QUEUED\r\n", "SET", "lock:1", "t", "NX", "PX", "9000")
	expect(t, c, "+QUEUED\r\n", "GET", "lock:1")
	expect(t, c, "*2\r\n+OK\r\n$1\r\nt\r\n", "EXEC")
	expect(t, c, "$-1\r\n", "GET", "data")

	// What is wrong with a command in it is told.
	expect(t, c, "+OK\r\n", "MULTI")
	expect(t, c, "+QUEUED\r\n", "GET", "lock:1")
	expect(t, c, "-ERR wrong number of arguments for 'get' command\r\n", "GET")
	expect(t, c, "-ERR wrong number of arguments for 'setnx' command\r\n", "SETNX", "lock:1")
	expect(t, c, "-EXECABORT Transaction discarded because of previous errors.\r\n", "EXEC")
}

func TestAScriptTakesNoLockAtTheUpstream(t *testing.T) {
	f := startFront(t)
	c := dial(t, f.proxy.Addr)
	const literal = "return redis.call('SET', 'lock:1', ARGV[1], 'NX', 'PX', 9000)"
	const release = "if redis.call('GET', 'lock:1') == ARGV[1] then return redis.call('DEL', 'lock:1') else return 0 end"
	reply, err := c.Do("SCRIPT", "LOAD", literal)
	sha, ok := harness.Bulk(reply)
	if err != nil || !ok {
		t.Fatalf("%q, %v", reply, err)
	}
	for _, take := range [][]string{
		{"EVAL", literal, "0", "me"}, {"EVALSHA", sha, "0", "me"}, {"EVAL", "return redis.call('SET', ARGV[1], 'me', 'NX', 'PX', 9000)", "0", "lock:1"},
	} {
		expect(t, c, "+OK\r\n", take...)
		expect(t, c, "$-1\r\n", "SET", "lock:1", "you", "NX", "PX", "9000")
		expect(t, c, ":0\r\n", "EVAL", release, "0", "you")
		expect(t, c, ":1\r\n", "EVAL", release, "0", "me")
	}
	expect(t, dial(t, f.upstream.Addr), ":0\r\n", "DBSIZE")
}

func TestAnApplicationLocksAndWorksOverOneConnection(t *testing.T) {
	f := startFront(t)
	const workers, rounds = 4, 25
	together(workers, func(i int) {
		c, err := harness.DialPatiently(f.proxy.Addr, time.Minute)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		token := fmt.Sprint("worker:", i)
		for done := 0; done < rounds; {
			reply, err := c.Do("SET", "lock:counter", token, "NX", "PX", "20000")
			if err != nil || string(reply) != "+OK\r\n" && string(reply) != "$-1\r\n" {
				t.Errorf("SET: %q, %v", reply, err)
				return
			}
			if string(reply) != "+OK\r\n" {
				continue
			}
			// Read under the lock; write and give back in one go.
			reply, err = c.Do("GET", "counter")
			value, _ := harness.Bulk(reply)
			n := 0
			_, _ = fmt.Sscan(value, &n)
			raw := harness.Encode(nil, "SET", "counter", fmt.Sprint(n+1))
			raw = harness.Encode(raw, "EVAL", compareAndDelete, "1", "lock:counter", token)
			if err = errors.Join(err, c.Send(raw)); err != nil {
				t.Error(err)
				return
			}
			for _, want := range []string{"+OK\r\n", ":1\r\n"} {
				if reply, err := c.Reply(); err != nil || string(reply) != want {
					t.Errorf("got %q, %v, want %q", reply, err, want)
					return
				}
			}
			done++
		}
	})
	expect(t, dial(t, f.upstream.Addr), fmt.Sprintf("$3\r\n%d\r\n", workers*rounds), "GET", "counter")
	eventually(t, 10*time.Second, "the masters have the locks' keys, and no data", func() error { return keysLeft(f.masters...) })
	keys, err := f.upstream.LockKeys()
	if err != nil || strings.Join(keys, " ") != "counter" {
		t.Fatalf("the upstream has %q, %v", keys, err)
	}
}
