package resp

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// slowSubscribers subscribe to a and read nothing more.
func slowSubscribers(t *testing.T, r *rig, n int) (all []*client) {
	t.Helper()
	for range n {
		c := r.dial()
		if got := c.ask("SUBSCRIBE", "a"); !strings.HasPrefix(got, "*3") {
			t.Fatal(got)
		}
		all = append(all, c)
	}
	return all
}

// Who reads slowly goes, and not who sends, nor who reads: as on Redis.
func TestSlowSubscribersGoAndNotThePublisher(t *testing.T) {
	const memory = 4 << 20
	r := newRig(t, Config{Limits: Limits{Memory: memory, Input: memory, Output: memory}})
	slowSubscribers(t, r, 50)
	reader := r.dial()
	reader.ask("SUBSCRIBE", "b")
	publisher, other := r.dial(), r.dial()
	message := strings.Repeat("m", 20_000)
	for i := range 1500 { // the kernel takes some before any of them waits here
		if got := publisher.ask("PUBLISH", "a", message); !strings.HasPrefix(got, ":") {
			t.Fatalf("message %d: %q", i, got)
		}
		if i%10 > 0 {
			continue
		}
		publisher.ask("PUBLISH", "b", message)
		if got := reader.reply(); !strings.Contains(got, message) {
			t.Fatalf("the reader got %q", got)
		}
		if got := other.ask("LOCK", "k", "30000", "TOKEN", "t", "HOLD"); !strings.HasPrefix(got, "*6") {
			t.Fatalf("another got %q", got)
		}
		if got := other.ask("UNLOCK", "k", "t"); got != ":1\r\n" {
			t.Fatalf("another got %q", got)
		}
	}
	if st := r.server.Stats(); st.Evicted == 0 || st.MemoryRefused > 0 {
		t.Errorf("%d have gone, %d were refused", st.Evicted, st.MemoryRefused)
	}
}

// Replies that are not read are as messages: who lets them wait goes, and nobody else is refused for it.
func TestUnreadRepliesDoNotRefuseOthers(t *testing.T) {
	const memory = 4 << 20
	r := newRig(t, Config{Limits: Limits{Memory: memory, Input: memory, Output: memory}})
	other := r.dial()
	if got := other.ask("SET", "v", strings.Repeat("x", 20_000)); got != "+OK\r\n" {
		t.Fatal(got)
	}
	for i := range 50 {
		c := r.dial()
		go func() { _, _ = io.WriteString(c, strings.Repeat(words("GET v"), 1000)) }()
		for range 10 {
			if got := other.ask("LOCK", "k", "30000", "TOKEN", "t", "HOLD"); !strings.HasPrefix(got, "*6") {
				t.Fatalf("%d: got %q", i, got)
			}
			if got := other.ask("UNLOCK", "k", "t"); got != ":1\r\n" {
				t.Fatalf("%d: got %q", i, got)
			}
		}
	}
	waitFor(t, "none has gone", func() bool { return r.server.Stats().Evicted > 0 })
}

// The one that holds most goes first.
func TestTheSlowestReaderGoesFirst(t *testing.T) {
	r := newRig(t, Config{})
	r.server.relief.memory.max = 1 << 20
	holding := func(n int) *session {
		c := r.dial()
		c.ask("PING")
		all := r.server.sessions.all()
		s := all[len(all)-1]
		if !s.memory.take(n) {
			t.Fatal("no room")
		}
		s.replies.backlog.outBytes.Add(int64(n))
		return s
	}
	little, much, some := holding(100_000), holding(600_000), holding(200_000)
	asks := r.dial()
	asks.ask("PING")
	if got := asks.ask("SET", "k", strings.Repeat("x", 100_000)); got != "+OK\r\n" {
		t.Fatalf("got %q", got)
	}
	if !much.replies.isGone() && much.memory.of() != nil {
		t.Error("who holds most is still there")
	}
	if little.memory.of() == nil || some.memory.of() == nil {
		t.Error("others have gone, too")
	}
}

// Commands that are not sent whole wait for their clients; others are not refused for them.
func TestHalfCommandsDoNotRefuseOthers(t *testing.T) {
	const memory = 4 << 20
	r := newRig(t, Config{Limits: Limits{Memory: memory, Input: memory}})
	for i := range 20 {
		c := r.dial()
		go func() { _, _ = io.WriteString(c, "*2\r\n$4\r\nECHO\r\n$600000\r\n"+strings.Repeat("x", 500_000)) }()
		other := r.dial()
		for j := range 10 {
			if got := other.ask("LOCK", fmt.Sprint("k", i), "30000", "TOKEN", "t", "HOLD"); !strings.HasPrefix(got, "*6") {
				t.Fatalf("%d %d: %q", i, j, got)
			}
			if got := other.ask("UNLOCK", fmt.Sprint("k", i), "t"); got != ":1\r\n" {
				t.Fatalf("got %q", got)
			}
			if got := other.ask("SET", "v", strings.Repeat("x", 20_000)); got != "+OK\r\n" {
				t.Fatalf("got %q", got)
			}
		}
	}
	waitFor(t, "none has gone", func() bool { return r.server.Stats().Evicted > 0 })
}

// While memory is scarce, clients wait with their pipelines. So who reads nothing goes even if nobody is refused for it.
func TestWhoMakesMemoryScarceForLongGoes(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Write: time.Second}})
	r.server.relief.memory.max = 1 << 20
	c := r.dial()
	c.ask("PING")
	stuck := r.server.sessions.all()[0]
	if !stuck.memory.take(900_000) {
		t.Fatal("no room")
	}
	stuck.replies.backlog.outBytes.Add(900_000)
	waitFor(t, "it is still there", func() bool { return stuck.memory.of() == nil })
	if r.server.relief.memory.scarce() {
		t.Error("memory is scarce")
	}
}
