package integration

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"lockproxy/integration/harness"
)

// Two proxies hand the same lock over to their own clients first, and still each proxy's clients get their turn, one holder at a time.
func TestClientsOfTwoProxiesShareAHotLock(t *testing.T) {
	const each, rounds = 4, 150 // clients of each proxy; locks of each client
	masters := startMasters(t, 3)
	var (
		group   sync.WaitGroup
		holders atomic.Int64
		mu      sync.Mutex
		order   []int // the proxies of the holders, one after the other
	)
	failed := make(chan error, 2*each)
	client := func(proxy int, c *harness.Conn, token string) error {
		for range rounds {
			reply, err := c.Do("LOCK", "hot", "60000", "TOKEN", token, "WAIT", "60000")
			if err != nil || !strings.Contains(string(reply), token) {
				return fmt.Errorf("LOCK by %s: %q, %w", token, reply, err)
			}
			if n := holders.Add(1); n != 1 {
				return fmt.Errorf("%d holders at once", n)
			}
			mu.Lock()
			order = append(order, proxy)
			mu.Unlock()
			holders.Add(-1)
			if reply, err = c.Do("UNLOCK", "hot", token); err != nil || string(reply) != ":1\r\n" {
				return fmt.Errorf("UNLOCK by %s: %q, %w", token, reply, err)
			}
		}
		return nil
	}
	var clients []*harness.Conn // of one proxy after the other
	for range 2 {
		p := startProxy(t, harness.Addrs(masters))
		allVote(t, dial(t, p.Addr), masters)
		for range each {
			clients = append(clients, dial(t, p.Addr))
		}
	}
	for i, c := range clients {
		group.Go(func() { failed <- client(i/each, c, fmt.Sprint("client ", i)) })
	}
	group.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			t.Error(err)
		}
	}
	changes := 0
	for i, proxy := range order[1:] {
		if proxy != order[i] {
			changes++
		}
	}
	// A proxy keeps a lock for eight hand-overs at most. Clients that had to wait for all of the other proxy's would change once.
	if changes < 10 {
		t.Errorf("the lock changed proxies %d times in %d locks", changes, len(order))
	}
}

// EXISTS of a short value costs a master one command for each key.
func TestExistsOfAShortValueIsOneCommandOnAMaster(t *testing.T) {
	masters := startMasters(t, 3)
	c := dial(t, startProxy(t, harness.Addrs(masters)).Addr)
	allVote(t, c, masters)
	const keys = 50
	exists := []string{"EXISTS"}
	for i := range keys {
		name := fmt.Sprint("k", i)
		exists = append(exists, name)
		expect(t, c, "+OK\r\n", "SET", name, "me", "NX", "PX", "60000")
	}
	direct(t, masters, "CONFIG", "RESETSTAT")
	expect(t, c, fmt.Sprintf(":%d\r\n", keys), exists...)
	for _, m := range masters {
		stats, err := m.Do(0, "INFO", "commandstats")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(stats)) {
			name, calls, _ := strings.Cut(strings.TrimSpace(line), ":calls=")
			switch n, _, _ := strings.Cut(calls, ","); name {
			case "cmdstat_getrange":
				if n != fmt.Sprint(keys) {
					t.Errorf("GETRANGE is called %s times", n)
				}
			case "cmdstat_type", "cmdstat_strlen", "cmdstat_get", "cmdstat_pexpiretime", "cmdstat_exists":
				t.Errorf("%s", line)
			}
		}
	}
}
