package integration

import (
	"fmt"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// Clients that ask for locks before all masters are there leave no trace on those that are: with keys, they would not look new,
// init: auto would have nothing to do, and no quorum could vote for ttl_max.
func TestInitAutoIsNotUndoneByClientsThatCannotWait(t *testing.T) {
	servers := startMasters(t, 3)
	relays, addrs := startRelays(t, servers)
	relays[2].Refuse(true)
	c := dialLaunched(t, addrs)
	for i := range 20 {
		reply, err := c.Do("SET", fmt.Sprint("early:", i), "tok", "NX", "PX", "20000")
		if err != nil || !strings.HasPrefix(string(reply), "-NOQUORUM") || !strings.Contains(string(reply), "init: auto waits for all masters") {
			t.Fatalf("%q, %v", reply, err)
		}
	}
	for _, s := range servers {
		if reply, err := s.Do(0, "DBSIZE"); err != nil || string(reply) != ":0\r\n" {
			t.Errorf("keys on %s: %q, %v", s.Addr, reply, err)
		}
	}
	relays[2].Refuse(false)
	untilGranted(t, c, "late")
}

// A master that is away holds up nobody where another one tells that the deployment is not new.
func TestInitAutoDoesNotWaitWhereThereIsNothingToDo(t *testing.T) {
	servers := startMasters(t, 3)
	relays, addrs := startRelays(t, servers)
	untilGranted(t, dialLaunched(t, addrs), "before")
	relays[2].Refuse(true)
	relays[2].Cut()
	untilGranted(t, dialLaunched(t, addrs), "after")
}

// dialLaunched connects to a proxy that was launched, with init: auto, and perhaps cannot grant anything yet.
func dialLaunched(t *testing.T, masters []string) *harness.Conn {
	t.Helper()
	p, err := harness.LaunchProxy(proxyBinary, masters, patient()...)
	if err != nil {
		t.Fatal(err)
	}
	stopAtTheEnd(t, p)
	return dial(t, p.Addr)
}

func untilGranted(t *testing.T, c *harness.Conn, key string) {
	t.Helper()
	eventually(t, gone, "a lock", func() error {
		reply, err := c.Do("SET", key, "tok", "NX", "PX", "20000")
		if err == nil && string(reply) != "+OK\r\n" {
			err = fmt.Errorf("%q", reply)
		}
		return err
	})
}
