package integration

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// noise is what a busy machine may add.
const noise = 15 * time.Second

// durable are masters that forget nothing when they are killed, and so vote again at once.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// A fault is a way to lose a master and to get it back.
type fault struct {
	name string
	hit  func(*harness.Redis) error
	heal func(*harness.Redis) error
}

var (
	killed = fault{"killed",
		func(r *harness.Redis) error { r.Kill(); return nil },
		func(r *harness.Redis) error { return r.Restart() }}
	paused    = fault{"paused", (*harness.Redis).Pause, (*harness.Redis).Resume}
	restarted = fault{"restarted", (*harness.Redis).Restart, func(*harness.Redis) error { return nil }}
)

func apply(t testing.TB, do func(*harness.Redis) error, masters ...*harness.Redis) {
	t.Helper()
	for _, m := range masters {
		if err := do(m); err != nil {
			t.Fatal(err)
		}
	}
}

// allVote waits until a lock taken through the proxy reaches every master.
func allVote(t testing.TB, c *harness.Conn, masters []*harness.Redis) {
	t.Helper()
	n := 0
	eventually(t, progressMax, "all masters vote", func() error {
		n++
		key := fmt.Sprintf("%s:all-vote:%d", t.Name(), n)
		reply, err := c.Do("SET", key, "probe", "NX", "PX", "30000")
		if err != nil || string(reply) != "+OK\r\n" {
			return fmt.Errorf("SET: %q, %v", reply, err)
		}
		defer func() { _, _ = c.Do("EVAL", compareAndDelete, "1", key, "probe") }()
		return harness.Poll(instanceTimeout, func() error { return holdEverywhere(masters, key) })
	})
}

func holdEverywhere(masters []*harness.Redis, key string) error {
	for _, m := range masters {
		if reply, err := m.Do(0, "EXISTS", key); err != nil || string(reply) != ":1\r\n" {
			return fmt.Errorf("EXISTS on %s: %q, %v", m.Addr, reply, err)
		}
	}
	return nil
}

func TestClientsGoOnLockingWhileAnyTwoOfFiveMastersAreLost(t *testing.T) {
	masters := startMasters(t, 5, durable...)
	proxy := startProxy(t, harness.Addrs(masters))
	probe := dial(t, proxy.Addr)
	for _, f := range []fault{killed, paused, restarted} {
		for a := range masters {
			for b := range a {
				t.Run(fmt.Sprintf("%s/%d and %d", f.name, b, a), func(t *testing.T) {
					var err error
					for range 2 { // these masters sync every write: once, the disk may have stalled for all of them
						allVote(t, probe, masters)
						if err = loseTwo(t, f, proxy, masters, masters[b], masters[a]); err == nil {
							return
						}
						t.Log(err)
					}
					t.Error(err)
				})
			}
		}
	}
}

// loseTwo runs a load before, while and after the two are lost, and returns an error if service was lost, too.
func loseTwo(t *testing.T, f fault, proxy *harness.Proxy, masters []*harness.Redis, two ...*harness.Redis) error {
	t.Helper()
	const locks = 80
	l := startLoad(t, 8, proxy.Addr)
	l.progress(t, locks)
	apply(t, f.hit, two...)
	lost := l.progress(t, locks)
	apply(t, f.heal, two...)
	back := l.progress(t, locks)
	l.finish(t, masters...)
	t.Logf("while lost %+v, afterwards %+v, errors %v", lost, back, l.errors())
	// A few requests were under way when the masters went; noise may make a few others late. More is lost service.
	if failed, all := lost.failed+back.failed, lost.granted+back.granted; failed > 16+all/10 {
		return fmt.Errorf("%d errors beside %d locks: %v", failed, all, l.errors())
	}
	return nil
}

func TestWithoutAQuorumClientsAreToldInTimeAndServedAgainSoonAfter(t *testing.T) {
	requireRedis(t)
	for _, f := range []fault{killed, paused} {
		t.Run(f.name, func(t *testing.T) {
			masters := startMasters(t, 5, durable...)
			proxy := startProxy(t, harness.Addrs(masters), "--master-dead-after", "2m") // which is not to be waited for
			c := dial(t, proxy.Addr)
			allVote(t, c, masters)
			expect(t, c, "+OK\r\n", "SET", "held-before", "me", "NX", "PX", "60000")

			apply(t, f.hit, masters[:3]...)
			slowest := demandNoQuorum(t, c, 20)
			t.Logf("slowest NOQUORUM: %v", slowest)
			if slowest > instanceTimeout+noise {
				t.Errorf("a NOQUORUM took %v", slowest)
			}
			eventually(t, cleanMax, "the reachable masters are clean", func() error { return attemptKeysLeft(masters[3:]) })

			apply(t, f.heal, masters[:3]...)
			took := eventually(t, noise, "service is back", func() error {
				reply, err := c.Do("SET", "after", "me", "NX", "PX", "60000")
				if err != nil || string(reply) != "+OK\r\n" {
					return fmt.Errorf("SET: %q, %v", reply, err)
				}
				return nil
			})
			t.Logf("service again %v after the masters", took)
			eventually(t, cleanMax, "what arrived late is undone", func() error { return attemptKeysLeft(masters) })
		})
	}
}

