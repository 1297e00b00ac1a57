package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

func TestSigtermDrainsUnderLoad(t *testing.T) {
	requireRedis(t)
	for _, clients := range []int{1, 20} {
		t.Run(fmt.Sprintf("%d clients", clients), func(t *testing.T) {
			masters := startMasters(t, 3)
			proxy := startProxy(t, harness.Addrs(masters))
			allVote(t, dial(t, proxy.Addr), masters)

			var mu sync.Mutex // guards held
			var held []string // what clients were told that they hold
			var running sync.WaitGroup
			for i := range clients {
				running.Go(func() {
					mine := lockUntilClosed(t, proxy.Addr, i)
					mu.Lock()
					defer mu.Unlock()
					held = append(held, mine...)
				})
			}
			eventually(t, progressMax, "the load runs", func() error {
				if keys, err := masters[0].LockKeys(); err != nil || len(keys) < 50*clients {
					return fmt.Errorf("%d keys, %v", len(keys), err)
				}
				return nil
			})
			start := time.Now()
			if err := proxy.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := proxy.Wait(harness.DrainMax); err != nil {
				t.Errorf("the proxy did not end well: %v", err)
			}
			t.Logf("drained in %v", time.Since(start))
			running.Wait()
			slices.Sort(held)
			for _, m := range masters {
				demandHeld(t, m, held)
			}
		})
	}
}

// lockUntilClosed takes one lock after another until the proxy closes the connection, and returns those granted. All
// that the proxy sends must be whole replies.
func lockUntilClosed(t *testing.T, addr string, client int) (held []string) {
	c, err := harness.Dial(addr)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer c.Close()
	for n := 0; ; n++ {
		key := fmt.Sprintf("drain:%d:%d", client, n)
		reply, err := c.Do("SET", key, "me", "NX", "PX", "60000")
		if err != nil {
			return held
		}
		switch {
		case string(reply) == "+OK\r\n":
			held = append(held, key)
		case reply[0] != '-':
			t.Errorf("SET: %q", reply)
		}
	}
}

// demandHeld compares the keys of a master with the locks that clients were told of: a key more is an orphan. One
// key less is allowed per master only where the quorum did not need it, so it is not looked at here.
func demandHeld(t *testing.T, m *harness.Redis, held []string) {
	t.Helper()
	keys, err := m.LockKeys()
	if err != nil {
		t.Fatal(err)
	}
	var orphans []string
	for _, k := range keys {
		if _, found := slices.BinarySearch(held, k); !found {
			orphans = append(orphans, k)
		}
	}
	if len(orphans) > 0 {
		t.Errorf("%s holds %d keys of which no client was told: %v", m.Addr, len(orphans), orphans[:min(5, len(orphans))])
	}
}

func TestASecondSignalEndsTheProxyAtOnce(t *testing.T) {
	masters := startMasters(t, 3)
	proxy, err := harness.StartProxy(proxyBinary, harness.Addrs(masters),
		"--instance-timeout", "1m", "--master-dead-after", "10m", "--shutdown-timeout", "10m")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Kill()
	// A client whose command is never answered makes the drain last.
	var running sync.WaitGroup
	running.Go(func() { lockUntilClosed(t, proxy.Addr, 0) })
	defer running.Wait()
	eventually(t, progressMax, "the client is served", func() error {
		if keysLeft(masters...) == nil {
			return errors.New("no keys yet")
		}
		return nil
	})
	apply(t, paused.hit, masters...)
	if err := proxy.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, progressMax, "the drain has begun", func() error {
		if !strings.Contains(proxy.Output(), "draining") {
			return errors.New("nothing about it in the log")
		}
		return nil
	})
	start := time.Now()
	if err := proxy.Signal(syscall.SIGINT); err != nil { // the same signal again would count as the first for a moment
		t.Fatal(err)
	}
	if err := proxy.Wait(harness.DrainMax); !proxy.Ended() {
		t.Error(err)
	}
	t.Logf("ended after %v", time.Since(start))
}

// miniredis cannot end a script, so that its Close waits for it.
func TestAProxyStopsThoughItsEmbeddedMastersRunAScriptThatNeverEnds(t *testing.T) {
	proxy, err := harness.StartProxy(proxyBinary, nil, "--shutdown-timeout", "300ms")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Kill()
	if reply, err := dial(t, proxy.Addr).Do("EVAL", "while true do end", "0"); err != nil || !strings.HasPrefix(string(reply), "-NOQUORUM") {
		t.Errorf("got %q, %v", reply, err)
	}
	if err := proxy.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := proxy.Wait(harness.DrainMax); !proxy.Ended() {
		t.Error(err)
	}
}

