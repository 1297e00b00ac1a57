package masters

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func dial(t *testing.T, address string, o RedisOptions) Conn {
	t.Helper()
	m, err := NewRedis(address, o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.Dial(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func call(args ...any) *Call { return &Call{Args: args} }

func TestABatchIsAnsweredInOrderErrorsIncluded(t *testing.T) {
	s := miniredis.RunT(t)
	c := dial(t, s.Addr(), RedisOptions{})
	calls := []*Call{
		call("SET", "k", "v", "NX", "PX", int64(1000)),
		call("SET", "k", "w", "NX", "PX", int64(1000)),
		call("LPUSH", "k", "x"),
		call("GET", "k"),
		call("EVAL", "return {1, 'a', false}", int64(0)),
	}
	if err := c.Exec(calls); err != nil {
		t.Fatal(err)
	}
	for i, want := range []any{"OK", nil, nil, "v"} {
		if got := calls[i]; !got.Answered || got.Reply != want {
			t.Errorf("%v: got %v, want %v", got.Args, got.Reply, want)
		}
	}
	if err := calls[2].Err; err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE") {
		t.Errorf("LPUSH on a string: %v", err)
	}
	if list, ok := calls[4].Reply.([]any); !ok || len(list) != 3 || list[0] != int64(1) || list[2] != nil {
		t.Errorf("EVAL: %v", calls[4].Reply)
	}
}

func TestAnEndedConnectionLeavesCallsUnansweredAndStaysEnded(t *testing.T) {
	l := echoHello(t)
	c := dial(t, l.Addr().String(), RedisOptions{})
	get := call("GET", "k")
	time.AfterFunc(50*time.Millisecond, func() { _ = c.Close() })
	if err := c.Exec([]*Call{get}); err == nil || get.Answered {
		t.Fatalf("err %v, answered %v", err, get.Answered)
	}
	if err := c.Exec([]*Call{get}); err == nil {
		t.Fatal("the connection was opened again behind our back")
	}
}

func TestCloseEndsAnExecThatWaits(t *testing.T) {
	l := echoHello(t)
	c := dial(t, l.Addr().String(), RedisOptions{})
	done := make(chan error, 1)
	go func() { done <- c.Exec([]*Call{call("GET", "k")}) }()
	_ = c.Close()
	if err := <-done; err == nil {
		t.Fatal("no error")
	}
}

func TestADialEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	m, _ := NewRedis(l.Addr().String(), RedisOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := m.Dial(ctx, 0); err == nil {
		t.Fatal("no error")
	}
}

func TestAddressesThatCannotWorkAreRefused(t *testing.T) {
	for _, a := range []string{"redis://h:1/3", "http://h:1", "redis://h:1/x"} {
		if _, err := NewRedis(a, RedisOptions{}); err == nil {
			t.Errorf("%s: no error", a)
		}
	}
	for _, a := range []string{"redis://u:s3cr%t@h", "redis://u:s3cr3t@[h:1]:2", "redis://:s3cr3t"} {
		if _, err := NewRedis(a, RedisOptions{}); err == nil || strings.Contains(err.Error(), "s3cr") {
			t.Errorf("%s: got %v", a, err)
		}
	}
	m, err := NewRedis("redis://user:secret@h:1", RedisOptions{})
	if err != nil || m.Addr() != "h:1" {
		t.Errorf("got %v, %v", m.Addr(), err)
	}
}

func password(text string) func() string { return func() string { return text } }

func TestThePasswordIsThatOfTheMomentOfTheDial(t *testing.T) {
	s := miniredis.RunT(t)
	now := ""
	m, err := NewRedis(s.Addr(), RedisOptions{Password: func() string { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for _, now = range []string{"first", "second"} {
		s.RequireAuth(now)
		c, err := m.Dial(t.Context(), 0)
		if err != nil {
			t.Fatalf("with the password %s: %v", now, err)
		}
		_ = c.Close()
		l, err := m.Listen(t.Context())
		if err != nil {
			t.Fatalf("with the password %s: %v", now, err)
		}
		_ = l.Close()
	}
}

func TestAWrongPasswordIsAnErrorOfTheDial(t *testing.T) {
	s := miniredis.RunT(t)
	s.RequireAuth("right")
	m, _ := NewRedis(s.Addr(), RedisOptions{Password: password("wrong")})
	if _, err := m.Dial(t.Context(), 0); err == nil {
		t.Fatal("no error")
	}
	dial(t, s.Addr(), RedisOptions{Password: password("right")})
	m, _ = NewRedis(s.Addr(), RedisOptions{})
	if _, err := m.Dial(t.Context(), 0); err == nil {
		t.Fatal("no error without a password")
	}
}

// A URL may name the user, and leave the password to a file.
func TestTheUserOfAURLIsKept(t *testing.T) {
	s := miniredis.RunT(t)
	s.RequireUserAuth("locks", "right")
	dial(t, "redis://locks@"+s.Addr(), RedisOptions{Password: password("right")})
	dial(t, "redis://locks@"+s.Addr(), RedisOptions{Username: "another", Password: password("right")})
	dial(t, s.Addr(), RedisOptions{Username: "locks", Password: password("right")})
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	m, _ := NewRedis(addr, RedisOptions{})
	var op *net.OpError
	if _, err := m.Dial(t.Context(), 0); !errors.As(err, &op) {
		t.Fatalf("got %v", err)
	}
}

// echoHello is a server that answers the handshake and then nothing more.
func echoHello(t *testing.T) net.Listener {
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
		defer func() { _ = c.Close() }()
		buf := make([]byte, 4096)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			switch in := string(buf[:n]); {
			case strings.Contains(strings.ToLower(in), "hello"):
				_, _ = c.Write([]byte("-ERR unknown command 'HELLO'\r\n"))
			case strings.Contains(strings.ToLower(in), "ping"):
				_, _ = c.Write([]byte("+PONG\r\n"))
			}
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l
}

func TestAnEndlessErrorIsCutOff(t *testing.T) {
	if got := Describe(errors.New(strings.Repeat("x", 1<<20))); len(got) > 2*describedMax {
		t.Errorf("%d bytes", len(got))
	}
}

// What names a port or the time of day would be a new cause with each dial.
func TestTheSameCauseHasTheSameText(t *testing.T) {
	lookup := func(port int) error {
		return &net.OpError{Op: "dial", Err: &net.DNSError{Name: "m1", Err: fmt.Sprintf("read udp 10.0.0.1:%d->10.0.0.2:53: connection refused", port)}}
	}
	expired := func(at string) error {
		cert := &x509.Certificate{NotBefore: time.Unix(0, 0), NotAfter: time.Unix(3600, 0)}
		return &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Cert: cert, Reason: x509.Expired, Detail: "current time " + at}}
	}
	unknown := &net.OpError{Op: "dial", Err: &net.DNSError{Name: "m1", Err: "no such host", IsNotFound: true}}
	for _, c := range []struct {
		one, other error
		want       string
	}{
		{lookup(40000), lookup(40001), "its name cannot be looked up: the name server does not answer, or fails"},
		{expired("noon"), expired("one"), "its certificate is valid only from 1970-01-01 00:00 UTC to 1970-01-01 01:00 UTC"},
		{unknown, unknown, "no such host: no name server knows its name"},
		{io.EOF, io.EOF, "EOF"},
	} {
		for _, err := range []error{c.one, c.other} {
			if got := steady(err).Error(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		}
	}
}
