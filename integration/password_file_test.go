package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// Passwords whose files are renewed are those of the next connection to masters and upstream.
func TestPasswordFilesAreFollowed(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	servers, up := startMasters(t, 3), startMasters(t, 1)
	all := append(up, servers...)
	for _, name := range []string{"masters", "upstream"} {
		put(name, "old")
	}
	direct(t, all, "CONFIG", "SET", "requirepass", "old")
	p, err := harness.LaunchProxy(proxyBinary, harness.Addrs(servers), patient("--master-password-file", path("masters"),
		"--upstream", "redis://"+up[0].Addr, "--upstream-password-file", path("upstream"),
		"--lock-keys", "lock:*")...)
	if err != nil {
		t.Fatal(err)
	}
	stopAtTheEnd(t, p)
	served := func() {
		t.Helper()
		c := dial(t, p.Addr)
		untilGranted(t, c, "lock:"+t.Name())
		expect(t, c, ":1\r\n", "DEL", "lock:"+t.Name())
		eventually(t, gone, "the upstream", func() error {
			reply, err := c.Do("SET", "data", "x")
			if err == nil && string(reply) != "+OK\r\n" {
				err = fmt.Errorf("%q", reply)
			}
			return err
		})
	}
	served()
	for _, s := range all {
		renewPassword(t, s, "old", "new")
	}
	for _, name := range []string{"masters", "upstream"} {
		put(name, "new\n")
	}
	served()
	if out := p.Output(); !strings.Contains(out, `msg="files were renewed" of=passwords`) {
		t.Errorf("the log does not say that passwords were renewed:\n%s", out)
	}
}

// renewPassword changes a server's password, and ends its connections.
func renewPassword(t *testing.T, s *harness.Redis, from, to string) {
	t.Helper()
	c := dial(t, s.Addr)
	expect(t, c, "+OK\r\n", "AUTH", from)
	expect(t, c, "+OK\r\n", "CONFIG", "SET", "requirepass", to)
	for _, kind := range []string{"normal", "pubsub"} {
		if reply, err := c.Do("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"); err != nil || reply[0] == '-' {
			t.Fatalf("%q, %v", reply, err)
		}
	}
}
