package integration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// No client is told a longer TTL than was asked for, however the key got it: masters keep keys for longer, and choose the
// millisecond.
func TestNoLongerTTLIsToldThanWasAskedFor(t *testing.T) {
	t.Run("real masters", func(t *testing.T) {
		s := startSplit(t)
		other := dial(t, startProxy(t, harness.Addrs(s.masters)).Addr)
		slack := int64(0)
		if majorOf(t, s.masters[0]) < 7 { // these do not tell when a key expires
			slack = 25
		}
		toldTTLs(t, s.client, s.client, slack)
		toldTTLs(t, s.client, other, slack)
	})
	t.Run("embedded masters", func(t *testing.T) {
		c := dial(t, startProxy(t, nil).Addr)
		eventually(t, cleanMax, "a quorum can vote", func() error {
			if reply, err := c.Do("SET", "probe", "x", "PX", "60000"); err != nil || string(reply) != "+OK\r\n" {
				return fmt.Errorf("%q, %v", reply, err)
			}
			return nil
		})
		toldTTLs(t, c, c, 0)
	})
}

const (
	askedTTL   = 30_000
	fences     = 1 << 44 // LOCKINFO tells one, too: these are greater than TTLs and times
	extendText = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end`
	hashText   = `redis.call('hset', KEYS[1], ARGV[1], 1) return redis.call('pexpire', KEYS[1], ARGV[2])`
)

// toldTTLs sets keys through one connection and asks through another. It allows for slack ms more.
func toldTTLs(t *testing.T, c, asks *harness.Conn, slack int64) {
	t.Helper()
	ttl := strconv.Itoa(askedTTL)
	ways := map[string][][]string{
		"SET NX":              {{"SET", "@k", "@n", "NX", "PX", ttl}},
		"SET":                 {{"SET", "@k", "@n", "PX", ttl}},
		"LOCK":                {{"LOCK", "@k", ttl}},
		"an extension":        {{"SET", "@k", "@n", "NX", "PX", "10000"}, {"EVAL", extendText, "1", "@k", "@n", ttl}},
		"two extensions":      {{"SET", "@k", "@n", "NX", "PX", "10000"}, {"EVAL", extendText, "1", "@k", "@n", ttl}, {"EVAL", extendText, "1", "@k", "@n", ttl}},
		"EXTEND":              {{"LOCK", "@k", "10000", "TOKEN", "@n"}, {"EXTEND", "@k", "@n", ttl}},
		"PEXPIRE":             {{"SET", "@k", "@n", "NX", "PX", "10000"}, {"PEXPIRE", "@k", ttl}},
		"GETEX":               {{"SET", "@k", "@n", "NX", "PX", "10000"}, {"GETEX", "@k", "PX", ttl}},
		"KEEPTTL":             {{"SET", "@k", "@n", "NX", "PX", ttl}, {"SET", "@k", "another", "KEEPTTL"}},
		"EXEC":                {{"MULTI"}, {"SET", "@k", "@n", "PX", ttl}, {"EXEC"}},
		"a script of its own": {{"EVAL", hashText, "1", "@k", "@n", ttl}},
		"Redisson":            {{"EVAL", redissonLock, "1", "@k", ttl, "@n"}},
	}
	tell := [][]string{{"PTTL", "@k"}, {"LOCKINFO", "@k"}, {"EVAL", "return redis.call('pttl', KEYS[1]) + 0", "1", "@k"}, {"PEXPIRETIME", "@k"}}
	for way, commands := range ways {
		for i := range 12 {
			fill := strings.NewReplacer("@k", fmt.Sprintf("%s:%d:%p", way, i, asks), "@n", fmt.Sprint("token", i))
			do := func(c *harness.Conn, command []string) string {
				words := make([]string, len(command))
				for j, w := range command {
					words[j] = fill.Replace(w)
				}
				reply, err := c.Do(words...)
				if err != nil {
					t.Fatal(err)
				}
				return string(reply)
			}
			for _, command := range commands {
				do(c, command)
			}
			set := time.Now().UnixMilli()
			for _, command := range tell {
				most := askedTTL + slack
				if command[0] == "PEXPIRETIME" {
					most += set
				}
				reply := do(asks, command)
				for _, line := range strings.Split(reply, "\r\n") {
					if n, err := strconv.ParseInt(strings.TrimPrefix(line, ":"), 10, 64); line != "" && line[0] == ':' && err == nil && n > most && n < fences {
						t.Errorf("%s: %q: told %d, which is %d too much", way, command[0], n, n-most)
					}
				}
			}
		}
	}
}
