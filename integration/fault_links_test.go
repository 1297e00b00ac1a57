package integration

import (
	"fmt"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// startRelays puts a relay in front of each master.
func startRelays(t testing.TB, masters []*harness.Redis) (relays []*harness.Relay, addrs []string) {
	t.Helper()
	for _, m := range masters {
		r, err := harness.StartRelay(m.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Stop)
		relays, addrs = append(relays, r), append(addrs, r.Addr)
	}
	return relays, addrs
}

// demandRefusal makes an attempt that must end with NOQUORUM.
func demandRefusal(t testing.TB, c *harness.Conn, key string) {
	t.Helper()
	reply, err := c.Do("SET", key, "me", "NX", "PX", "60000")
	if err != nil || !strings.HasPrefix(string(reply), "-NOQUORUM ") {
		t.Fatalf("SET %s: %q, %v", key, reply, err)
	}
}

func TestASetThatWasStrandedOnABrokenLinkLeavesNoKey(t *testing.T) {
	requireRedis(t)
	for _, deliverFirst := range []bool{true, false} {
		t.Run(fmt.Sprintf("delivered before the next connection: %v", deliverFirst), func(t *testing.T) {
			masters := startMasters(t, 3)
			relays, addrs := startRelays(t, masters)
			proxy := startProxy(t, addrs)
			c := dial(t, proxy.Addr)
			allVote(t, c, masters)

			links := relays[0].Links() + relays[1].Links()
			for _, r := range relays[:2] {
				r.Hold(harness.ToMaster)
				r.Refuse(deliverFirst)
			}
			demandRefusal(t, c, "stranded")
			for _, r := range relays[:2] {
				r.Strand()
			}
			if !deliverFirst {
				eventually(t, cleanMax, "the proxy has connected again beside the old links", func() error {
					if n := relays[0].Links() + relays[1].Links(); n < links+2 {
						return fmt.Errorf("%d links, %d before", n, links)
					}
					return nil
				})
			}
			for _, r := range relays[:2] {
				r.Deliver()
				r.Refuse(false)
			}
			allVote(t, c, masters)
			eventually(t, cleanMax, "the stranded SET left nothing", func() error { return keysLeft(masters...) })
			expect(t, c, "+OK\r\n", "SET", "stranded", "you", "NX", "PX", "60000")
		})
	}
}

func TestLostRepliesCountAsNoVoteAndLeaveNoKey(t *testing.T) {
	masters := startMasters(t, 3)
	relays, addrs := startRelays(t, masters)
	proxy := startProxy(t, addrs)
	c := dial(t, proxy.Addr)
	allVote(t, c, masters)

	relays[0].Hold(harness.ToProxy)
	relays[1].Hold(harness.ToProxy)
	demandRefusal(t, c, "unheard")
	// These links never speak again; the connections that follow must clean up what the lost ones did.
	relays[0].Cut()
	relays[1].Cut()
	relays[0].Release(harness.ToProxy)
	relays[1].Release(harness.ToProxy)
	eventually(t, cleanMax, "what was set without our knowing is undone", func() error { return keysLeft(masters...) })
	allVote(t, c, masters)
}

func TestALockIsFreeThoughOneMasterMissedItsRelease(t *testing.T) {
	masters := startMasters(t, 3)
	relays, addrs := startRelays(t, masters)
	proxy := startProxy(t, addrs)
	c := dial(t, proxy.Addr)
	allVote(t, c, masters)
	expect(t, c, "+OK\r\n", "SET", "released", "me", "NX", "PX", "3000")
	eventually(t, cleanMax, "all hold it", func() error { return holdEverywhere(masters, "released") })

	relays[0].Refuse(true)
	relays[0].Cut()
	expect(t, c, ":1\r\n", "EVAL", compareAndDelete, "1", "released", "me")
	expect(t, c, "$-1\r\n", "GET", "released")
	relays[0].Refuse(false)
	expect(t, c, "+OK\r\n", "SET", "released", "you", "NX", "PX", "60000")
	expect(t, c, ":1\r\n", "EVAL", compareAndDelete, "1", "released", "you")
	eventually(t, cleanMax, "what it kept is gone with its TTL", func() error { return keysLeft(masters...) })
}

// Without that, each would keep the lock for a minute.
func TestALockOfRedissonIsFreeThoughMastersMissedItsUnlocks(t *testing.T) {
	for _, test := range []struct{ name, take, unlock string }{
		{"RLock", redissonLock, redissonUnlock}, {"read lock", readLock, readUnlock},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			requireOneVersion(t, "what DUMP tells")
			masters := startMasters(t, 3)
			relays, addrs := startRelays(t, masters)
			c := dial(t, startProxy(t, addrs).Addr)
			allVote(t, c, masters)
			for missing := range 2 {
				expect(t, c, "$-1\r\n", "EVAL", test.take, "2", "k", "{k}:me:rwlock_timeout", "60000", "me", "me:write")
				eventually(t, cleanMax, "all hold it", func() error { return holdEverywhere(masters, "k") })
				relays[missing].Refuse(true)
				relays[missing].Cut()
				if test.unlock == redissonUnlock {
					expect(t, c, ":1\r\n", "EVAL", test.unlock, "2", "k", "channel", "0", "60000", "me")
				} else {
					expect(t, c, ":1\r\n", "EVAL", test.unlock, "4", "k", "channel", "{k}:me:rwlock_timeout", "{k}", "0", "me")
				}
				relays[missing].Refuse(false)
				eventually(t, cleanMax, "what it kept is gone", func() error { return keysLeft(masters...) })
			}
		})
	}
}

