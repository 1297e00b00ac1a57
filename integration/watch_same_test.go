package integration

import (
	"strconv"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// A change that leaves value and expiry as they were is a change to WATCH, if it is made through the same proxy.
func TestWatchSeesAChangeThatLeavesEverythingAsItWas(t *testing.T) {
	until := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	add := "redis.call('sadd',KEYS[1],ARGV[1]) redis.call('pexpireat',KEYS[1],'" + until + "') return 1"
	rem := "redis.call('srem',KEYS[1],ARGV[1]) return 1"
	redis := startMasters(t, 1)[0]
	proxy := startProxy(t, harness.Addrs(startMasters(t, 3)), "--ttl-max", "720h")
	set := func(args ...string) []string { return append([]string{"SET", "k"}, args...) }
	for _, c := range []struct {
		name    string
		before  [][]string
		changes [][]string
		null    bool
	}{
		{"SET KEEPTTL there and back", [][]string{set("a", "PX", "60000")}, [][]string{set("b", "KEEPTTL"), set("a", "KEEPTTL")}, true},
		{"SET KEEPTTL of the same", [][]string{set("a", "PX", "60000")}, [][]string{set("a", "KEEPTTL")}, true},
		{"the same SET", [][]string{set("a", "PX", "60000")}, [][]string{set("a", "PX", "60000")}, true},
		{"the same SET PXAT", [][]string{set("a", "PXAT", until)}, [][]string{set("a", "PXAT", until)}, true},
		{"DEL and SET", [][]string{set("a", "PXAT", until)}, [][]string{{"DEL", "k"}, set("a", "PXAT", until)}, true},
		{"SET and DEL", nil, [][]string{set("a", "PX", "60000"), {"DEL", "k"}}, true},
		{"GETSET there and back", [][]string{set("a", "PX", "60000")}, [][]string{set("b", "KEEPTTL", "GET"), set("a", "KEEPTTL", "GET")}, true},
		{"PEXPIREAT to where it is", [][]string{set("a", "PXAT", until)}, [][]string{{"PEXPIREAT", "k", until}}, true},
		{"EXEC there and back", [][]string{set("a", "PX", "60000")}, [][]string{{"MULTI"}, set("b", "KEEPTTL"), {"EXEC"}, {"MULTI"}, set("a", "KEEPTTL"), {"EXEC"}}, true},
		{"a script there and back", [][]string{{"EVAL", add, "1", "k", "x"}}, [][]string{{"EVAL", add, "1", "k", "y"}, {"EVAL", rem, "1", "k", "y"}}, true},
		{"a read", [][]string{set("a", "PX", "60000")}, [][]string{{"GET", "k"}, {"PTTL", "k"}, {"EXISTS", "k"}}, false},
		{"a SET NX that is refused", [][]string{set("a", "PX", "60000")}, [][]string{set("b", "NX", "PX", "60000")}, false},
		{"a DEL of nothing", nil, [][]string{{"DEL", "k"}}, false},
		{"a script that only looks", [][]string{{"EVAL", add, "1", "k", "x"}}, [][]string{{"EVAL", "return redis.call('scard',KEYS[1])", "1", "k"}}, false},
		{"another key", [][]string{set("a", "PX", "60000")}, [][]string{{"SET", "other", "a", "PX", "60000"}}, false},
		{"another database", [][]string{set("a", "PX", "60000")}, [][]string{{"SELECT", "1"}, set("a", "PX", "60000"), {"SELECT", "0"}}, false},
	} {
		for _, addr := range []string{redis.Addr, proxy.Addr} {
			watches, other := dial(t, addr), dial(t, addr)
			do := func(conn *harness.Conn, requests ...[]string) (last string) {
				for _, r := range requests {
					reply, err := conn.Do(r...)
					if err != nil || reply[0] == '-' {
						t.Fatalf("%s: %q: %q, %v", c.name, r, reply, err)
					}
					last = string(reply)
				}
				return last
			}
			do(other, append([][]string{{"DEL", "k"}}, c.before...)...)
			do(watches, []string{"WATCH", "k"})
			do(other, c.changes...)
			got := do(watches, []string{"MULTI"}, []string{"GET", "other"}, []string{"EXEC"})
			if null := got == "*-1\r\n"; null != c.null {
				t.Errorf("%s: EXEC is null: %v at %s, want %v", c.name, null, addr, c.null)
			}
		}
	}
}
