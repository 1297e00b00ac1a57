package integration

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// startPair starts three masters and two proxies.
func startPair(t *testing.T) ([]*harness.Redis, []*harness.Proxy) {
	t.Helper()
	masters := startMasters(t, 3)
	return masters, []*harness.Proxy{startProxy(t, harness.Addrs(masters)), startProxy(t, harness.Addrs(masters))}
}

// attempts returns how many attempts to acquire a proxy has made.
func attempts(t *testing.T, proxy *harness.Proxy) int {
	t.Helper()
	all, err := counted(dial(t, proxy.Addr))
	n, told := all["attempts"]
	if err != nil || !told {
		t.Fatalf("no attempts in %v, %v", all, err)
	}
	return n
}

// refusals returns how many of them were refused.
func refusals(t *testing.T, proxy *harness.Proxy) int {
	t.Helper()
	all, err := counted(dial(t, proxy.Addr))
	if err != nil {
		t.Fatal(err)
	}
	return all["refused"]
}

// bellsHeard returns an error until a proxy listens for the release of the key on every master.
func bellsHeard(key string, masters []*harness.Redis) func() error {
	return proxiesListen("lockproxy:released:"+key, 1, masters...)
}

// wantLock reads the reply of LOCK.
func wantLock(t *testing.T, c *harness.Conn) {
	t.Helper()
	if got, err := c.Reply(); err != nil || !strings.HasPrefix(string(got), "*4\r\n$5\r\ntoken\r\n") && !strings.HasPrefix(string(got), "*6\r\n$5\r\ntoken\r\n") {
		t.Fatalf("LOCK … WAIT: got %q, %v", got, err)
	}
}

// Whatever sets a lock free, through another proxy: a waiter is woken by it, long before the TTL of a minute is over.
func TestAWaiterIsWokenByAReleaseThroughAnyProxy(t *testing.T) {
	masters, proxies := startPair(t)
	holder, waiter := dial(t, proxies[0].Addr), dial(t, proxies[1].Addr)
	releases := map[string][]string{
		"UNLOCK":              {"UNLOCK", "k", "me"},
		"script":              {"EVAL", compareAndDelete, "1", "k", "me"},
		"script by vote":      {"EVAL", deleteAndPublish, "2", "k", "wake", "me"},
		"DEL":                 {"DEL", "k"},
		"PEXPIRE in the past": {"PEXPIRE", "k", "0"},
		"GETDEL":              {"GETDEL", "k"},
	}
	for name, release := range releases {
		t.Run(name, func(t *testing.T) {
			expect(t, holder, "+OK\r\n", "SET", "k", "me", "NX", "PX", "60000")
			before := attempts(t, proxies[1])
			if err := waiter.Send(harness.Encode(nil, "LOCK", "k", "60000", "TOKEN", "you", "WAIT", "60000")); err != nil {
				t.Fatal(err)
			}
			eventually(t, cleanMax, "the proxy listens", bellsHeard("k", masters))
			if reply, err := holder.Do(release...); err != nil || reply[0] == '-' {
				t.Fatalf("%q: %q, %v", release, reply, err)
			}
			wantLock(t, waiter)
			if n := attempts(t, proxies[1]) - before; n > 4 { // refused, refused again after the subscription, and granted
				t.Errorf("%d attempts", n)
			}
			expect(t, waiter, ":1\r\n", "UNLOCK", "k", "you")
			eventually(t, cleanMax, "nobody listens any more", nobodyListens(masters))
		})
	}
}

