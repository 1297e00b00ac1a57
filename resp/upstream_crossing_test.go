package resp

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"lockproxy/resp/upstream"
)

// A crossing is an upstream that shows over which connection a command arrives. It answers by itself what the proxy asks
// on its own account: COMMAND, and what a connection begins with.
type crossing struct {
	redis   *upstream.Redis
	arrived chan request
	values  sync.Map // replies that it gives by itself, by command
	l       net.Listener
	running sync.WaitGroup
}

// A request is a command that arrived over a connection.
type request struct {
	conn net.Conn
	text string
}

func (r request) answer(t *testing.T, reply string) {
	t.Helper()
	if _, err := io.WriteString(r.conn, reply); err != nil {
		t.Error(err)
	}
}

// crossingCommands are what the crossing says of its commands.
var crossingCommands = func() string {
	var rows []string
	for _, row := range []string{"get readonly 1", "set write 1", "incr write 1", "blpop noscript 1", "sort movablekeys 1",
		"info loading 0", "json.get module 1", "wait noscript 0"} {
		words := strings.Fields(row)
		rows = append(rows, fmt.Sprintf("*6\r\n$%d\r\n%s\r\n:-2\r\n*1\r\n+%s\r\n:%s\r\n:%[4]s\r\n:%[4]s\r\n", len(words[0]), words[0], words[1], words[2]))
	}
	rows = append(rows, "*10\r\n$5\r\nxinfo\r\n:-2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*0\r\n"+
		"*1\r\n*6\r\n$12\r\nxinfo|stream\r\n:-3\r\n*1\r\n+readonly\r\n:2\r\n:2\r\n:1\r\n")
	return fmt.Sprintf("*%d\r\n%s", len(rows), strings.Join(rows, ""))
}()

func newCrossing(t testing.TB) *crossing {
	t.Helper()
	u := &crossing{arrived: make(chan request, 10_000)}
	u.l = serveEach(t, &u.running, u.serve)
	u.redis = upstream.New(upstream.Options{Addr: u.l.Addr().String()})
	t.Cleanup(u.redis.Close)
	return u
}

func (u *crossing) serve(conn net.Conn) {
	defer conn.Close()
	eachRequest(conn, func(args []string) bool {
		text := strings.Join(args, " ")
		reply, known := u.values.Load(text)
		switch args[0] {
		case "COMMAND":
			reply, known = crossingCommands, true
		case "CLIENT", "SELECT":
			reply, known = "+OK\r\n", true
		case "HELLO":
			reply, known = "%0\r\n", true
		}
		if !known {
			u.arrived <- request{conn, text}
			return true
		}
		_, err := io.WriteString(conn, reply.(string))
		return err == nil
	})
}

// next waits for a command and demands that it is this one.
func (u *crossing) next(t *testing.T, want string) request {
	t.Helper()
	select {
	case got := <-u.arrived:
		if got.text != want {
			t.Fatalf("the upstream got %.100q, want %.100q", got.text, want)
		}
		return got
	case <-time.After(patienceMax):
		t.Fatalf("the upstream never got %.100q", want)
	}
	return request{}
}

func (u *crossing) wantNone(t *testing.T) {
	t.Helper()
	select {
	case got := <-u.arrived:
		t.Fatalf("the upstream got %q", got.text)
	default:
	}
}

// newCrossingRig has a crossing behind the proxy.
func newCrossingRig(t testing.TB, limits Limits) (*crossing, *rig) {
	t.Helper()
	u := newCrossing(t)
	return u, newRig(t, Config{Upstream: u.redis, LockKeys: []string{"lock:*"}, Limits: limits})
}
