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

// What was swapped for a database that was flushed then could come back, too.
func TestWhatWasSwappedForAFlushedDatabaseLosesItsMark(t *testing.T) {
	for db := range 2 {
		t.Run(fmt.Sprint(db), func(t *testing.T) { swapForAFlushedDatabase(t, db) })
	}
}

func swapForAFlushedDatabase(t *testing.T, db int) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	c := dial(t, proxy.Addr)
	if _, err := c.Do("SELECT", fmt.Sprint(db)); err != nil {
		t.Fatal(err)
	}
	if reply, err := c.Do("SET", "k", "me", "NX", "PX", "60000"); err != nil || string(reply) != "+OK\r\n" {
		t.Fatalf("SET: %q, %v", reply, err)
	}
	exists := func(db int) error {
		reply, err := masters[0].Do(db, "EXISTS", "k")
		if err != nil || string(reply) != ":1\r\n" {
			return fmt.Errorf("the lock in database %d: %q, %v", db, reply, err)
		}
		return nil
	}
	if err := harness.Poll(30*time.Second, func() error { return exists(db) }); err != nil { // it may be the last to vote
		t.Fatal(err)
	}
	both := fmt.Sprintf("redis.call('SWAPDB', %d, %d) redis.call('FLUSHDB') return 1", db, db+1) // one alone would be seen
	if reply, err := masters[0].Do(db, "EVAL", both, "0"); err != nil || string(reply) != ":1\r\n" {
		t.Fatalf("SWAPDB and FLUSHDB: %q, %v", reply, err)
	}
	err := harness.Poll(30*time.Second, func() error {
		is, err := masters[0].Do(db, "EXISTS", "lockproxy:canary", "lockproxy:quarantine")
		if err != nil {
			return err
		}
		was, err := masters[0].Do(db+1, "EXISTS", "lockproxy:canary")
		if err != nil {
			return err
		}
		if string(is) != ":2\r\n" || string(was) != ":0\r\n" {
			return fmt.Errorf("%q marks in the new database, %q in the one before", is, was)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := exists(db + 1); err != nil {
		t.Fatal(err)
	}
}
