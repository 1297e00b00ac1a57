package integration

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// aheadOfClocks lets a master have seen a fence that no clock here shows before the year 2041.
const aheadOfClocks = `
local fence, epoch = string.match(redis.call('GET', 'lockproxy:fence'), '^(%d+) (%d+)$')
redis.call('SET', 'lockproxy:fence', '2251799813685248 ' .. epoch)
return 1`

// takeFenced takes a lock, as soon as it can be had, and returns its token and its fence.
func takeFenced(t *testing.T, proxy *harness.Proxy, key string) (token string, fence int64) {
	t.Helper()
	c := dial(t, proxy.Addr)
	defer c.Close()
	eventually(t, progressMax, "a lock with a fence", func() error {
		reply, err := c.Do("LOCK", key, "1000")
		words := strings.Split(string(reply), "\r\n")
		if err != nil || words[0] != "*6" {
			return fmt.Errorf("LOCK: %q, %w", reply, errors.Join(err))
		}
		token = words[4]
		fence, err = strconv.ParseInt(strings.TrimPrefix(words[7], ":"), 10, 64)
		return err
	})
	return token, fence
}

// A grower takes locks whose fences must grow.
type grower struct {
	t       *testing.T
	proxies []*harness.Proxy
	last    int64
	turns   int
}

// grow takes a lock through one proxy after the other, and asks both about its fence.
func (g *grower) grow(times int) {
	g.t.Helper()
	for range times {
		g.turns++
		proxy := g.proxies[g.turns%len(g.proxies)]
		token, fence := takeFenced(g.t, proxy, "k")
		if fence <= g.last {
			g.t.Fatalf("turn %d: fence %d after %d", g.turns, fence, g.last)
		}
		c := dial(g.t, g.proxies[(g.turns+1)%len(g.proxies)].Addr)
		if g.last > 0 {
			expect(g.t, c, ":0\r\n", "FENCE", "k", strconv.FormatInt(g.last, 10))
		}
		expect(g.t, c, ":1\r\n", "FENCE", "k", strconv.FormatInt(fence, 10))
		expect(g.t, c, ":1\r\n", "UNLOCK", "k", token)
		_ = c.Close()
		g.last = fence
	}
}

// settled waits until every proxy says that every master votes.
func (g *grower) settled(masters []*harness.Redis) {
	g.t.Helper()
	for _, p := range g.proxies {
		c := dial(g.t, p.Addr)
		eventually(g.t, progressMax, "all masters vote", func() error { return allClean(c, len(masters)) })
		_ = c.Close()
	}
}

// mark is what a master carries to show that its data is what it was.
func mark(t *testing.T, m *harness.Redis) string {
	t.Helper()
	canary, err := m.Do(0, "GET", "lockproxy:canary")
	if err != nil {
		t.Fatal(err)
	}
	return string(canary)
}

// Every master forgets, in turn, and so does every proxy: nobody takes a lock meanwhile, and the clocks are far behind.
func TestFencesGrowAfterEveryMasterHasForgotten(t *testing.T) {
	masters, proxies := startPair(t)
	g := &grower{t: t, proxies: proxies}
	g.settled(masters)
	g.grow(4)
	eventually(t, cleanMax, "every master knows the fences", func() error {
		for _, m := range masters {
			if reply, err := m.Do(0, "EVAL", aheadOfClocks, "0"); err != nil || string(reply) != ":1\r\n" {
				return fmt.Errorf("%s: %q, %w", m.Addr, reply, errors.Join(err))
			}
		}
		return nil
	})
	g.grow(2)
	for i, m := range masters {
		forget := (*harness.Redis).Restart
		if i%2 == 1 {
			forget = func(m *harness.Redis) error { _, err := m.Do(0, "FLUSHALL"); return err }
		}
		before := mark(t, m)
		apply(t, forget, m)
		eventually(t, progressMax, "it was in quarantine, and is no more", func() error {
			now := mark(t, m) // first: the new one comes with the quarantine
			if reply, err := m.Do(0, "EXISTS", "lockproxy:quarantine"); err != nil || now == before || now == "$-1\r\n" || string(reply) != ":0\r\n" {
				return fmt.Errorf("it carries %q, quarantine %q, %w", now, reply, errors.Join(err))
			}
			return nil
		})
		g.settled(masters)
	}
	for _, p := range proxies {
		if err := p.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	g.settled(masters)
	g.grow(4)
	if g.last <= 1<<51 {
		t.Errorf("the last fence is %d: it rests on the clock", g.last)
	}
}

func TestFencesGrowWhileMastersForget(t *testing.T) {
	masters, proxies := startPair(t)
	g := &grower{t: t, proxies: proxies}
	g.grow(4)
	for i := range 4 {
		m := masters[i%len(masters)]
		if i%2 == 0 {
			apply(t, (*harness.Redis).Restart, m)
		} else {
			direct(t, []*harness.Redis{m}, "FLUSHALL")
		}
		g.grow(5)
		direct(t, masters, "SCRIPT", "FLUSH") // and no LOCK may fail for it
		g.grow(2)
		g.settled(masters)
		other := masters[(i+1)%len(masters)]
		apply(t, (*harness.Redis).Pause, other)
		g.grow(5)
		apply(t, (*harness.Redis).Resume, other)
		g.settled(masters)
		g.grow(1)
	}
}
