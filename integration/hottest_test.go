package integration

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// The keys that clients contend for are told, by attempts refused and by time waited; a key that nobody contends for is not.
func TestTheHottestKeysAreTold(t *testing.T) {
	proxy := startProxy(t, harness.Addrs(startMasters(t, 3)))
	holder, other := dial(t, proxy.Addr), dial(t, proxy.Addr)
	for _, key := range []string{"warm", "hot,\r\n", "redisson", "free"} {
		expect(t, holder, "+OK\r\n", "SET", key, "me", "NX", "PX", "60000")
	}
	expect(t, other, "$-1\r\n", "SET", "warm", "you", "NX", "PX", "60000")
	for range 3 {
		expect(t, other, ":0\r\n", "SETNX", "hot,\r\n", "you")
	}
	expect(t, holder, ":1\r\n", "DEL", "redisson")
	expect(t, holder, "$-1\r\n", "EVAL", redissonLock, "1", "redisson", "30000", "me:1")
	for range 2 {
		if reply, err := other.Do("EVAL", redissonLock, "1", "redisson", "30000", "you:1"); err != nil || reply[0] != ':' {
			t.Fatalf("%q, %v", reply, err)
		}
	}
	expect(t, other, "$-1\r\n", "LOCK", "warm", "60000", "WAIT", "300")

	info, err := other.Do("INFO", "lockproxy")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`hot_refused0:per_minute=\d\.\d\d,db=0,key="hot,\\r\\n"`, `hot_refused1:per_minute=\d\.\d\d,db=0,key="(warm|redisson)"`,
		`hot_refused2:per_minute=\d\.\d\d,db=0,key="(warm|redisson)"`, `hot_waited0:seconds_per_minute=0\.\d\d,db=0,key="warm"`} {
		if !regexp.MustCompile("\n" + want + "\r\n").Match(info) {
			t.Errorf("%s is not told: %s", want, lines(string(info), "hot_"))
		}
		if told := fmt.Sprintf("hot_refused%d", 3+i); strings.Contains(string(info), told) {
			t.Errorf("%s is told: %s", told, lines(string(info), "hot_"))
		}
	}
}

// lines returns the lines of a text with a prefix.
func lines(text, prefix string) (found []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}
