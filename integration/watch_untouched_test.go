package integration

import (
	"testing"

	"lockproxy/integration/harness"
)

// A transaction, or a script, of somebody else that leaves a watched key alone is no change of that key.
func TestWatchIsNotEndedByWhoeverLeavesTheKeyAlone(t *testing.T) {
	proxy := startProxy(t, harness.Addrs(startMasters(t, 3)))
	watcher, other := dial(t, proxy.Addr), dial(t, proxy.Addr)
	for name, run := range map[string]func(){
		"a transaction whose SET NX of the key is refused": func() {
			expect(t, other, "+OK\r\n", "MULTI")
			expect(t, other, "+QUEUED\r\n", "SET", "k", "other", "NX", "PX", "60000")
			expect(t, other, "+QUEUED\r\n", "SET", "l", "other", "PX", "60000")
			expect(t, other, "*2\r\n$-1\r\n+OK\r\n", "EXEC")
		},
		"a script that changes another of its keys": func() {
			expect(t, other, ":1\r\n", "EVAL", "redis.call('get', KEYS[1]) redis.call('set', KEYS[2], ARGV[1], 'px', 60000) return 1", "2", "k", "l", "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, watcher, "+OK\r\n", "SET", "k", "mine", "PX", "60000")
			expect(t, watcher, "+OK\r\n", "WATCH", "k")
			run()
			expect(t, watcher, "+OK\r\n", "MULTI")
			expect(t, watcher, "+QUEUED\r\n", "DEL", "k")
			expect(t, watcher, "*1\r\n:1\r\n", "EXEC")
		})
	}
}
