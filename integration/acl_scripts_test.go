package integration

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// rulesFor reads from docs/deploying.md what has to be permitted for one of Redisson's locks besides.
func rulesFor(t *testing.T, lock string) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?m)^  - [^:\n]*`" + lock + "`[^:\n]*: `([^`]+)`$").FindSubmatch(text)
	if found == nil {
		t.Fatalf("docs/deploying.md does not say what %s needs", lock)
	}
	return strings.Fields(string(found[1]))
}

// A permission that docs/deploying.md does not name is an error, at every lock, for whoever follows it.
func TestTheDocumentedUserMayRunRedissonsLocks(t *testing.T) {
	type step struct {
		want string // how the reply begins
		args []string
	}
	fair := func(t *testing.T) (steps []step) {
		for i, f := range fairLocks(t) {
			name := "fair" + string(rune('a'+i))
			steps = append(steps, step{"", f.take(name, "c:1")}, step{"", f.take(name, "c:2")})
		}
		return steps
	}
	for lock, run := range map[string]func(t *testing.T) []step{
		"RLock": func(*testing.T) []step {
			return []step{
				{"$-1", []string{"EVAL", redissonLock, "1", "k", "30000", "c:1"}},
				{"$-1", []string{"EVAL", redissonLock, "1", "k", "30000", "c:1"}},
				{":", []string{"EVAL", redissonLock, "1", "k", "30000", "c:2"}},
				{"*1\r\n:1", []string{"EVAL", redissonRenew, "1", "k", "30000", "c:1"}},
				{":0", []string{"EVAL", redissonUnlock, "2", "k", "channel", "0", "30000", "c:1"}},
				{":1", []string{"EVAL", redissonUnlock, "2", "k", "channel", "0", "30000", "c:1"}},
			}
		},
		"RReadWriteLock": func(*testing.T) []step {
			return []step{
				{"$-1", []string{"EVAL", readLock, "2", "k", "{k}:c:1:rwlock_timeout", "30000", "c:1", "c:1:write"}},
				{"$-1", []string{"EVAL", readLock, "2", "k", "{k}:c:2:rwlock_timeout", "30000", "c:2", "c:2:write"}},
				{":0", []string{"EVAL", readUnlock, "4", "k", "channel", "{k}:c:1:rwlock_timeout", "{k}", "0", "c:1"}},
				{":1", []string{"EVAL", readUnlock, "4", "k", "channel", "{k}:c:2:rwlock_timeout", "{k}", "0", "c:2"}},
			}
		},
		"RFairLock": fair,
	} {
		t.Run(lock, func(t *testing.T) {
			masters, more := startMasters(t, 3), rulesFor(t, lock)
			c := dial(t, startProxy(t, restrict(t, masters, append(documentedRules(t), more...)...)).Addr)
			allVote(t, c, masters)
			steps := run(t)
			for _, s := range steps {
				if reply, err := c.Do(s.args...); err != nil || reply[0] == '-' || !strings.HasPrefix(string(reply), s.want) {
					t.Errorf("%.60q %q: %q, %v, want %q", s.args[1], s.args[3:], reply, err, s.want)
				}
			}
			if got := denials(t, masters); len(got) > 0 {
				t.Errorf("not permitted: %q", got)
			}
			demandNoMore(t, masters[0], lock, more)
		})
	}
}

// demandNoMore checks that each rule was needed. A fair lock calls some commands only when places time out: its texts have them, and
// lockproxy itself settles whose turn it is with two more.
func demandNoMore(t *testing.T, m *harness.Redis, lock string, rules []string) {
	t.Helper()
	if majorOf(t, m) < 7 { // it does not count subcommands
		return
	}
	stats, err := m.Do(0, "INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	calls := string(stats) + "cmdstat_lpush: cmdstat_lrem:"
	if lock == "RFairLock" {
		for _, f := range fairLocks(t) {
			calls += strings.ReplaceAll(strings.ReplaceAll(f.text, "redis.call('", "cmdstat_"), "'", ":")
		}
	}
	for _, rule := range rules {
		if !strings.Contains(calls, "cmdstat_"+strings.TrimPrefix(rule, "+")+":") {
			t.Errorf("%s is not needed", rule)
		}
	}
}