// What makes a lock end sooner than the waiter was told wakes it, too: it sleeps until then, and no longer.
func TestAWaiterLearnsThatALockIsMadeShorter(t *testing.T) {
	masters, proxies := startPair(t)
	holder := dial(t, proxies[0].Addr)
	for name, shorten := range map[string][]string{
		"EXTEND":         {"EXTEND", "k", "me", "200"},
		"script":         {"EVAL", compareAndExpire, "1", "k", "me", "200"},
		"script by vote": {"EVAL", "redis.call('HGET', 'j', 'x') return redis.call('PEXPIRE', KEYS[1], ARGV[1])", "2", "k", "j", "200"},
		"PEXPIRE":        {"PEXPIRE", "k", "200"},
		"SET XX":         {"SET", "k", "me", "XX", "PX", "200"},
		"GETEX":          {"GETEX", "k", "PX", "200"},
	} {
		t.Run(name, func(t *testing.T) {
			waiter := dial(t, proxies[1].Addr)
			expect(t, holder, "+OK\r\n", "SET", "k", "me", "NX", "PX", "60000")
			if err := waiter.Send(harness.Encode(nil, "LOCK", "k", "60000", "TOKEN", "you", "WAIT", "5000")); err != nil {
				t.Fatal(err)
			}
			eventually(t, cleanMax, "the proxy listens", bellsHeard("k", masters))
			if reply, err := holder.Do(shorten...); err != nil || reply[0] == '-' || reply[0] == ':' && reply[1] == '0' {
				t.Fatalf("%q: %q, %v", shorten, reply, err)
			}
			wantLock(t, waiter)
			expect(t, waiter, ":1\r\n", "UNLOCK", "k", "you")
			eventually(t, cleanMax, "nobody listens any more", nobodyListens(masters))
		})
	}
}

// A change that would have made the lock longer is late, and is put back. A waiter that was told the longer time meanwhile is woken.
func TestAWaiterLearnsThatALockIsNoLongerAfterAll(t *testing.T) {
	masters := startMasters(t, 3)
	relays, addrs := startRelays(t, masters)
	near := startProxy(t, harness.Addrs(masters), "--deployment", "one")
	far := startProxy(t, addrs, "--deployment", "one")
	holder, waiter := dial(t, far.Addr), dial(t, near.Addr)
	for name, lengthen := range map[string][]string{
		"SET XX":         {"SET", "k", "late", "XX", "PX", "60000"},
		"script by vote": {"EVAL", "redis.call('HGET', 'j', 'x') return redis.call('PEXPIRE', KEYS[1], ARGV[1])", "2", "k", "j", "60000", "late"},
	} {
		t.Run(name, func(t *testing.T) {
			allVote(t, holder, masters)
			expect(t, holder, "+OK\r\n", "SET", "k", "me", "NX", "PX", "3000")
			for _, r := range relays {
				r.Catch("late")
			}
			if reply, err := holder.Do(lengthen...); err != nil || !strings.HasPrefix(string(reply), "-NOQUORUM ") {
				t.Fatalf("%q: %q, %v", lengthen, reply, err)
			}
			for i, r := range relays {
				r.Hold(harness.ToProxy)
				r.Deliver()
				eventually(t, cleanMax, "the change is made", func() error {
					reply, err := masters[i].Do(0, "PTTL", "k")
					if ms, ok := harness.Int(reply); err != nil || !ok || ms < 30000 {
						return fmt.Errorf("%q, %v", reply, err)
					}
					return nil
				})
			}
			before := refusals(t, near)
			if err := waiter.Send(harness.Encode(nil, "LOCK", "k", "60000", "TOKEN", "you", "WAIT", "20000")); err != nil {
				t.Fatal(err)
			}
			eventually(t, cleanMax, "it is refused twice: the second time when its proxy listens", func() error {
				if n := refusals(t, near) - before; n < 2 {
					return fmt.Errorf("%d times", n)
				}
				return nil
			})
			for _, r := range relays {
				r.Release(harness.ToProxy)
			}
			wantLock(t, waiter)
			expect(t, waiter, ":1\r\n", "UNLOCK", "k", "you")
			eventually(t, cleanMax, "nobody listens any more", nobodyListens(masters))
		})
	}
}

