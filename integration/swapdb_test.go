package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// What was granted between two SWAPDB is forgotten at the second, whose marks must not be taken for those of the first.
func TestDataThatIsSwappedBackIsNotTakenForWhatWasThere(t *testing.T) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	c := dial(t, proxy.Addr)
	if reply, err := c.Do("SET", "k", "me", "NX", "PX", "60000"); err != nil || string(reply) != "+OK\r\n" {
		t.Fatalf("SET: %q, %v", reply, err)
	}
	mark := func() string {
		reply, err := masters[0].Do(0, "MGET", "lockproxy:canary", "lockproxy:quarantine")
		if err != nil {
			t.Fatal(err)
		}
		return string(reply)
	}
	swap := func(before string) (after string) {
		if reply, err := masters[0].Do(0, "SWAPDB", "0", "1"); err != nil || string(reply) != "+OK\r\n" {
			t.Fatalf("SWAPDB: %q, %v", reply, err)
		}
		err := harness.Poll(30*time.Second, func() error {
			if after = mark(); after == before || !strings.Contains(after, "lockproxy-1 ") || strings.HasSuffix(after, "$-1\r\n") {
				return fmt.Errorf("marks before and after: %q, %q", before, after)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return after
	}
	swap(swap(mark()))
}
