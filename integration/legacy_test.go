package integration

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// How people locked before there were lock libraries, and how old libraries do, in the bytes that they send.

func TestLegacyLocks(t *testing.T) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	for _, practice := range []struct {
		name  string
		steps string // request → reply, one a line; K is the resource; ≤30 is 30 or a little less
	}{
		{"SETNX and EXPIRE", `
			SETNX K 1 → :1
			EXPIRE K 30 → :1
			SETNX K 1 → :0
			TTL K → ≤30
			DEL K → :1
			SETNX K 1 → :1`},
		{"SETNX with the expiry in the value, and GETSET", `
			SETNX K 1000.5 → :1
			SETNX K 2000.5 → :0
			GET K → $1000.5
			GETSET K 2000.5 → $1000.5
			GETSET K 3000.5 → $2000.5
			GET K → $3000.5
			DEL K → :1
			GETSET K 4000.5 → $-1`},
		{"SET NX EX and DEL without a token", `
			SET K 1 NX EX 30 → +OK
			SET K 1 NX EX 30 → $-1
			DEL K → :1
			DEL K → :0
			SET K 1 NX EX 30 → +OK`},
		{"Jedis 2.9: set(k, v, \"NX\", \"PX\", ms)", `
			SET K uuid NX PX 30000 → +OK
			SET K other NX PX 30000 → $-1
			EVAL "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end" 1 K uuid → :1`},
		{"Jedis 2.9: MULTI, SETNX, EXPIRE", `
			MULTI → +OK
			SETNX K uuid → +QUEUED
			EXPIRE K 30 → +QUEUED
			EXEC → *2 :1 :1
			GET K → $uuid`},
		{"Spring: setIfAbsent and DefaultRedisScript", `
			SET K uuid EX 30 NX → +OK
			SET K other PX 30000 NX → $-1
			EVALSHA @sha 1 K uuid → -NOSCRIPT No matching script. Please use EVAL.
			EVAL "if redis.call('get', KEYS[1]) == ARGV[1] then\n return redis.call('del', KEYS[1])\nelse\n return 0\nend" 1 K uuid → :1
			EXISTS K → :0`},
		{"redis-py 2.10: release by WATCH", `
			SET K token NX PX 30000 → +OK
			WATCH K → +OK
			GET K → $token
			MULTI → +OK
			DEL K → +QUEUED
			EXEC → *1 :1
			EXISTS K → :0`},
		{"redis-py 2.10: a lock that is not ours any more", `
			SET K token NX PX 30000 → +OK
			WATCH K → +OK
			GET K → $token
			SET K theirs → +OK
			MULTI → +OK
			DEL K → +QUEUED
			EXEC → *-1
			GET K → $theirs`},
		{"StackExchange.Redis: LockExtend", `
			SET K token EX 30 NX → +OK
			WATCH K → +OK
			GET K → $token
			MULTI → +OK
			EXPIRE K 60 → +QUEUED
			EXEC → *1 :1
			TTL K → ≤60`},
		{"StackExchange.Redis: LockRelease by a stranger", `
			SET K token EX 30 NX → +OK
			WATCH K → +OK
			GET K → $token
			UNWATCH → +OK
			GET K → $token`},
		{"compare-and-set as of Redis 8.4 and Valkey 9", `
			SET K token NX PX 30000 → +OK
			SET K token IFEQ token PX 60000 → +OK
			SET K theirs IFEQ other → $-1
			DELEX K IFEQ other → :0
			DELIFEQ K other → :0
			DELEX K IFEQ token → :1`},
	} {
		t.Run(practice.name, func(t *testing.T) {
			c := dial(t, proxy.Addr)
			for line := range strings.Lines(practice.steps) {
				request, want, found := strings.Cut(strings.TrimSpace(line), " → ")
				if !found {
					continue
				}
				words, _, err := splitWords(request)
				if err != nil {
					t.Fatal(err)
				}
				for i, w := range words {
					switch w {
					case "K":
						words[i] = practice.name
					case "@sha":
						words[i] = strings.Repeat("0", 40)
					}
				}
				reply, err := c.Do(words...)
				if most, isTTL := strings.CutPrefix(want, "≤"); isTTL {
					want = ttlNear(reply, most)
				}
				if got := plain(reply); err != nil || got != want {
					t.Fatalf("%s: got %q, %v, want %q", request, got, err, want)
				}
			}
		})
	}
}

// ttlNear returns the reply if it is so many seconds or, on a busy machine, a little less.
func ttlNear(reply []byte, most string) string {
	got, _ := harness.Int(reply)
	if n, _ := strconv.ParseInt(most, 10, 64); got > n || got < n-20 {
		return ":" + most
	}
	return plain(reply)
}

// plain writes a reply in one line, bulk strings without their length.
func plain(raw []byte) string {
	var parts []string
	lines := strings.Split(strings.TrimSuffix(string(raw), "\r\n"), "\r\n")
	for i := 0; i < len(lines); i++ {
		if lines[i] != "$-1" && strings.HasPrefix(lines[i], "$") && i+1 < len(lines) {
			i++
			parts = append(parts, "$"+lines[i])
			continue
		}
		parts = append(parts, lines[i])
	}
	return strings.Join(parts, " ")
}