// noQuorum is decided, and said, as soon as three have failed: the two others may not have been heard by then.
var noQuorum = regexp.MustCompile(`^-NOQUORUM [0-2] of 5 masters answered, 3 needed(, and (1 was|2 were) not waited for)?: .+; .+; .+\r\n$`)

// demandNoQuorum makes attempts that must fail, and returns the longest time one took.
func demandNoQuorum(t *testing.T, c *harness.Conn, attempts int) (slowest time.Duration) {
	t.Helper()
	requests := [][]string{
		{"SET", "attempt:%d", "me", "NX", "PX", "60000"},
		{"EVAL", compareAndDelete, "1", "held-before", "me-not-%d"},
		{"GET", "held-before"},
		{"SET", "attempt:plain:%d", "me", "PX", "60000"},
	}
	for i := range attempts {
		request := append([]string{}, requests[i%len(requests)]...)
		for j := range request {
			request[j] = strings.ReplaceAll(request[j], "%d", fmt.Sprint(i))
		}
		start := time.Now()
		reply, err := c.Do(request...)
		slowest = max(slowest, time.Since(start))
		if err != nil || !noQuorum.Match(reply) {
			t.Errorf("%q: %q, %v", request, reply, err)
		}
	}
	return slowest
}

// attemptKeysLeft reports the keys of SET NX attempts. A SET without NX that failed may stay: it has no undo that is
// exact, as it replaced what was there.
func attemptKeysLeft(masters []*harness.Redis) error {
	for _, m := range masters {
		keys, err := m.LockKeys()
		if err != nil {
			return err
		}
		for _, k := range keys {
			if strings.HasPrefix(k, "attempt:") && !strings.HasPrefix(k, "attempt:plain:") {
				return fmt.Errorf("%s on %s", k, m.Addr)
			}
		}
	}
	return nil
}

func TestAMasterThatWakesUpUndoesTheAttemptsItMissed(t *testing.T) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	c := dial(t, proxy.Addr)
	allVote(t, c, masters)
	apply(t, paused.hit, masters[:2]...)
	for i := range 5 {
		reply, err := c.Do("SET", fmt.Sprintf("late:%d", i), "me", "NX", "PX", "60000")
		if err != nil || !strings.HasPrefix(string(reply), "-NOQUORUM ") {
			t.Fatalf("SET: %q, %v", reply, err)
		}
	}
	// The client itself gives up and asks to release, as redsync does; that must not hinder the undo.
	if reply, err := c.Do("EVAL", compareAndDelete, "1", "late:0", "me"); err != nil || reply[0] != '-' {
		t.Fatalf("EVAL: %q, %v", reply, err)
	}
	apply(t, paused.heal, masters[:2]...)
	eventually(t, cleanMax, "the late SETs are undone", func() error { return keysLeft(masters...) })
	for i := range 5 {
		expect(t, c, "+OK\r\n", "SET", fmt.Sprintf("late:%d", i), "you", "NX", "PX", "60000")
	}
}

func TestALockReleasedWhileAMasterRunsItsSETIsReleasedThereToo(t *testing.T) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	c := dial(t, proxy.Addr)
	allVote(t, c, masters)
	apply(t, paused.hit, masters[0])
	expect(t, c, "+OK\r\n", "SET", "released", "me", "NX", "PX", "60000")
	expect(t, c, ":1\r\n", "EVAL", compareAndDelete, "1", "released", "me")
	start := time.Now()
	eventually(t, cleanMax, "the release has run out of time", func() error {
		if time.Since(start) < 2*instanceTimeout {
			return errors.New("not yet")
		}
		return nil
	})
	apply(t, paused.heal, masters[0])
	eventually(t, cleanMax, "the sleeper has released it too", func() error { return keysLeft(masters...) })
}

// Rule 13: no lock depends on what a script cache keeps.
func TestScriptFlushOnAllMastersFailsNoExtensionAndNoRelease(t *testing.T) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	c := dial(t, proxy.Addr)
	allVote(t, c, masters)
	for i := range 100 {
		key := fmt.Sprint("flushed:", i)
		expect(t, c, "+OK\r\n", "SET", key, "me", "NX", "PX", "60000")
		direct(t, masters, "SCRIPT", "FLUSH")
		expect(t, c, ":1\r\n", "EVAL", compareAndExpire, "1", key, "me", "120000")
		direct(t, masters, "SCRIPT", "FLUSH")
		expect(t, c, ":1\r\n", "EVAL", compareAndDelete, "1", key, "me")
	}
	eventually(t, cleanMax, "all are released everywhere", func() error { return keysLeft(masters...) })
}
