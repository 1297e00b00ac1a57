package integration

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// Whether a text compiles, the upstream says; the masters are asked when a lock needs it, and only then have to be there.
func TestMastersCompileWhatTheUpstreamHasLoadedWhenALockNeedsIt(t *testing.T) {
	f := startFront(t)
	c := dial(t, f.proxy.Addr)
	load := func(text string) string {
		t.Helper()
		sum := sha1.Sum([]byte(text)) //nolint:gosec // as Redis names scripts
		sha := hex.EncodeToString(sum[:])
		expect(t, c, "$40\r\n"+sha+"\r\n", "SCRIPT", "LOAD", text)
		return sha
	}
	first := load("return 0x1p4 + #KEYS")
	expect(t, c, ":17\r\n", "EVALSHA", first, "1", "lock:a")
	expect(t, c, ":17\r\n", "EVALSHA", first, "1", "data")
	for _, m := range f.masters[:2] {
		if err := m.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	second := load("return 0x1p5 + #KEYS")
	expect(t, c, ":33\r\n", "EVALSHA", second, "1", "data")
	expect(t, c, "*1\r\n:1\r\n", "SCRIPT", "EXISTS", second)
	reply, err := c.Do("EVALSHA", second, "1", "lock:a")
	if err != nil || !strings.HasPrefix(string(reply), "-NOQUORUM ") {
		t.Errorf("without a quorum: %q, %v", reply, err)
	}
	for _, m := range f.masters[:2] {
		if err := m.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, cleanMax, "the script is compiled when there is a quorum again", func() error {
		if reply, err := c.Do("EVALSHA", second, "1", "lock:a"); err != nil || string(reply) != ":33\r\n" {
			return fmt.Errorf("%q, %v", reply, err)
		}
		return nil
	})
}

// What masters keep of texts that were only compiled is nothing: some never forget.
func TestCompilingLeavesNothingInTheMastersScriptCaches(t *testing.T) {
	masters := startMasters(t, 3)
	c := dial(t, startProxy(t, harness.Addrs(masters)).Addr)
	allVote(t, c, masters)
	cached := func(m *harness.Redis) string {
		reply, err := m.Do(0, "INFO", "memory")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(reply), "number_of_cached_scripts:")
		n, _, _ := strings.Cut(rest, "\r\n")
		return n
	}
	compile := func(n int) {
		t.Helper()
		text := fmt.Sprintf("return {%d, KEYS}", n)
		if reply, err := c.Do("SCRIPT", "LOAD", text); err != nil || reply[0] != '$' {
			t.Fatalf("SCRIPT LOAD: %q, %v", reply, err)
		}
		if reply, err := c.Do("EVAL", text+" x", "0"); err != nil || !strings.HasPrefix(string(reply), "-ERR Error compiling script (new function): user_script:1: '<eof>' expected near 'x'") {
			t.Fatalf("%q, %v", reply, err)
		}
	}
	compile(0)
	allVote(t, c, masters)
	before := make([]string, len(masters))
	for i, m := range masters {
		if before[i] = cached(m); before[i] == "" {
			t.Fatal("the master does not tell how many scripts it has")
		}
	}
	for n := range 50 {
		compile(1 + n)
	}
	allVote(t, c, masters)
	for i, m := range masters {
		if got := cached(m); got != before[i] {
			t.Errorf("master %d keeps %s scripts, and %s before", i+1, got, before[i])
		}
	}
}