// A reader leaves while another's hold is over on two masters, which have missed its extension, and delete the lock. The third misses
// that, and the other's hold goes on there.
func TestALateUnlockOfAReaderLeavesTheLockToOthers(t *testing.T) {
	requireOneVersion(t, "what DUMP tells")
	masters := startMasters(t, 3)
	relays, addrs := startRelays(t, masters)
	c := dial(t, startProxy(t, addrs).Addr)
	allVote(t, c, masters)
	for _, reader := range []string{"other", "me"} {
		hold := "{k}:" + reader + ":rwlock_timeout"
		expect(t, c, "$-1\r\n", "EVAL", readLock, "2", "k", hold, "60000", reader, reader+":write")
		eventually(t, cleanMax, "all hold it", func() error { return holdEverywhere(masters, hold+":1") })
	}
	direct(t, masters[1:], "DEL", "{k}:other:rwlock_timeout:1")
	relays[0].Refuse(true)
	relays[0].Cut()
	expect(t, c, ":1\r\n", "EVAL", readUnlock, "4", "k", "channel", "{k}:me:rwlock_timeout", "{k}", "0", "me")
	relays[0].Refuse(false)
	ask := func(words ...string) string {
		reply, err := masters[0].Do(0, words...)
		if err != nil {
			t.Fatal(err)
		}
		return string(reply)
	}
	eventually(t, cleanMax, "the caller's hold is over", func() error {
		if got := ask("EXISTS", "{k}:me:rwlock_timeout:1"); got != ":0\r\n" {
			return fmt.Errorf("EXISTS: %q", got)
		}
		return nil
	})
	if got := ask("HEXISTS", "k", "other"); got != ":1\r\n" {
		t.Errorf("the other reader has lost the lock: %q", got)
	}
}

func TestSlowLinksAreNoVotesBeyondTheInstanceTimeout(t *testing.T) {
	masters := startMasters(t, 3)
	relays, addrs := startRelays(t, masters)
	proxy := startProxy(t, addrs, "--grace", "2s") // which is what masters that are far away need
	c := dial(t, proxy.Addr)
	allVote(t, c, masters)

	for _, r := range relays {
		r.Delay(harness.ToMaster, instanceTimeout/5)
	}
	eventually(t, progressMax, "a slow quorum is a quorum", func() error {
		reply, err := c.Do("SET", "slow", "me", "NX", "PX", "60000")
		if err != nil || string(reply) != "+OK\r\n" {
			return fmt.Errorf("SET: %q, %v", reply, err)
		}
		return nil
	})
	expect(t, c, ":1\r\n", "EVAL", compareAndDelete, "1", "slow", "me")
	for _, r := range relays[:2] {
		r.Delay(harness.ToProxy, 3*instanceTimeout)
	}
	demandRefusal(t, c, "too-slow")
	eventually(t, cleanMax, "the late grants are undone", func() error { return keysLeft(masters...) })
}

