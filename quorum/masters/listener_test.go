package masters

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func listen(t *testing.T, address string) Listener {
	t.Helper()
	m, err := NewRedis(address, RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := m.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func send(t *testing.T, l Listener, c Command, name string) {
	t.Helper()
	if err := l.Send(c, name); err != nil {
		t.Fatal(err)
	}
}

func next(t *testing.T, l Listener) Heard {
	t.Helper()
	h, err := l.Next()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestAListenerHearsWhatItSubscribedTo(t *testing.T) {
	s := miniredis.RunT(t)
	l := listen(t, s.Addr())
	publish := func(channel, payload string) { s.Publish(channel, payload) }
	message := func(channel, payload string) Heard { return Heard{Kind: Message, Channel: channel, Payload: payload} }
	send(t, l, Subscribe, "a\x00\r\n")
	send(t, l, PSubscribe, "b*")
	send(t, l, Ping, "")
	for i, want := range []HeardKind{Confirmed, Confirmed, Pong} {
		if h := next(t, l); h.Kind != want {
			t.Fatalf("%d: %+v", i, h)
		}
	}
	publish("a\x00\r\n", "\xff\r\n")
	if h := next(t, l); h != message("a\x00\r\n", "\xff\r\n") {
		t.Errorf("%+v", h)
	}
	publish("bc", "")
	if h := next(t, l); h != (Heard{Kind: Message, Pattern: "b*", Channel: "bc"}) {
		t.Errorf("%+v", h)
	}
	send(t, l, Unsubscribe, "a\x00\r\n")
	send(t, l, PUnsubscribe, "b*")
	next(t, l)
	next(t, l)
	publish("bc", "gone")
	send(t, l, Ping, "")
	if h := next(t, l); h.Kind != Pong {
		t.Errorf("%+v", h)
	}
}

func TestAListenerIsRefusedAndGoesOn(t *testing.T) {
	l := listen(t, scripted(t, func(n int, cmd []string) string {
		if cmd[1] == "secret" {
			return "-NOPERM no permission\r\n"
		}
		return "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
	}).Addr().String())
	send(t, l, Subscribe, "secret")
	send(t, l, Subscribe, "x")
	if h := next(t, l); h.Kind != Refused || !strings.HasPrefix(h.Err.Error(), "NOPERM") {
		t.Errorf("%+v", h)
	}
	if h := next(t, l); h.Kind != Confirmed {
		t.Errorf("%+v", h)
	}
}

func TestWhatIsNoMessageEndsAListener(t *testing.T) {
	for _, said := range []string{
		"*1\r\n$7\r\nmessage\r\n", "*3\r\n:1\r\n:2\r\n:3\r\n", "*0\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n$1\r\nx\r\n", ":1\r\n", "$-1\r\n", "!\r\n", "?\r\n",
	} {
		l := listen(t, scripted(t, func(int, []string) string { return said }).Addr().String())
		send(t, l, Subscribe, "x")
		if h, err := l.Next(); err == nil {
			t.Errorf("%q was heard as %+v", said, h)
		}
		_ = l.Close()
	}
}

func TestClosingEndsAListenerThatWaits(t *testing.T) {
	l := listen(t, echoHello(t).Addr().String())
	ended := make(chan error, 1)
	go func() {
		_, err := l.Next()
		ended <- err
	}()
	_ = l.Close()
	if err := <-ended; err == nil {
		t.Error("no error")
	}
	if err := l.Send(Subscribe, "x"); err == nil {
		t.Error("it was opened again behind our back")
	}
}

func TestListenEndsWithItsContext(t *testing.T) {
	door, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = door.Close() }()
	m, err := NewRedis(door.Addr().String(), RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := m.Listen(ctx); err == nil {
		t.Fatal("no error")
	}
}
