package integration

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// redissonUnlock is Redisson's RLock since 3.10.
const redissonUnlock = "if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then return nil;end; " +
	"local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1); " +
	"if (counter > 0) then redis.call('pexpire', KEYS[1], ARGV[2]); return 0; " +
	"else redis.call('del', KEYS[1]); redis.call('publish', KEYS[2], ARGV[1]); return 1; end; return nil;"

// redissonRenew is Redisson's watchdog since 3.44.
const redissonRenew = "local result = {} for i = 1, #KEYS, 1 do if (redis.call('hexists', KEYS[i], ARGV[i + 1]) == 1) then " +
	"redis.call('pexpire', KEYS[i], ARGV[1]); table.insert(result, 1); else table.insert(result, 0); end; end; return result;"

// counted returns the numbers in INFO.
func counted(c *harness.Conn) (map[string]int, error) {
	reply, err := c.Do("INFO", "lockproxy", "clients")
	all := map[string]int{}
	for line := range strings.Lines(string(reply)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if n, err := strconv.Atoi(value); err == nil {
			all[name] = n
		}
	}
	return all, err
}

// Locks are counted alike, whether a command takes them or a script; and what waits, is held and is lost.
func TestINFOCounts(t *testing.T) {
	s := startSplit(t)
	was, err := counted(s.client)
	if err != nil {
		t.Fatal(err)
	}
	began, other, third := was["rounds"], dial(t, s.addr), dial(t, s.addr)
	names := []string{
		"attempts", "acquired", "refused", "released", "extended", "scripts", "scripts_disputed", "blocked_clients", "waiting",
		"held", "held_lost",
	}
	steps := []struct {
		client *harness.Conn
		args   []string
		more   map[string]int // than before
	}{
		{s.client, []string{"SET", "a", "me", "NX", "PX", long}, map[string]int{"attempts": 1, "acquired": 1}},
		{s.client, []string{"SET", "a", "you", "NX", "PX", long}, map[string]int{"attempts": 1, "refused": 1}},
		{s.client, []string{"EXTEND", "a", "me", long}, map[string]int{"extended": 1}},
		{s.client, []string{"UNLOCK", "a", "me"}, map[string]int{"released": 1}},
		{s.client, []string{"EVAL", redissonLock, "1", "b", long, "me"}, map[string]int{"attempts": 1, "acquired": 1, "scripts": 1}},
		{s.client, []string{"EVAL", redissonLock, "1", "b", long, "me"}, map[string]int{"attempts": 1, "acquired": 1, "scripts": 1}},
		{s.client, []string{"EVAL", redissonLock, "1", "b", long, "you"}, map[string]int{"attempts": 1, "refused": 1, "scripts": 1}},
		{s.client, []string{"EVAL", redissonRenew, "1", "b", long, "me"}, map[string]int{"extended": 1, "scripts": 1}},
		{s.client, []string{"EVAL", redissonRenew, "1", "b", long, "you"}, map[string]int{"scripts": 1}},            // none of them is its
		{s.client, []string{"EVAL", redissonUnlock, "2", "b", "ch", "0", long, "me"}, map[string]int{"scripts": 1}}, // held on
		{s.client, []string{"EVAL", redissonUnlock, "2", "b", "ch", "0", long, "me"}, map[string]int{"released": 1, "scripts": 1}},
		{s.client, []string{"LOCK", "c", long, "TOKEN", "me", "HOLD"}, map[string]int{"attempts": 1, "acquired": 1, "held": 1}},
		{other, []string{"LOCK", "c", long, "TOKEN", "you", "WAIT", long}, map[string]int{"blocked_clients": 1, "waiting": 1}},
		{third, []string{"FORCEUNLOCK", "c"}, map[string]int{"held": -1, "held_lost": 1, "blocked_clients": -1, "waiting": -1}},
		{s.client, []string{"LOCK", "e", long, "TOKEN", "me", "HOLD"}, map[string]int{"attempts": 1, "acquired": 1, "held": 1}},
		{s.client, []string{"EVAL", "return 7 + redis.call('strlen', KEYS[1])", "1", "e"}, map[string]int{"scripts": 1}},
		{s.client, []string{"EVAL", "return 7 + redis.call('del', KEYS[1])", "1", "e"}, map[string]int{"scripts": 1, "held": -1}},
		{s.client, []string{"EVAL", "return redis.call('time')[2] .. 'µs'", "1", "d"}, map[string]int{"scripts": 1, "scripts_disputed": 1}},
	}
	for _, step := range steps {
		if err := step.client.Send(harness.Encode(nil, step.args...)); err != nil {
			t.Fatal(err)
		}
		if step.client == s.client {
			if reply, err := s.client.Reply(); err != nil {
				t.Fatalf("%q: %q, %v", step.args, reply, err)
			}
		}
		want := maps.Clone(was)
		for name, n := range step.more {
			want[name] += n
		}
		eventually(t, progressMax, fmt.Sprintf("%.60q", step.args), func() error {
			now, err := counted(s.client)
			if err != nil {
				return err
			}
			was = now
			for _, name := range names {
				_, stated := step.more[name]
				if waits := step.more["waiting"] != 0; (stated || !waits) && now[name] != want[name] { // who waits makes attempts
					return fmt.Errorf("%s: %d, want %d", name, now[name], want[name])
				}
			}
			return nil
		})
	}
	if n := was["rounds"] - began; n < len(steps) {
		t.Errorf("%d rounds for %d commands", n, len(steps))
	}
	if was["round_p50_usec"] == 0 || was["round_p50_usec"] > was["round_p99_usec"] {
		t.Errorf("rounds took %d and %d µs", was["round_p50_usec"], was["round_p99_usec"])
	}
}