func TestLinksCutUnderLoadCostNoLockAndLeaveNoKey(t *testing.T) {
	masters := startMasters(t, 5)
	relays, addrs := startRelays(t, masters)
	proxy := startProxy(t, addrs)
	probe := dial(t, proxy.Addr)
	allVote(t, probe, masters)
	l := startLoad(t, 8, proxy.Addr)
	l.progress(t, 50)
	for round := range 12 {
		two := []*harness.Relay{relays[round%5], relays[(round*2+1)%5]}
		for i, r := range two {
			switch (round + i) % 3 {
			case 0:
				r.Cut()
			case 1:
				r.Hold(harness.ToMaster)
			case 2:
				r.Hold(harness.ToProxy)
			}
		}
		l.progress(t, 40)
		for _, r := range two {
			r.Strand()
			r.Release(harness.ToProxy)
		}
		l.progress(t, 40)
		for _, r := range two {
			r.Deliver()
		}
		allVote(t, probe, masters)
	}
	l.finish(t, masters...)
	t.Logf("%+v, errors %v", l.now(), l.errors())
}

func TestTwoProxiesExcludeEachOther(t *testing.T) {
	masters := startMasters(t, 3)
	a, b := startProxy(t, harness.Addrs(masters)), startProxy(t, harness.Addrs(masters))
	ca, cb := dial(t, a.Addr), dial(t, b.Addr)
	allVote(t, ca, masters)
	allVote(t, cb, masters)
	expect(t, ca, "+OK\r\n", "SET", "one", "a", "NX", "PX", "60000")
	expect(t, cb, "$-1\r\n", "SET", "one", "b", "NX", "PX", "60000")
	expect(t, cb, "$1\r\na\r\n", "GET", "one")
	expect(t, cb, ":0\r\n", "EVAL", compareAndDelete, "1", "one", "b")
	expect(t, cb, ":1\r\n", "EVAL", compareAndDelete, "1", "one", "a") // whoever knows the token may release
	expect(t, cb, "+OK\r\n", "SET", "one", "b", "NX", "PX", "60000")
	expect(t, ca, ":1\r\n", "DEL", "one")

	l := startLoad(t, 10, a.Addr, b.Addr)
	l.progress(t, 2000)
	l.finish(t, masters...)
	got := l.now()
	t.Logf("%+v, errors %v", got, l.errors())
	if got.refused == 0 {
		t.Error("the clients never met: nothing was contended")
	}
}

func TestAnAttemptWhoseClientIsGoneIsUndone(t *testing.T) {
	masters := startMasters(t, 3)
	relays, addrs := startRelays(t, masters)
	proxy := startProxy(t, addrs)
	probe := dial(t, proxy.Addr)
	allVote(t, probe, masters)
	for _, r := range relays { // time for the client to go before its reply is known
		r.Delay(harness.ToProxy, instanceTimeout/5)
	}
	together(10, func(i int) {
		c, err := harness.Dial(proxy.Addr)
		if err == nil {
			err = c.Send(harness.Encode(nil, "SET", fmt.Sprintf("abandoned:%d", i), "me", "NX", "PX", "60000"))
		}
		if err != nil {
			t.Error(err)
			return
		}
		_ = c.Close()
	})
	// The links carry messages in order and a read of each resource: when these are answered, the attempts have run.
	for i := range 10 {
		if _, err := probe.Do("GET", fmt.Sprintf("abandoned:%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range relays {
		r.Delay(harness.ToProxy, 0)
	}
	eventually(t, cleanMax, "nobody holds what nobody was told of", func() error { return keysLeft(masters...) })
}
