package masters

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"
)

// scripted accepts one connection: f returns the reply to its n-th command, the handshake aside, or "" to hang up.
func scripted(t *testing.T, f func(n int, cmd []string) string) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r := bufio.NewReader(c)
		n := 0
		for {
			cmd := readCmd(r)
			if cmd == nil {
				return
			}
			switch strings.ToUpper(cmd[0]) {
			case "HELLO":
				c.Write([]byte("-ERR unknown command 'HELLO'\r\n"))
			case "PING":
				c.Write([]byte("+PONG\r\n"))
			default:
				out := f(n, cmd)
				n++
				if out == "" {
					time.Sleep(20 * time.Millisecond)
					return
				}
				c.Write([]byte(out))
			}
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l
}

func readCmd(r *bufio.Reader) []string {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil
	}
	n := 0
	for _, ch := range strings.TrimSpace(line[1:]) {
		n = n*10 + int(ch-'0')
	}
	var out []string
	for range n {
		if _, err := r.ReadString('\n'); err != nil {
			return nil
		}
		s, err := r.ReadString('\n')
		if err != nil {
			return nil
		}
		out = append(out, strings.TrimSpace(s))
	}
	return out
}

func TestNoAnswerIsInventedAfterReadonly(t *testing.T) {
	sent := 0
	l := scripted(t, func(n int, cmd []string) string {
		sent++
		if cmd[0] == "SET" {
			return "-READONLY You can't write against a read only replica.\r\n"
		}
		return "$5\r\nalice\r\n"
	})
	c := dial(t, l.Addr().String(), RedisOptions{})
	set := call("SET", "k", "v", "NX", "PX", int64(1000))
	if err := c.Exec([]*Call{set}); err != nil {
		return // fine as well
	}
	for range 3 {
		get := call("GET", "k")
		err := c.Exec([]*Call{get})
		if err == nil && get.Answered && get.Reply == nil && get.Err == nil {
			t.Errorf("GET: err %v, answered %v, reply %v: an answer nobody gave (server saw %d commands)", err, get.Answered, get.Reply, sent)
		}
	}
}

func TestWhatWasAnsweredBeforeTheBreakIsAnswered(t *testing.T) {
	l := scripted(t, func(n int, cmd []string) string {
		if n == 0 {
			return "+OK\r\n"
		}
		return ""
	})
	c := dial(t, l.Addr().String(), RedisOptions{})
	a, b := call("SET", "a", "v"), call("SET", "b", "v")
	err := c.Exec([]*Call{a, b})
	if err == nil || b.Answered {
		t.Fatalf("err %v b %v", err, b.Answered)
	}
	if !a.Answered || a.Reply != "OK" {
		t.Errorf("the first was answered OK on the wire: got answered %v reply %v", a.Answered, a.Reply)
	}
}

func TestCloseMayRaceExec(t *testing.T) {
	for range 200 {
		l := scripted(t, func(n int, cmd []string) string { return "+OK\r\n" })
		c := dial(t, l.Addr().String(), RedisOptions{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 5 {
				if c.Exec([]*Call{call("SET", "a", "b")}) != nil {
					return
				}
			}
		}()
		go c.Close()
		c.Close()
		<-done
	}
}

// A script may return an array with an error inside.
func TestANestedErrorDoesNotShiftReplies(t *testing.T) {
	l := scripted(t, func(n int, cmd []string) string {
		if n == 0 {
			return "*3\r\n:1\r\n-OOM x\r\n:2\r\n"
		}
		return "$-1\r\n"
	})
	c := dial(t, l.Addr().String(), RedisOptions{})
	a, b := call("EVAL", "x", int64(0)), call("SET", "b", "v", "NX")
	if err := c.Exec([]*Call{a, b}); err != nil {
		t.Fatal(err)
	}
	if !a.Answered || a.Reply != nil || a.Err == nil || a.Err.Error() != "OOM x" {
		t.Errorf("EVAL: answered %v, %v, %v", a.Answered, a.Reply, a.Err)
	}
	if !b.Answered || b.Reply != nil || b.Err != nil {
		t.Errorf("SET NX was refused (nil), but its caller is told %v, %v", b.Reply, b.Err)
	}
}
