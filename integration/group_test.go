package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// What becomes of real locks is in the metrics of their group, and their names are not.
func TestTheMetricsOfGroupsOfLocks(t *testing.T) {
	o := observe(t, startMasters(t, 3), "--lock-groups", "secret:stock:*=stock,secret:*=rest")
	holder, other := dial(t, o.proxy.Addr), dial(t, o.proxy.Addr)
	expect(t, holder, "+OK\r\n", "SET", "secret:stock:1", "me", "NX", "PX", long)
	for range 3 {
		expect(t, other, "$-1\r\n", "SET", "secret:stock:1", "you", "NX", "PX", long)
	}
	expect(t, other, "$-1\r\n", "LOCK", "secret:stock:1", long, "WAIT", "300")
	expect(t, other, "$-1\r\n", "LOCK", "secret:stock:1", long)

	waits := make(chan error, 1)
	go func() {
		_, err := other.Do("LOCK", "secret:stock:1", long, "TOKEN", "you", "WAIT", "60000")
		waits <- err
	}()
	o.until("lockproxy_waiting", 1, 1)
	expect(t, holder, ":1\r\n", "UNLOCK", "secret:stock:1", "me")
	if err := <-waits; err != nil {
		t.Fatal(err)
	}

	expect(t, holder, "$-1\r\n", "EVAL", redissonLock, "1", "secret:r", "30000", "me:1")
	if reply, err := other.Do("EVAL", redissonLock, "1", "secret:r", "30000", "you:1"); err != nil || reply[0] != ':' {
		t.Fatalf("%q, %v", reply, err)
	}
	expect(t, holder, ":1\r\n", "EVAL", redissonText(t, "6866459238a13a701d42f4971f12d9f3a50e2442"), "3", "secret:r", "ch", "latch", "0", "30000", "me:1", "publish", "17000")
	expect(t, holder, "+OK\r\n", "SET", "of no pattern", "me", "NX", "PX", long)
	expect(t, other, "$-1\r\n", "SET", "of no pattern", "you", "NX", "PX", long)

	want := []string{
		`lockproxy_lock_hold_seconds_count{group="stock"} 1`,
		`lockproxy_lock_hold_seconds_count{group="rest"} 1`,
		`lockproxy_lock_hold_seconds_count{group="other"} 0`,
		`lockproxy_lock_hold_seconds_bucket{group="stock",le="0.262144"} 0`, // the refused wait alone took 300 ms
		`lockproxy_lock_refusals_total{group="stock"} 5`,
		`lockproxy_lock_refusals_total{group="rest"} 1`,
		`lockproxy_lock_refusals_total{group="other"} 1`,
		`lockproxy_lock_wait_seconds_count{group="stock",outcome="granted"} 1`,
		`lockproxy_lock_wait_seconds_count{group="stock",outcome="refused"} 1`,
		`lockproxy_lock_wait_seconds_bucket{group="stock",outcome="refused",le="0.262144"} 0`,
		`lockproxy_lock_wait_seconds_count{group="stock",outcome="failed"} 0`,
	}
	eventually(t, 20*time.Second, "the metrics", func() error {
		live := o.metrics()
		for _, line := range want {
			if !slices.Contains(live, line) {
				return fmt.Errorf("no %s in\n%s", line, strings.Join(slices.DeleteFunc(live, func(is string) bool {
					return !strings.HasPrefix(is, "lockproxy_lock_") || strings.Contains(is, "_bucket")
				}), "\n"))
			}
		}
		if page := strings.Join(live, "\n"); strings.Contains(page, "secret") || strings.Contains(page, "no pattern") {
			return fmt.Errorf("the names of locks are told:\n%s", page)
		}
		return nil
	})
}
