package integration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// startFarMasters returns a client of a proxy with its default settings, whose masters are behind relays that answer after a round trip.
func startFarMasters(t *testing.T, roundTrip time.Duration) (*harness.Conn, []*harness.Redis) {
	t.Helper()
	masters := startMasters(t, 3)
	relays, addrs := startRelays(t, masters)
	for _, r := range relays {
		r.Delay(harness.ToMaster, roundTrip/2)
		r.Delay(harness.ToProxy, roundTrip/2)
	}
	proxy, err := harness.StartProxy(proxyBinary, addrs)
	if err != nil {
		t.Fatal(err)
	}
	stopAtTheEnd(t, proxy)
	return dial(t, proxy.Addr), masters
}

// lockEachWay takes locks in each way that clients know, and gives them back. It returns the validity, in ms, that LOCK told of a lock
// of 30 s and of one of 1 s.
func lockEachWay(c *harness.Conn, n int) (validity [2]int64, err error) {
	demand := func(want string, args ...string) {
		if reply, failed := c.Do(args...); err == nil && (failed != nil || !strings.HasPrefix(string(reply), want)) {
			err = fmt.Errorf("%q: %q, %v", args, reply, failed)
		}
	}
	name := func(way string) string { return fmt.Sprintf("%s-%d", way, n) }
	demand("+OK", "SET", name("set"), "me", "NX", "PX", "30000")
	demand(":1", "EVAL", compareAndDelete, "1", name("set"), "me")
	for i, ttl := range []string{"30000", "1000"} {
		reply, failed := c.Do("LOCK", name("lock"), ttl, "TOKEN", "me")
		if _, told, ok := strings.Cut(string(reply), "validity\r\n:"); ok {
			validity[i], _ = strconv.ParseInt(strings.TrimSpace(told), 10, 64)
		} else if err == nil {
			err = fmt.Errorf("LOCK: %q, %v", reply, failed)
		}
		demand(":", "EXTEND", name("lock"), "me", ttl)
		demand(":1", "UNLOCK", name("lock"), "me")
	}
	demand("*6", "LOCK", name("hold"), "1000", "TOKEN", "me", "HOLD")
	demand("$-1", "EVAL", redissonLock, "1", name("redisson"), "30000", "me:1")
	demand("+OK", "WATCH", name("exec"))
	demand("+OK", "MULTI")
	demand("+QUEUED", "SET", name("exec"), "me", "PX", "30000")
	demand("*1\r\n+OK", "EXEC")
	demand(":1", "UNLOCK", name("hold"), "me")
	return validity, err
}

// Masters far away vote with the settings that a proxy has by default: see the table in docs/deploying.md.
func TestMastersThatAreFarAwayLock(t *testing.T) {
	for _, ms := range []time.Duration{1, 5, 25, 50, 80} {
		t.Run(fmt.Sprintf("%d ms", ms), func(t *testing.T) {
			c, _ := startFarMasters(t, ms*time.Millisecond)
			tries := 0
			for n := range 3 {
				eventually(t, progressMax, "each way locks", func() error { // on a busy machine not always at once
					tries++
					validity, err := lockEachWay(c, tries)
					t.Logf("%d: validity of 30 s: %d ms, of 1 s: %d ms; %v", n, validity[0], validity[1], err)
					return err
				})
			}
		})
	}
}

// A master that stands still for a moment, now and then, costs no more than the attempts of that moment.
func TestMastersThatStallNowAndThenLock(t *testing.T) {
	c, masters := startFarMasters(t, time.Millisecond)
	tries := 0
	for range 20 {
		for _, m := range masters {
			if err := m.Pause(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(50 * time.Millisecond) // this is the stall itself
		for _, m := range masters {
			if err := m.Resume(); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, progressMax, "it locks again", func() error {
			tries++
			_, err := lockEachWay(c, tries)
			if err != nil {
				t.Log(err)
			}
			return err
		})
	}
	t.Logf("%d tries for 20 stalls", tries)
}
