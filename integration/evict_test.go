package integration

import (
	"strconv"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// A master that is told to evict does so with the next command that it runs. No heartbeat comes before that: the attempt's own
// batch has to tell. What is evicted here is the lock alone, so that there is room for the next one, and the marks stay.
func TestAMasterThatWasJustToldToEvictHasNoVote(t *testing.T) {
	for _, policy := range []string{"volatile-ttl", "volatile-lru", "volatile-lfu", "volatile-random"} {
		t.Run(policy, func(t *testing.T) {
			masters := startMasters(t, 3)
			c := dial(t, startProxy(t, harness.Addrs(masters)).Addr)
			allVote(t, c, masters)
			large := strings.Repeat("x", 512<<10)
			if reply, err := c.Do("SET", "k", large, "NX", "PX", "60000"); err != nil || string(reply) != "+OK\r\n" {
				t.Fatalf("a large token: %q, %v", reply, err)
			}
			eventually(t, progressMax, "a lock everywhere", func() error { return holdEverywhere(masters, "k") })
			for _, m := range masters {
				most := strconv.Itoa(usedMemory(t, m) - len(large)/2)
				direct(t, []*harness.Redis{m}, "CONFIG", "SET", "maxmemory-policy", policy)
				direct(t, []*harness.Redis{m}, "CONFIG", "SET", "maxmemory", most)
			}
			reply, err := c.Do("SET", "k", "another", "NX", "PX", "60000")
			if err != nil || string(reply) == "+OK\r\n" {
				t.Fatalf("what another holds: %q, %v", reply, err)
			}
		})
	}
}

// usedMemory returns how many bytes a master uses.
func usedMemory(t *testing.T, m *harness.Redis) int {
	t.Helper()
	reply, err := m.Do(0, "INFO", "memory")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(reply), "used_memory:")
	text, _, _ := strings.Cut(rest, "\r\n")
	used, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return used
}
