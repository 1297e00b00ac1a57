package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// startDurable starts masters that write everything to disk before they answer, with a default user of these rules, and returns how a
// proxy logs in.
func startDurable(t *testing.T, n int, rules string, extra ...string) (all []*harness.Redis, addrs []string) {
	t.Helper()
	acl := filepath.Join(t.TempDir(), "users.acl")
	text := "user default " + rules + "\nuser locks on >opensesame ~* &* +@all\n"
	if err := os.WriteFile(acl, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all = startMasters(t, n, append([]string{"--appendonly", "yes", "--appendfsync", "always", "--aclfile", acl}, extra...)...)
	for _, m := range all {
		addrs = append(addrs, "redis://locks:opensesame@"+m.Addr)
	}
	return all, addrs
}

const hashLock = "if redis.call('exists', KEYS[1]) == 0 then redis.call('hincrby', KEYS[1], ARGV[2], 1) " +
	"redis.call('pexpire', KEYS[1], ARGV[1]) return nil end return redis.call('pttl', KEYS[1])"

// locks are ways to take a lock: what a client is told that gets it. $ is the client's token.
var locks = []struct{ name, request, won string }{
	{"plain", "SET plain $ NX PX 600000", "+OK"},
	{"fenced", "LOCK fenced 600000 TOKEN $", "*6"},
	{"watched", "MULTI|SET watched $ NX PX 600000|SET beside $ PX 600000|EXEC", "*2\r\n+OK"},
}

// take sends what takes a lock, and says whether the client has it.
func take(t *testing.T, c *harness.Conn, request, token, won string) bool {
	t.Helper()
	var reply []byte
	for _, part := range strings.Split(strings.ReplaceAll(request, "$", token), "|") {
		var err error
		if reply, err = c.Do(strings.Fields(part)...); err != nil {
			t.Fatal(err)
		}
	}
	return strings.HasPrefix(string(reply), won)
}

// takeHash is take for a lock that is a hash.
func takeHash(t *testing.T, c *harness.Conn, token string) bool {
	t.Helper()
	reply, err := c.Do("EVAL", hashLock, "1", "hash", "600000", token)
	if err != nil {
		t.Fatal(err)
	}
	return string(reply) == "$-1\r\n"
}

// restartAll kills all masters at once, starts them on what they have on disk, and waits until the proxy has met all of them.
func restartAll(t *testing.T, c *harness.Conn, masters []*harness.Redis) {
	t.Helper()
	connected := func(n int) func() error {
		return func() error {
			reply, err := c.Do("INFO", "lockproxy")
			if want := fmt.Sprintf("masters_connected:%d\r\n", n); err == nil && !strings.Contains(string(reply), want) {
				err = fmt.Errorf("no %q in %s", want, reply)
			}
			return err
		}
	}
	for _, m := range masters {
		m.Kill()
	}
	eventually(t, progressMax, "all masters are gone", connected(0))
	for _, m := range masters {
		if err := m.StartAgain(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, progressMax, "all masters are back", connected(len(masters)))
}

// Before version 8.6, Redis does not load a transaction of its append-only file for which its default user lacks permissions, and a
// script that writes more than once stands there as one.
func TestNoLockIsGrantedTwiceWhereMastersDoNotLoadAll(t *testing.T) {
	for _, c := range []struct {
		rules string
		safe  bool // on every version
	}{
		{"off", false},
		{"off ~* &* +@all", true},
		{"on >secret ~* &* +@all", true},
		{"on nopass ~cache:* &* +@all", false},
		{"on nopass ~* &* +@all -pexpireat -del -hincrby", false},
		{"on nopass ~* &* +@all -hincrby", false},
		{"on nopass ~* &* +@all -set", false},
		{"on nopass ~lockproxy:* &* +@all", false},
	} {
		t.Run(c.rules, func(t *testing.T) {
			masters, addrs := startDurable(t, 3, c.rules)
			proxy := startProxy(t, addrs)
			a, b := dial(t, proxy.Addr), dial(t, proxy.Addr)
			for _, l := range locks {
				if !take(t, a, l.request, "a", l.won) {
					t.Fatalf("%s is not granted", l.name)
				}
			}
			if !takeHash(t, a, "a") {
				t.Fatal("hash is not granted")
			}
			restartAll(t, b, masters)
			if c.safe {
				eventually(t, progressMax, "all masters vote", func() error { return allClean(b, len(masters)) })
			}
			for _, l := range locks {
				if take(t, b, l.request, "b", l.won) {
					t.Errorf("%s is granted a second time", l.name)
				}
			}
			if takeHash(t, b, "b") {
				t.Error("hash is granted a second time")
			}
		})
	}
}
