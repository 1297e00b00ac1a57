package integration

import (
	"errors"
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

// Commands that change something wait until the pause ends, those that read do not.
func TestClientsArePausedAsByOneRedis(t *testing.T) {
	f := startFront(t)
	alone := startProxy(t, harness.Addrs(f.masters))
	for i, addr := range []string{f.oracle.Addr, f.proxy.Addr, alone.Addr} {
		lock := fmt.Sprint("lock:", i) // the proxies have the same masters
		operator, reader, other := dial(t, addr), dial(t, addr), dial(t, addr)
		paused := [][]string{{"SET", lock, "x", "PX", "60000"}, {"DEL", lock}, {"PUBLISH", lock, "x"},
			{"EVAL", "return redis.call('exists', KEYS[1])", "1", lock}, {"EXEC"}}
		if addr != alone.Addr {
			paused = append(paused, []string{"INCR", "data"}, []string{"FLUSHALL"})
		}
		var waiting []*harness.Conn
		for range paused {
			waiting = append(waiting, dial(t, addr))
		}
		for _, c := range waiting {
			if c == waiting[4] {
				expect(t, c, "+OK\r\n", "MULTI")
				expect(t, c, "+QUEUED\r\n", "DEL", lock+"q")
			}
		}
		expect(t, operator, "+OK\r\n", "CLIENT", "PAUSE", "600000", "WRITE")
		for i, c := range waiting {
			if err := c.Send(harness.Encode(nil, paused[i]...)); err != nil {
				t.Fatal(err)
			}
		}
		expect(t, reader, "$-1\r\n", "GET", lock)
		unknown := dial(t, addr)
		if err := unknown.Send(harness.Encode(nil, "BF.ADD", "data", "x")); err != nil {
			t.Fatal(err)
		}
		if addr == f.proxy.Addr { // the upstream may have been given a module since it told its commands
			if err := stillWaits(unknown); err != nil {
				t.Errorf("%s: a command that nobody knows: %v", addr, err)
			}
			waiting, paused = append(waiting, unknown), append(paused, []string{"BF.ADD"})
		} else if reply, err := unknown.Reply(); err != nil || !strings.HasPrefix(string(reply), "-ERR unknown command") {
			t.Errorf("%s: %q, %v", addr, reply, err)
		}
		for i, c := range waiting {
			if err := stillWaits(c); err != nil {
				t.Errorf("%s %q: %v", addr, paused[i], err)
			}
		}
		expect(t, operator, "+OK\r\n", "CLIENT", "UNPAUSE")
		for i, c := range waiting {
			if reply, err := c.Reply(); err != nil || reply[0] == '-' && c != unknown {
				t.Errorf("%s %q: %q, %v", addr, paused[i], reply, err)
			}
		}
		// The stricter pause counts, and ends by itself.
		begun := time.Now()
		expect(t, operator, "+OK\r\n", "CLIENT", "PAUSE", "300", "WRITE")
		expect(t, operator, "+OK\r\n", "CLIENT", "PAUSE", "1", "ALL")
		expect(t, other, "+PONG\r\n", "PING")
		if took := time.Since(begun); took < 290*time.Millisecond {
			t.Errorf("%s: PING was answered after %v", addr, took)
		}
	}
}

// stillWaits returns an error if a reply has come.
func stillWaits(c *harness.Conn) error {
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		return err
	}
	reply, err := c.Peek()
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		return fmt.Errorf("it was answered: %q, %v", reply, err)
	}
	return nil
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
