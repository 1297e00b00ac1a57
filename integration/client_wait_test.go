package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// idOf returns what the server calls the connection.
func idOf(t *testing.T, c *harness.Conn) string {
	t.Helper()
	reply, err := c.Do("CLIENT", "ID")
	id, ok := harness.Int(reply)
	if err != nil || !ok {
		t.Fatalf("CLIENT ID: %q, %v", reply, err)
	}
	return fmt.Sprint(id)
}

// CLIENT LIST names the last command of a client that went upstream, too.
func TestClientListNamesWhatWentUpstream(t *testing.T) {
	f := startFront(t)
	c, blocked := dial(t, f.proxy.Addr), dial(t, f.proxy.Addr)
	id := idOf(t, blocked)
	if err := blocked.Send(harness.Encode(nil, "BLPOP", "nothing", "0")); err != nil {
		t.Fatal(err)
	}
	shows := func(id, cmd string) func() error {
		return func() error {
			reply, err := c.Do("CLIENT", "LIST", "ID", id)
			if err == nil && !strings.Contains(string(reply), " cmd="+cmd+" ") {
				err = fmt.Errorf("%q", reply)
			}
			return err
		}
	}
	eventually(t, 20*time.Second, "BLPOP is shown", shows(id, "blpop"))
	other := dial(t, f.proxy.Addr)
	otherID := idOf(t, other)
	for cmd, request := range map[string][]string{"get": {"GET", "data"}, "lpush": {"LPUSH", "nothing", "x"}, "config|get": {"CONFIG", "GET", "save"}, "xinfo|help": {"XINFO", "HELP"}} {
		if _, err := other.Do(request...); err != nil {
			t.Fatal(err)
		}
		if err := shows(otherID, cmd)(); err != nil {
			t.Errorf("%q: %v", request, err)
		}
	}
}