// A lock that nobody releases is taken when it expires: not before, and without asking again and again.
func TestAWaiterIsWokenByTheExpiry(t *testing.T) {
	_, proxies := startPair(t)
	holder, waiter := dial(t, proxies[0].Addr), dial(t, proxies[1].Addr)
	began := time.Now()
	expect(t, holder, "+OK\r\n", "SET", "k", "me", "NX", "PX", "2000")
	before := attempts(t, proxies[1])
	if err := waiter.Send(harness.Encode(nil, "LOCK", "k", "60000", "WAIT", "60000")); err != nil {
		t.Fatal(err)
	}
	wantLock(t, waiter)
	if d := time.Since(began); d < 2*time.Second {
		t.Errorf("after %v", d)
	}
	if n := attempts(t, proxies[1]) - before; n > 20 {
		t.Errorf("%d attempts", n)
	}
}

// A master lacks the holder's key: attempts are granted there, and undone, which rings for who waits. That wakes nobody for
// long: neither who was granted, nor the first waiter of another proxy, who is then granted himself.
func TestWaitersDoNotWakeEachOtherWhereAMasterLacksTheLock(t *testing.T) {
	masters, proxies := startPair(t)
	holder := dial(t, proxies[0].Addr)
	expect(t, holder, "+OK\r\n", "SET", "k", "me", "NX", "PX", "60000")
	eventually(t, cleanMax, "the third master has it", func() error {
		if got, err := masters[2].Do(0, "DEL", "k"); err != nil || string(got) != ":1\r\n" {
			return fmt.Errorf("%q, %v", got, err)
		}
		return nil
	})
	var waiters []*harness.Conn
	before := attempts(t, proxies[0]) + attempts(t, proxies[1])
	for _, p := range proxies {
		w := dial(t, p.Addr)
		waiters = append(waiters, w)
		if err := w.Send(harness.Encode(nil, "LOCK", "k", "60000", "TOKEN", "you", "WAIT", "1500")); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range waiters {
		if got, err := w.Reply(); err != nil || string(got) != "$-1\r\n" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if n := attempts(t, proxies[0]) + attempts(t, proxies[1]) - before; n > 8 {
		t.Errorf("%d attempts", n)
	}
}

// Master 1 has something of somebody else's, and master 0, which has no room for more connections, is not heard any more. It has
// refused; master 2 answers later than its vote could count.
func TestAWaiterIsWokenWhereTheBellOfOneMasterIsNotHeard(t *testing.T) {
	masters := startMasters(t, 3)
	relays, addrs := startRelays(t, masters)
	near := startProxy(t, harness.Addrs(masters), "--deployment", "one")
	far := startProxy(t, addrs, "--deployment", "one")
	relays[2].Delay(harness.ToProxy, 20*time.Millisecond)
	if got, err := masters[1].Do(0, "SET", "k", "somebody", "PX", "60000"); err != nil || string(got) != "+OK\r\n" {
		t.Fatalf("%q, %v", got, err)
	}
	holder, waiter, master := dial(t, near.Addr), dial(t, far.Addr), dial(t, masters[0].Addr)
	expect(t, holder, "+OK\r\n", "SET", "k", "me", "NX", "PX", "60000")
	if err := waiter.Send(harness.Encode(nil, "LOCK", "k", "60000", "TOKEN", "you", "WAIT", "60000")); err != nil {
		t.Fatal(err)
	}
	eventually(t, cleanMax, "it is refused twice: the second time when its proxy listens", func() error {
		if n := refusals(t, far); n < 2 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	expect(t, master, "+OK\r\n", "CONFIG", "SET", "maxclients", "1")
	expect(t, master, ":1\r\n", "CLIENT", "KILL", "TYPE", "pubsub")
	expect(t, holder, ":1\r\n", "UNLOCK", "k", "me")
	wantLock(t, waiter)
}

func TestAWaitEndsWithNullInTimeAndWithAnErrorAtTheEndOfTheProxy(t *testing.T) {
	masters := startMasters(t, 3)
	proxy, err := harness.StartProxy(proxyBinary, harness.Addrs(masters), patient()...)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Kill()
	holder, waiter := dial(t, proxy.Addr), dial(t, proxy.Addr)
	expect(t, holder, "+OK\r\n", "SET", "k", "me", "NX", "PX", "60000")
	expect(t, waiter, "$-1\r\n", "LOCK", "k", "60000", "WAIT", "100")
	eventually(t, cleanMax, "nobody listens any more", nobodyListens(masters)) // or the next look would see this wait
	if err := waiter.Send(harness.Encode(nil, "LOCK", "k", "60000", "WAIT", "60000")); err != nil {
		t.Fatal(err)
	}
	eventually(t, cleanMax, "it has begun", bellsHeard("k", masters))
	if err := proxy.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got, err := waiter.Reply(); err != nil || string(got) != "-ERR lockproxy is shutting down\r\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := proxy.Wait(harness.DrainMax); err != nil {
		t.Error(err)
	}
}

// Forty clients of two proxies take one lock in turn, each waiting for it, and count under it without any other care.
func TestNoUpdateIsLostUnderALockThatIsWaitedFor(t *testing.T) {
	masters, proxies := startPair(t)
	const clients, turns = 40, 10
	counter := 0
	together(clients, func(i int) {
		c := dial(t, proxies[i%2].Addr)
		for range turns {
			token := fmt.Sprintf("client-%d", i)
			reply, err := c.Do("LOCK", "k", "60000", "TOKEN", token, "WAIT", "60000")
			if err != nil || reply[0] != '*' {
				t.Errorf("LOCK: %q, %v", reply, err)
				return
			}
			n := counter
			time.Sleep(100 * time.Microsecond) // so that others could come between
			counter = n + 1
			want := ":1\r\n"
			for reply, err = c.Do("UNLOCK", "k", token); err == nil && strings.HasPrefix(string(reply), "-NOQUORUM "); {
				want = string(reply[:1]) // a busy machine: it may have been released, or not
				reply, err = c.Do("UNLOCK", "k", token)
			}
			if err != nil || want == ":1\r\n" && string(reply) != want || reply[0] != ':' {
				t.Errorf("UNLOCK: %q, %v", reply, err)
				return
			}
		}
	})
	if counter != clients*turns {
		t.Errorf("%d updates of %d are lost", clients*turns-counter, clients*turns)
	}
	eventually(t, cleanMax, "no key is left", func() error { return keysLeft(masters...) })
}

// A held lock lasts for as long as its connection, and not longer.
func TestAHeldLockLastsAsLongAsItsConnection(t *testing.T) {
	masters, proxies := startPair(t)
	holder, other := dial(t, proxies[0].Addr), dial(t, proxies[1].Addr)
	if err := holder.Send(harness.Encode(nil, "LOCK", "k", "3000", "HOLD")); err != nil {
		t.Fatal(err)
	}
	wantLock(t, holder)
	masters[0].Kill()
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(50 * time.Millisecond) { // twice its TTL, and more
		expect(t, other, "$-1\r\n", "LOCK", "k", "3000")
	}
	if err := other.Send(harness.Encode(nil, "LOCK", "k", "60000", "WAIT", "60000")); err != nil {
		t.Fatal(err)
	}
	_ = holder.Close()
	wantLock(t, other)
}

func TestAHeldLockThatNoQuorumExtendsIsLost(t *testing.T) {
	masters, proxies := startPair(t)
	c := dial(t, proxies[0].Addr)
	if _, err := c.Do("HELLO", "3"); err != nil {
		t.Fatal(err)
	}
	reply, err := c.Do("LOCK", "k", "3000", "HOLD")
	_, fence, ok := strings.Cut(string(reply), "fence\r\n")
	if fence, _, _ = strings.Cut(fence, "\r\n"); err != nil || !ok {
		t.Fatalf("LOCK: %q, %v", reply, err)
	}
	masters[0].Kill()
	masters[1].Kill()
	if got, err := c.Reply(); err != nil || string(got) != ">3\r\n$4\r\nlost\r\n$1\r\nk\r\n"+fence+"\r\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if reply, err := c.Do("GET", "k"); err != nil || !strings.HasPrefix(string(reply), "-LOST ") {
		t.Errorf("GET: %q, %v", reply, err)
	}
}

// A release that no bell has told of, because the waiter's proxy was cut off from all masters, is found when it is there
// again, long before the TTL of a minute is over.
func TestAWaiterFindsOutWhatItsProxyHasNotHeard(t *testing.T) {
	masters := startMasters(t, 3)
	relays, addrs := startRelays(t, masters)
	near := startProxy(t, harness.Addrs(masters), "--deployment", "one")
	far := startProxy(t, addrs, "--deployment", "one")
	holder, waiter := dial(t, near.Addr), dial(t, far.Addr)
	expect(t, holder, "+OK\r\n", "SET", "k", "me", "NX", "PX", "60000")
	if err := waiter.Send(harness.Encode(nil, "LOCK", "k", "60000", "TOKEN", "you", "WAIT", "60000")); err != nil {
		t.Fatal(err)
	}
	eventually(t, cleanMax, "the proxy listens", bellsHeard("k", masters))
	for _, r := range relays {
		r.Refuse(true)
		r.Cut()
	}
	expect(t, holder, ":1\r\n", "UNLOCK", "k", "me")
	for _, r := range relays {
		r.Refuse(false)
	}
	wantLock(t, waiter)
	expect(t, waiter, ":1\r\n", "UNLOCK", "k", "you")
}

// ShedLock unlocks so, if a job has ended just before its lockAtLeastFor: no validity can be left of such a TTL, and none is asked for.
func TestALockIsMadeSoShortThatNoValidityIsLeft(t *testing.T) {
	_, proxies := startPair(t)
	holder := dial(t, proxies[0].Addr)
	for _, test := range []struct {
		want    string
		shorten []string
	}{
		{"+OK\r\n", []string{"SET", "k", "me", "XX", "PX", "1"}},
		{"+OK\r\n", []string{"SET", "k", "me", "IFEQ", "me", "PX", "1"}},
		{":1\r\n", []string{"PEXPIRE", "k", "2"}},
		{":1\r\n", []string{"EVAL", compareAndExpire, "1", "k", "me", "2"}},
		{":1\r\n", []string{"EVAL", "redis.call('HGET', 'j', 'x') return redis.call('PEXPIRE', KEYS[1], ARGV[1])", "2", "k", "j", "2"}},
	} {
		expect(t, holder, "+OK\r\n", "SET", "k", "me", "NX", "PX", "60000")
		expect(t, holder, test.want, test.shorten...)
		eventually(t, cleanMax, "the lock is over", func() error {
			if reply, err := holder.Do("EXISTS", "k"); err != nil || string(reply) != ":0\r\n" {
				return fmt.Errorf("%q, %w", reply, err)
			}
			return nil
		})
	}
	expect(t, holder, "+OK\r\n", "SET", "k", "me", "NX", "PX", "60000")
	expect(t, holder, "$2\r\nme\r\n", "GETEX", "k", "PX", "1")
}

// Whoever is told that it has taken a lock counts on it.
func TestALockOfWhichNoValidityCanBeLeftIsNotTaken(t *testing.T) {
	_, proxies := startPair(t)
	c := dial(t, proxies[0].Addr)
	const tooShort = "-ERR TTL is too short: less than 1 ms of validity would be left; ask for a longer one\r\n"
	for _, test := range []struct {
		want string
		take []string
	}{
		{"$-1\r\n", []string{"SET", "k", "me", "NX", "PX", "2"}},
		{"$0\r\n\r\n", []string{"SET", "k", "me", "NX", "PX", "2", "GET"}},
		{tooShort, []string{"SET", "k", "me", "IFNE", "you", "PX", "2"}},
		{tooShort, []string{"EVAL", "redis.call('HGET', 'j', 'x') return redis.call('SET', KEYS[1], ARGV[1], 'PX', 3)", "2", "k", "j", "me"}},
		{"$-1\r\n", []string{"SET", "k", "me", "PX", "2", "GET"}}, // it takes no lock: it replaces whatever is there
	} {
		expect(t, c, test.want, test.take...)
	}
	expect(t, c, "+OK\r\n", "MULTI")
	expect(t, c, "+QUEUED\r\n", "SET", "j", "me", "NX", "PX", "2")
	expect(t, c, tooShort, "EXEC")
	expect(t, c, ":0\r\n", "EXISTS", "j")
}