// idleConnections is what one proxy is to carry with ease, and idleMaxKB what one connection may cost. The target is
// 25 KB. A binary with the race detector in it needs a multiple, so that this one has none.
const (
	idleConnections = 10_000
	idleMaxKB       = 30
)

func TestTenThousandIdleConnectionsAreCheap(t *testing.T) {
	requireRedis(t)
	connections, err := harness.RoomFor(idleConnections)
	if err != nil {
		t.Fatal(err)
	}
	masters := startMasters(t, 3)
	bin, err := harness.BuildPlainProxy(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	proxy := startBinary(t, bin, harness.Addrs(masters), "--max-clients", fmt.Sprint(connections+100))
	probe := dial(t, proxy.Addr)
	allVote(t, probe, masters)
	if _, err := proxy.MemoryKB(); err != nil {
		missing(t, "LOCKPROXY_REQUIRE_PROC", "the memory of a process cannot be read here: %v", err)
	}
	conns, perConnection, err := proxy.IdleCost(connections)
	defer harness.CloseAll(conns)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d idle connections: %.1f KB each", connections, perConnection)
	if perConnection > idleMaxKB {
		t.Errorf("an idle connection costs %.1f KB", perConnection)
	}
	expect(t, probe, "+OK\r\n", "SET", "beside-them", "me", "NX", "PX", "60000")
	expect(t, conns[len(conns)-1], "$-1\r\n", "SET", "beside-them", "you", "NX", "PX", "60000")
}

// Where the URLs of the masters name a database, clients begin in it: the lock is there, and those who select it share it.
func TestClientsBeginInTheDatabaseOfTheMastersURLs(t *testing.T) {
	masters := startMasters(t, 3)
	var urls []string
	for _, addr := range harness.Addrs(masters) {
		urls = append(urls, "redis://"+addr+"/5")
	}
	c := dial(t, startProxy(t, urls).Addr)
	expect(t, c, "+OK\r\n", "SET", "k", "me", "NX", "PX", "60000")
	eventually(t, cleanMax, "every master has it in that database", func() error {
		for _, m := range masters {
			if reply, err := m.Do(5, "GET", "k"); err != nil || string(reply) != "$2\r\nme\r\n" {
				return fmt.Errorf("%s: %q, %w", m.Addr, reply, err)
			}
		}
		return nil
	})
	expect(t, c, "+OK\r\n", "SELECT", "0")
	expect(t, c, "$-1\r\n", "GET", "k")
	expect(t, c, "+OK\r\n", "SELECT", "5")
	expect(t, c, "$-1\r\n", "SET", "k", "you", "NX", "PX", "60000")
	expect(t, c, "+OK\r\n", "SELECT", "0")
	expect(t, c, "+RESET\r\n", "RESET")
	expect(t, c, "$2\r\nme\r\n", "GET", "k")
}

func TestTheLogSaysWhenAMasterIsLostAndWhenItIsBack(t *testing.T) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	allVote(t, dial(t, proxy.Addr), masters)
	direct(t, masters[:1], "CLIENT", "KILL", "TYPE", "normal")
	lost, back := `msg="no connection" master=`+masters[0].Addr, `msg=connected master=`+masters[0].Addr
	eventually(t, progressMax, "the log", func() error {
		if _, after, found := strings.Cut(proxy.Output(), lost); !found || !strings.Contains(after, back) {
			return fmt.Errorf("no %s, or no %s after it", lost, back)
		}
		return nil
	})
}

func TestAMasterWhoseMemoryIsFullIsNamedWithItsError(t *testing.T) {
	masters := startMasters(t, 3)
	c := dial(t, startProxy(t, harness.Addrs(masters)).Addr)
	allVote(t, c, masters)
	direct(t, masters, "CONFIG", "SET", "maxmemory", "1")
	const want = " has no horizon: answered OOM "
	eventually(t, progressMax, "the masters' error", func() error {
		reply, err := c.Do("SET", "k", "me", "NX", "PX", "600000")
		if err != nil || !strings.HasPrefix(string(reply), "-NOQUORUM ") || !strings.Contains(string(reply), want) {
			return fmt.Errorf("%q, %v", reply, err)
		}
		return nil
	})
}