// Clients of two proxies take an expired lock from each other by GETSET: nobody gets a value that another got, too.
func TestAnExpiredLockIsTakenByOneGETSETOnly(t *testing.T) {
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d masters", n), func(t *testing.T) {
			masters := startMasters(t, n)
			start := func() *harness.Proxy { return startProxy(t, harness.Addrs(masters), "--instance-timeout", "4s") }
			proxies := []*harness.Proxy{start(), start()}
			expect(t, dial(t, proxies[0].Addr), "+OK\r\n", "SET", "legacy", "start")
			var mu sync.Mutex
			seen := map[string]int{}
			const clients, times = 16, 40
			together(clients, func(i int) {
				c := dial(t, proxies[i%2].Addr)
				for j := range times {
					reply, err := c.Do("GETSET", "legacy", fmt.Sprintf("%d.%d", i, j))
					if old, ok := harness.Bulk(reply); ok && err == nil {
						mu.Lock()
						seen[old]++
						mu.Unlock()
						continue
					}
					t.Errorf("GETSET: %q, %v", reply, err)
				}
			})
			reply, _ := dial(t, proxies[0].Addr).Do("GET", "legacy")
			last, _ := harness.Bulk(reply)
			seen[last]++
			for value, times := range seen {
				if times != 1 {
					t.Errorf("%q was got by %d", value, times)
				}
			}
			if want := 1 + clients*times; len(seen) != want {
				t.Errorf("%d values were seen, want %d: one was lost", len(seen), want)
			}
		})
	}
}

// A counter kept by WATCH, GET, MULTI, SET, EXEC loses no update, with two proxies, and while masters stand still, are
// cut off and come back.
func TestTransactionsLoseNoUpdate(t *testing.T) {
	masters := startMasters(t, 3)
	relays, addrs := startRelays(t, masters)
	proxies := []*harness.Proxy{startProxy(t, addrs), startProxy(t, addrs)}
	expect(t, dial(t, proxies[0].Addr), "+OK\r\n", "SET", "counter", "0")
	var done, doubtful, conflicts atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			c := dial(t, proxies[i%2].Addr)
			for ended := false; !ended; {
				select {
				case <-stop:
					ended = true
				default:
				}
				increment(t, c, &done, &doubtful, &conflicts)
			}
		})
	}
	more := func(what string, count *atomic.Int64, n int64) {
		before := count.Load()
		eventually(t, progressMax, what, func() error {
			if got := count.Load() - before; got < n {
				return fmt.Errorf("%d of %d", got, n)
			}
			return nil
		})
	}
	for round := range 6 {
		relay := relays[round%3]
		more("updates under load", &done, 10)
		switch round % 2 {
		case 0:
			relay.Cut()
		case 1:
			relay.Hold(harness.ToMaster)
			time.Sleep(instanceTimeout * 3 / 2) // how long the fault lasts
			relay.Release(harness.ToMaster)
		}
	}
	more("conflicts", &conflicts, 1)
	close(stop)
	wg.Wait()
	var n int64
	eventually(t, cleanMax, "the counter can be read", func() error {
		reply, err := dial(t, proxies[1].Addr).Do("GET", "counter")
		text, ok := harness.Bulk(reply)
		if err != nil || !ok {
			return fmt.Errorf("%q, %v", reply, err)
		}
		n, err = strconv.ParseInt(text, 10, 64)
		return err
	})
	t.Logf("%d updates, %d whose fate was not told, %d conflicts; the counter is %d", done.Load(), doubtful.Load(), conflicts.Load(), n)
	if n < done.Load() || n > done.Load()+doubtful.Load() {
		t.Errorf("the counter is %d after %d updates and %d doubtful ones", n, done.Load(), doubtful.Load())
	}
}

// increment makes one transaction. Without a quorum it may or may not have taken place.
func increment(t *testing.T, c *harness.Conn, done, doubtful, conflicts *atomic.Int64) {
	watched, err := c.Do("WATCH", "counter")
	if err != nil || string(watched) != "+OK\r\n" {
		return
	}
	reply, _ := c.Do("GET", "counter")
	text, ok := harness.Bulk(reply)
	n, err := strconv.Atoi(text)
	if !ok || err != nil {
		_, _ = c.Do("UNWATCH")
		return
	}
	_, _ = c.Do("MULTI")
	_, _ = c.Do("SET", "counter", strconv.Itoa(n+1))
	reply, err = c.Do("EXEC")
	switch got := string(reply); {
	case err != nil:
		t.Errorf("EXEC: %v", err)
	case got == "*1\r\n+OK\r\n":
		done.Add(1)
	case got == "*-1\r\n":
		conflicts.Add(1)
	case strings.HasPrefix(got, "-NOQUORUM "):
		doubtful.Add(1)
	default:
		t.Errorf("EXEC: %q", got)
	}
}
