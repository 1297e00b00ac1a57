package integration

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// Client libraries remember which scripts they have loaded over a connection. When a Redis restarts, its scripts are gone, and so are
// its connections. So the connection of a client that has used the upstream's scripts, its functions or its settings ends with the
// upstream's.
func TestWhoCountsOnTheUpstreamsScriptsNoticesItsRestart(t *testing.T) {
	const text = "return redis.call('INCR',KEYS[1])"
	f := startFront(t)
	for _, c := range []struct {
		name string
		does [][]string
	}{
		{"EVAL", [][]string{{"EVAL", text, "1", "data"}}},
		{"SCRIPT LOAD", [][]string{{"SCRIPT", "LOAD", text}}},
		{"SCRIPT EXISTS", [][]string{{"SCRIPT", "EXISTS", shaOf(text)}}},
		{"EVALSHA in MULTI", [][]string{{"SCRIPT", "LOAD", text}, {"MULTI"}, {"EVALSHA", shaOf(text), "1", "data"}, {"EXEC"}}},
		{"FUNCTION LOAD", [][]string{{"FUNCTION", "LOAD", "REPLACE", "#!lua name=l\nredis.register_function('f', function() return 1 end)"}}},
		{"CONFIG SET", [][]string{{"CONFIG", "SET", "hz", "11"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, locks := dial(t, f.proxy.Addr), dial(t, f.proxy.Addr)
			expect(t, locks, "+OK\r\n", "SET", "lock:"+c.name, "tok", "PX", "60000")
			for _, request := range c.does {
				if reply, err := conn.Do(request...); err != nil || reply[0] == '-' {
					t.Fatalf("%q: %q, %v", request, reply, err)
				}
			}
			if err := f.upstream.Restart(); err != nil {
				t.Fatal(err)
			}
			eventually(t, gone, "the restart is noticed", func() error {
				if reply, err := conn.Do("GET", "data"); err == nil {
					return fmt.Errorf("the client is still there, and gets %q", reply)
				}
				return nil
			})
			expect(t, locks, "$3\r\ntok\r\n", "GET", "lock:"+c.name)
		})
	}
}

// While the upstream is away, lockproxy answers for scripts alone, and the upstream has none of them when it comes back.
func TestWhoLoadedScriptsWhileTheUpstreamWasAwayNoticesItsReturn(t *testing.T) {
	f := startFront(t)
	f.upstream.Kill()
	c := dial(t, f.proxy.Addr)
	const text = "return redis.call('INCR',KEYS[1])"
	expect(t, c, bulkReply(shaOf(text)), "SCRIPT", "LOAD", text)
	reply, err := c.Do("EVALSHA", shaOf(text), "1", "data")
	if err != nil || !strings.HasPrefix(string(reply), "-LOADING ") {
		t.Fatalf("while the upstream is away: %q, %v", reply, err)
	}
	expect(t, c, "+OK\r\n", "SET", "lock:k", "tok", "PX", "60000")
	if err := f.upstream.StartAgain(); err != nil {
		t.Fatal(err)
	}
	eventually(t, gone, "the connection ends", func() error {
		if reply, err := c.Do("EVALSHA", shaOf(text), "1", "data"); err == nil {
			return fmt.Errorf("%q", reply)
		}
		return nil
	})
}

func shaOf(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}
