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

// unblocks ends what a client waits for, once it does, and returns what that client is told.
func unblocks(t *testing.T, operator, blocked *harness.Conn, reason string, command ...string) string {
	t.Helper()
	id := idOf(t, blocked)
	if err := blocked.Send(harness.Encode(nil, command...)); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, fmt.Sprintf("%q is unblocked", command), func() error {
		reply, err := operator.Do("CLIENT", "UNBLOCK", id, reason)
		if err == nil && string(reply) != ":1\r\n" {
			err = fmt.Errorf("%q", reply)
		}
		return err
	})
	reply, err := blocked.Reply()
	if err != nil {
		t.Fatalf("%q: %v", command, err)
	}
	expect(t, blocked, "+PONG\r\n", "PING")
	return string(reply)
}

func TestWhoWaitsAtTheUpstreamIsUnblockedAsByOneRedis(t *testing.T) {
	f := startFront(t)
	for _, proto := range []string{"2", "3"} {
		for _, command := range [][]string{
			{"BLPOP", "nothing", "0"},
			{"BLMOVE", "nothing", "other", "LEFT", "RIGHT", "0"},
			{"XREAD", "BLOCK", "0", "STREAMS", "nothing", "$"},
			{"WAIT", "1", "0"},
		} {
			for _, reason := range []string{"TIMEOUT", "ERROR"} {
				var told [2]string
				for i, addr := range []string{f.oracle.Addr, f.proxy.Addr} {
					operator, blocked := dial(t, addr), dial(t, addr)
					hello(t, proto, blocked)
					told[i] = unblocks(t, operator, blocked, reason, command...)
					_, _ = operator.Close(), blocked.Close()
				}
				if told[0] != told[1] {
					t.Errorf("RESP%s %q %s: got %q, want %q", proto, command, reason, told[1], told[0])
				}
			}
		}
	}
}

func TestWhoWaitsForALockIsUnblocked(t *testing.T) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	holder, operator, waiter := dial(t, proxy.Addr), dial(t, proxy.Addr), dial(t, proxy.Addr)
	expect(t, holder, "+OK\r\n", "SET", "k", "me", "NX", "PX", "600000")
	wait := []string{"LOCK", "k", "60000", "TOKEN", "you", "WAIT", "600000", "HOLD"}
	if got := unblocks(t, operator, waiter, "TIMEOUT", wait...); got != "$-1\r\n" {
		t.Errorf("got %q", got)
	}
	if got := unblocks(t, operator, waiter, "ERROR", wait...); got != "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n" {
		t.Errorf("got %q", got)
	}
	expect(t, operator, ":0\r\n", "CLIENT", "UNBLOCK", idOf(t, waiter))
	expect(t, holder, ":1\r\n", "DEL", "k")
	expect(t, waiter, "+OK\r\n", "SET", "k", "you", "NX", "PX", "60000")
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
