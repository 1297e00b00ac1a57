package embedded

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A client sends inline commands and reads raw replies.
type client struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &client{t: t, conn: conn, r: bufio.NewReader(conn)}
}

// do returns the reply's first line, and of a bulk its text.
func (c *client) do(args ...string) string {
	c.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(c.conn, b.String()); err != nil {
		c.t.Fatal(err)
	}
	return c.reply()
}

func (c *client) reply() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	line = strings.TrimSpace(line)
	var n int
	switch line[0] {
	case '$':
		_, _ = fmt.Sscan(line[1:], &n)
		if n < 0 {
			return "nil"
		}
		text := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, text); err != nil {
			c.t.Fatal(err)
		}
		return string(text[:n])
	case '*':
		_, _ = fmt.Sscan(line[1:], &n)
		var parts []string
		for range n {
			parts = append(parts, c.reply())
		}
		return fmt.Sprint(parts)
	}
	return line
}

func start(t *testing.T, n int) *Masters {
	t.Helper()
	ms, err := Start(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ms.Close)
	return ms
}

func TestKeysExpireByThemselves(t *testing.T) {
	ms := start(t, 1)
	c := dial(t, ms.Addrs()[0])
	began := time.Now()
	c.do("SET", "k", "v", "PX", "50")
	for c.do("GET", "k") != "nil" {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the key is still there: the clock stands still")
		}
	}
	if d := time.Since(began); d < 50*time.Millisecond {
		t.Errorf("gone after %v", d)
	}
}

// An undo knows a key by the instant at which it expires.
func TestNoWrongInstantOfExpiryIsTold(t *testing.T) {
	c := dial(t, start(t, 1).Addrs()[0])
	for range 200 {
		c.do("EVAL", "redis.call('SET', 'k', 'v') redis.call('PEXPIRE', 'k', 30000) "+
			"redis.call('PEXPIREAT', 'k', redis.call('TIME')[1] * 1000 + 30303)", "0")
		first := c.do("PEXPIRETIME", "k")
		time.Sleep(time.Millisecond)
		if then := c.do("PEXPIRETIME", "k"); then != first {
			t.Fatalf("%s, and then %s", first, then)
		}
	}
}

func TestMastersAreIndependent(t *testing.T) {
	ms := start(t, 3)
	addrs := ms.Addrs()
	dial(t, addrs[0]).do("SET", "k", "v")
	if got := dial(t, addrs[1]).do("GET", "k"); got != "nil" {
		t.Errorf("another master has %q", got)
	}
	ids := make(map[string]bool)
	for _, a := range addrs {
		ids[dial(t, a).do("INFO", "server")] = true
	}
	if len(ids) != 3 {
		t.Errorf("%d different run ids of 3 masters", len(ids))
	}
}

func TestTheHandshakeOfALaneIsAnswered(t *testing.T) {
	addr := start(t, 1).Addrs()[0]
	c, other := dial(t, addr), dial(t, addr)
	for _, row := range []struct{ command, want string }{
		{"ROLE", "[master :0 []]"},
		{"CLIENT ID", ":1"},
		{"client id", ":1"},
		{"CONFIG GET maxmemory*", ""},
		{"CONFIG GET appendfsync", "[appendfsync everysec]"},
		{"CLIENT KILL ID 99", ":0"},
	} {
		got := c.do(strings.Fields(row.command)...)
		if row.want != "" && got != row.want {
			t.Errorf("%s: %s, want %s", row.command, got, row.want)
		}
	}
	if got := other.do("CLIENT", "ID"); got != ":2" {
		t.Errorf("the other connection has id %s", got)
	}
	if got := other.do("CLIENT", "KILL", "ID", "1"); got != ":1" {
		t.Errorf("KILL: %s", got)
	}
	if _, err := io.WriteString(c.conn, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"); err != nil {
		t.Fatal(err)
	}
	if b, err := c.r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the killed connection answers %q, %v", b, err)
	}
	if got := other.do("GET", "k"); got != "nil" {
		t.Error("the killed connection's command has run")
	}
	if info := other.do("INFO", "server"); !strings.Contains(info, "redis_version:7") || !strings.Contains(info, "run_id:") {
		t.Error(info)
	}
}

// What wraps clients' scripts asks, so that they hear in Redis's words what they may not call.
func TestAScriptLearnsWhetherThereIsACommand(t *testing.T) {
	c := dial(t, start(t, 1).Addrs()[0])
	for name, want := range map[string]string{"SET": "set", "nosuch": "none"} {
		text := "local i = redis.pcall('COMMAND', 'INFO', ARGV[1]) return i.err or i[1] and i[1][1] or 'none'"
		if got := c.do("EVAL", text, "0", name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestCloseEndsConnections(t *testing.T) {
	ms := start(t, 1)
	c := dial(t, ms.Addrs()[0])
	c.do("PING")
	ms.Close()
	if _, err := c.r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection lives: %v", err)
	}
}
