package upstream

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

func has(c *Commands, name string) bool { return c.find([]string{name}) != nil }

// When a shared connection ends, all clients want to know the server's commands at once. One of them asks.
func TestManyClientsAskForTheCommandsOnce(t *testing.T) {
	s := &server{t: t, reply: "*1\r\n*6\r\n$3\r\nget\r\n:2\r\n*0\r\n:1\r\n:1\r\n:1\r\n"}
	s.start()
	defer s.stop()
	u := New(Options{Addr: s.addr})
	defer u.Close()
	start := make(chan struct{})
	var clients sync.WaitGroup
	for range 50 {
		clients.Go(func() {
			<-start
			if known, err := u.Commands(); err != nil || !has(known, "get") {
				t.Errorf("%v, %v", known, err)
			}
		})
	}
	close(start)
	clients.Wait()
	s.mu.Lock()
	n := len(s.conns)
	s.mu.Unlock()
	if n != 1 {
		t.Errorf("they asked over %d connections", n)
	}
}

// Who has a connection goes on over it while no other can be made. What is known of the server stays true until one can: that may be
// another server.
func TestTheCommandsAreKnownUntilAnotherServerTells(t *testing.T) {
	s := &server{t: t, reply: "*1\r\n*6\r\n$3\r\nget\r\n:2\r\n*0\r\n:1\r\n:1\r\n:1\r\n"}
	s.start()
	u := New(Options{Addr: s.addr})
	defer u.Close()
	if known, err := u.Commands(); err != nil || !has(known, "get") {
		t.Fatalf("%v, %v", known, err)
	}
	s.stop()
	if conn, err := u.Dial(t.Context(), Greeting{}); err == nil {
		_ = conn.Close()
		t.Fatal("it is gone, and there is a connection")
	}
	if known, err := u.Commands(); err != nil || !has(known, "get") {
		t.Errorf("while it is gone: %v, %v", known, err)
	}
	s.reply = "*1\r\n*6\r\n$3\r\nset\r\n:3\r\n*0\r\n:1\r\n:1\r\n:1\r\n"
	s.start()
	defer s.stop()
	for deadline := time.Now().Add(patienceMax); ; time.Sleep(failurePause / 10) {
		known, err := u.Commands()
		switch {
		case err == nil && has(known, "set"):
			return
		case err != nil || !has(known, "get") || time.Now().After(deadline):
			t.Fatalf("the other server's are not known: %v, %v", known, err)
		}
	}
}

// Where no client needs a new connection meanwhile, the watcher finds out that there may be another server.
func TestTheCommandsOfAServerThatIsRestartedAreAskedFor(t *testing.T) {
	s := &server{t: t, reply: "*1\r\n*6\r\n$3\r\nget\r\n:2\r\n*0\r\n:1\r\n:1\r\n:1\r\n"}
	s.start()
	u := New(Options{Addr: s.addr})
	defer u.Close()
	if known, err := u.Commands(); err != nil || !has(known, "get") {
		t.Fatalf("%v, %v", known, err)
	}
	u.watch(slog.New(slog.DiscardHandler), 10*time.Millisecond)
	for deadline := time.Now().Add(patienceMax); ; time.Sleep(failurePause / 10) { // until it has a connection
		s.mu.Lock()
		n := len(s.conns)
		s.mu.Unlock()
		if n > 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody watches")
		}
	}
	s.stop()
	s.reply = "*1\r\n*6\r\n$3\r\nset\r\n:3\r\n*0\r\n:1\r\n:1\r\n:1\r\n"
	s.start()
	defer s.stop()
	for deadline := time.Now().Add(patienceMax); ; time.Sleep(failurePause / 10) {
		known, err := u.Commands()
		switch {
		case err == nil && has(known, "set"):
			return
		case time.Now().After(deadline):
			t.Fatalf("the restarted server's are not known: %v, %v", known, err)
		}
	}
}

// A server that cannot say which arguments are keys has not said that there are none: a lock could be among them.
func TestKeysThatTheServerDoesNotTellAreNotNone(t *testing.T) {
	for reply, want := range map[string]string{
		"*2\r\n$1\r\na\r\n$1\r\nb\r\n":              "[a b] <nil>",
		"-ERR The command has no key arguments\r\n": "[] <nil>",
		"-BUSY Redis is busy running a script.\r\n": "[] upstream ADDR: COMMAND GETKEYS: BUSY Redis is busy running a script.",
	} {
		s := &server{t: t, reply: reply}
		s.start()
		u := New(Options{Addr: s.addr})
		keys, err := u.GetKeys([]string{"sort", "a"})
		if got := fmt.Sprint(keys, err); got != strings.ReplaceAll(want, "ADDR", s.addr) {
			t.Errorf("%q: %s", reply, got)
		}
		u.Close()
		s.stop()
	}
}
