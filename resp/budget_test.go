package resp

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A command takes more than its text. When there is little memory left, no client is read any further that has a command
// under way; and each may have one, which may be the release that others wait for.
func TestPipelinesWaitForMemory(t *testing.T) {
	const clients, pipeline = 20, 100
	r := newRig(t, Config{Limits: Limits{Memory: 2 << 20}})
	arrived := r.engine.hold()
	memory := &r.server.relief.memory
	var all []*client
	for i := range clients {
		c := r.dial()
		var sets strings.Builder
		for j := range pipeline {
			sets.WriteString(words(fmt.Sprintf("SET k%d:%d t NX PX 30000", i, j)))
		}
		c.send(sets.String())
		all = append(all, c)
	}
	waitFor(t, "memory is not scarce", memory.scarce)
	late := r.dial()
	late.send(words("UNLOCK k t"))
	for op := ""; op != "release k"; op = <-arrived {
	}
	waitFor(t, "not every client has a command under way", func() bool {
		for _, s := range r.server.sessions.all() {
			if s.replies.backlog.depth.Load() == 0 {
				return false
			}
		}
		return true
	})
	if used := memory.used(); used > memory.max {
		t.Errorf("%d of %d bytes are counted", used, memory.max)
	}
	r.engine.releaseAll()
	late.want(":0\r\n")
	for _, c := range all {
		c.want(strings.Repeat("+OK\r\n", pipeline))
		_ = c.Close()
	}
	_ = late.Close()
	awaitNothingHeld(t, r)
}

// A client goes on when others have freed memory, though its own first command still waits.
func TestAClientGoesOnWhenOthersHaveFreedMemory(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Write: 100 * time.Millisecond}})
	arrived := r.engine.hold()
	memory := &r.server.relief.memory
	memory.add(0, memory.max)
	c := r.dial()
	c.send(words("GET a") + words("GET b"))
	<-arrived
	waitFor(t, "it is read", func() bool {
		s := r.server.sessions.all()[0]
		s.replies.mu.Lock()
		defer s.replies.mu.Unlock()
		return s.replies.throttled
	})
	memory.add(0, -memory.max)
	if op := <-arrived; op != "get b" {
		t.Errorf("got %q", op)
	}
	r.engine.releaseAll()
	c.want("$-1\r\n$-1\r\n")
}

// The client that is cut off for want of memory may read as it should: the log does not say that it did not.
func TestAClientCutOffForWantOfMemoryIsNotBlamed(t *testing.T) {
	log := &logged{}
	r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	c := r.dial()
	if got := c.ask("SET", "k", strings.Repeat("x", countedFrom)); got != "+OK\r\n" {
		t.Fatal(got)
	}
	memory := &r.server.relief.memory
	memory.texts.Add(memory.max)
	defer memory.texts.Add(-memory.max)
	c.send(words("GET k"))
	r.awaitGone()
	waitFor(t, "it is not logged", func() bool { return strings.Contains(log.String(), "connection ended") })
	if got := log.String(); !strings.Contains(got, `cause="max_memory is spent`) {
		t.Errorf("logged %q", got)
	}
}

// What lasts until its client ends it is refused when there is little memory left, and leaves the rest for what does not.
func TestWhatLastsIsRefusedForWantOfMemory(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Memory: 1 << 20}})
	for name, c := range map[string]struct {
		first   string // "" if there is none
		ok      string
		lasting func(i int) string
		refused string
	}{
		"queued": {words("MULTI"), "+QUEUED\r\n", func(int) string { return words("PING") },
			"-ERR lockproxy holds as much for its clients as max_memory allows; try again later, or raise it\r\n"},
		"watched": {"", "+OK\r\n", func(i int) string { return words(fmt.Sprint("WATCH w", i)) },
			"-ERR lockproxy holds as much for its clients as max_memory allows; try again later, or raise it\r\n"},
		"held": {"", "*6\r\n", func(i int) string { return words(fmt.Sprint("LOCK h", i, " 3600000 HOLD")) },
			"-ERR lockproxy holds as much for its clients as max_memory allows; try again later, or raise it\r\n"},
		"subscribed": {"", "*3\r\n", func(i int) string { return words(fmt.Sprint("SUBSCRIBE s", i)) },
			"-ERR lockproxy holds as much for its clients as max_memory allows; try again later, or raise it\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*client
			for i := 0; ; i++ {
				if i == 10_000 {
					t.Fatal("none was refused")
				}
				if i%1000 == 0 { // of each kind a client may have 1024
					all = append(all, r.dial())
					if c.first != "" {
						all[len(all)-1].send(c.first)
						all[len(all)-1].want("+OK\r\n")
					}
				}
				client := all[len(all)-1]
				client.send(c.lasting(i))
				got := client.reply()
				if got == c.refused {
					break
				}
				if !strings.HasPrefix(got, c.ok) {
					t.Fatalf("got %q", got)
				}
			}
			other := r.dial()
			if got := other.ask("SET", "other", strings.Repeat("x", 50_000), "PX", "30000"); got != "+OK\r\n" {
				t.Errorf("got %q", got)
			}
			all = append(all, other)
			for _, client := range all {
				_ = client.Close()
			}
			awaitNothingHeld(t, r)
		})
	}
}

// Commands under way may count for more than there is, for each client may have one. For that no other is refused its text,
// which may be the script that releases a lock.
func TestCommandsOnManyKeysDoNotRefuseTheTextsOfOthers(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Memory: 1 << 20}})
	arrived := r.engine.hold()
	var names strings.Builder
	for i := range 400 {
		fmt.Fprint(&names, " k", i, " v")
	}
	var all []*client
	for range 3 {
		c := r.dial()
		c.send(words("MSETNX" + names.String()))
		all = append(all, c)
	}
	waitFor(t, "memory is not spent", func() bool { return r.server.relief.memory.used() > r.server.relief.memory.max })
	late := r.dial()
	late.send(words("UNLOCK k " + strings.Repeat("t", 1000)))
	waitFor(t, "it does not run", func() bool {
		for {
			select {
			case op := <-arrived:
				if op == "release k" {
					return true
				}
			default:
				return false
			}
		}
	})
	r.engine.releaseAll()
	late.want(":0\r\n")
	for _, c := range append(all, late) {
		_ = c.Close()
	}
	awaitNothingHeld(t, r)
}

// A name lasts as long as its client keeps it.
func TestTheNamesOfClientsAreCounted(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Memory: 1 << 20}})
	name := strings.Repeat("n", 128<<10)
	var all []*client
	const ok = "+OK\r\n"
	for got := ok; got == ok; {
		if len(all) == 8 {
			t.Fatal("the names of 8 clients take as much as all clients together may")
		}
		c := r.dial()
		all = append(all, c)
		got = c.ask("CLIENT", "SETNAME", name)
		if got != ok && !strings.HasPrefix(got, "-ERR lockproxy holds as much for its clients as max_memory allows") {
			t.Errorf("got %q", got)
		}
	}
	last := all[len(all)-1]
	if got := last.ask("CLIENT", "SETNAME", "short"); got != ok {
		t.Errorf("a short name: %q", got)
	}
	all[0].ask("RESET")
	all[1].ask("CLIENT", "SETNAME", "short")
	for range 2 {
		if got := last.ask("HELLO", "3", "SETNAME", name); !strings.HasPrefix(got, "%7") {
			t.Errorf("when others have given their names up: %q", got)
		}
	}
	for _, c := range all {
		_ = c.Close()
	}
	awaitNothingHeld(t, r)
}
