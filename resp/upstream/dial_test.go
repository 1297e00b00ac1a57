package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lockproxy/resp/wire"
)

const patienceMax = 20 * time.Second

// What names a port or the time of day would be a new cause, and a line of the log, with each look of the watcher.
func TestTheSameCauseHasTheSameText(t *testing.T) {
	expired := func(at string) error {
		return &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{
			Cert: &x509.Certificate{}, Reason: x509.Expired, Detail: "current time " + at,
		}}
	}
	lookup := func(port string) error {
		return &net.OpError{Op: "dial", Err: &net.DNSError{Name: "u", Err: "read udp 10.0.0.1:" + port + "->10.0.0.2:53: connection refused"}}
	}
	for _, c := range [][2]error{{expired("noon"), expired("one")}, {lookup("40000"), lookup("40001")}} {
		if one, other := Innermost(c[0]).Error(), Innermost(c[1]).Error(); one != other {
			t.Errorf("%q, and %q a second later", one, other)
		}
	}
}

// One connection that fails, among many at once, says nothing of the server if another was made meanwhile.
func TestAFailureStandsForOthersOnlyIfNobodyConnectedSince(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan struct{})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			b := make([]byte, 100)
			if n, _ := conn.Read(b); strings.Contains(string(b[:n]), "unheard") {
				close(asked)
			} else {
				_, _ = conn.Write([]byte("+OK\r\n"))
			}
		}
	}()
	u := New(Options{Addr: l.Addr().String(), DialTimeout: time.Second})
	unheard := make(chan error)
	go func() {
		_, err := u.Dial(t.Context(), Greeting{Name: "unheard"})
		unheard <- err
	}()
	<-asked
	for _, when := range []string{"before", "after"} {
		conn, err := u.Dial(t.Context(), Greeting{Name: "heard"})
		if err != nil {
			t.Fatalf("%s the other has failed: %v", when, err)
		}
		_ = conn.Close()
		if when == "before" && <-unheard == nil {
			t.Fatal("there was no answer, and no error")
		}
	}
}

// A machine that does not answer must not cost each command of a pipeline the whole DialTimeout.
func TestAFailureStandsForTheNextForAWhile(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var came atomic.Int64
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			came.Add(1)
			_ = conn.Close()
		}
	}()
	u := New(Options{Addr: l.Addr().String()})
	begun := time.Now()
	for range 100 {
		if _, err := u.Dial(t.Context(), Greeting{}); err == nil {
			t.Fatal("nobody answered, and there is a connection")
		}
	}
	if most := 1 + int64(time.Since(begun)/failurePause); came.Load() > most {
		t.Errorf("it connected %d times, want %d at most", came.Load(), most)
	}
}

// A server whose queue of new connections is full drops them silently, and the kernel asks again only after a second.
func TestAConnectionThatTheServerDroppedIsTriedAgain(t *testing.T) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "listener")
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 1)); err != nil {
		t.Fatal(err)
	}
	l, err := net.FileListener(f)
	_ = f.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for { // until there is no room
		conn, err := net.DialTimeout("tcp", l.Addr().String(), 100*time.Millisecond)
		if err != nil {
			break
		}
		defer conn.Close()
	}
	u := New(Options{Addr: l.Addr().String(), DialTimeout: 900 * time.Millisecond})
	time.AfterFunc(100*time.Millisecond, func() { // there is room again
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			go greeted(conn)
		}
	})
	conn, err := u.Dial(t.Context(), Greeting{})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// A server has room for some connections only that it has not looked at. But one that is silent for good does not keep others from
// being made: they may lead to another server.
func TestConnectionsForManyClientsAreMadeInTurns(t *testing.T) {
	for _, tc := range []struct {
		name        string
		dialTimeout time.Duration
		first       int // how many come while none is greeted
	}{{"in turns", time.Minute, turnsMax}, {"though the first are silent", 200 * time.Millisecond, 2*turnsMax + 1}} {
		t.Run(tc.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			const clients = 2*turnsMax + 1
			come := make(chan net.Conn, 100*clients)
			go func() {
				defer close(come)
				for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
					come <- conn
				}
			}()
			u := New(Options{Addr: l.Addr().String(), DialTimeout: tc.dialTimeout})
			u.answered.Store(true)
			var dialing sync.WaitGroup
			for range clients {
				dialing.Go(func() {
					conn, err := u.DialPatiently(t.Context(), Greeting{})
					for ; err != nil && t.Context().Err() == nil; conn, err = u.DialPatiently(t.Context(), Greeting{}) {
					} // on a busy machine it may take too long to connect
					if err == nil {
						_ = conn.Close()
					}
				})
			}
			var silent []net.Conn
			for range tc.first {
				silent = append(silent, <-come)
			}
			if n := len(u.turns); tc.dialTimeout == time.Minute && (n != turnsMax || len(come) > 0) {
				t.Errorf("%d at once, and %d more", n, len(come))
			}
			for _, conn := range silent {
				go greeted(conn)
			}
			go func() {
				for conn := range come {
					go greeted(conn)
				}
			}()
			dialing.Wait()
			if n := len(u.turns); n > 0 {
				t.Errorf("%d turns are not over", n)
			}
		})
	}
}

// Behind an address that was never reached there may be something else, as a server that speaks no TLS, and waits for more.
func TestAServerThatNeverAnsweredIsNotWaitedFor(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u := New(Options{Addr: l.Addr().String(), DialTimeout: 50 * time.Millisecond})
	if _, err := u.DialPatiently(t.Context(), Greeting{}); err == nil || !strings.HasSuffix(err.Error(), NoAnswer) {
		t.Errorf("got %v", err)
	}
}

// Nobody else may have connected yet.
func TestAServerThatHasAnsweredTheWatcherIsWaitedFor(t *testing.T) {
	s := &server{t: t, reply: "+PONG\r\n"}
	s.start()
	defer s.stop()
	var silent atomic.Bool
	waits, goOn := make(chan struct{}), make(chan struct{})
	u := New(Options{Addr: s.addr, DialTimeout: time.Second, Wrap: func(c net.Conn) net.Conn {
		if silent.CompareAndSwap(true, false) {
			close(waits)
			<-goOn
		}
		return c
	}})
	defer u.Close()
	u.watch(slog.New(slog.DiscardHandler), time.Millisecond)
	for end := time.Now().Add(patienceMax); !u.answered.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not noted that it has answered")
		}
	}
	silent.Store(true)
	failed := make(chan error, 1)
	go func() {
		conn, err := u.DialPatiently(t.Context(), Greeting{})
		if err == nil {
			_ = conn.Close()
		}
		failed <- err
	}()
	<-waits
	for len(u.turns) > 0 { // until it has waited for DialTimeout
		time.Sleep(time.Millisecond)
	}
	close(goOn)
	if err := <-failed; err != nil {
		t.Error(err)
	}
}

// Certificates and authorities are renewed while the process runs.
func TestEachConnectionTrustsWhoIsTrustedThen(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	now := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	u := New(Options{Addr: server.Listener.Addr().String(), TLS: func() *tls.Config { return now }})
	if _, err := u.dial(t.Context(), Greeting{}); !errors.Is(err, wire.ErrFraming) { // the server is trusted, and speaks HTTP
		t.Fatal(err)
	}
	now = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if _, err := u.dial(t.Context(), Greeting{}); !isUnknownAuthority(err) {
		t.Errorf("its authority is trusted no more: %v", err)
	}
}

func isUnknownAuthority(err error) bool {
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok
}

func TestAGreetingSaysWhoComes(t *testing.T) {
	pass := func() string { return "pass" }
	for _, tc := range []struct {
		options  Options
		greeting Greeting
		want     [][]string
	}{
		{Options{}, Greeting{}, [][]string{{"PING"}}},
		{Options{Password: pass}, Greeting{}, [][]string{{"AUTH", "pass"}}},
		{Options{Username: "user", Password: pass}, Greeting{RESP3: true, DB: 2, Name: "app"},
			[][]string{{"AUTH", "user", "pass"}, {"HELLO", "3"}, {"SELECT", "2"}, {"CLIENT", "SETNAME", "app"}}},
	} {
		near, far := net.Pipe()
		got := make(chan string, 1)
		go func() {
			b := make([]byte, 1<<10)
			n, _ := far.Read(b)
			got <- string(b[:n])
			_, _ = far.Write([]byte(strings.Repeat("+OK\r\n", len(tc.want))))
		}()
		err := New(tc.options).greet(near, tc.greeting)
		var want []byte
		for _, args := range tc.want {
			want = wire.AppendCommand(want, args...)
		}
		if text := <-got; err != nil || text != string(want) {
			t.Errorf("%q, %v; want %q", text, err, want)
		}
	}
}

// greeted answers the greeting of a client that has nothing else to greet with.
func greeted(conn net.Conn) {
	_, _ = io.ReadFull(conn, make([]byte, len(wire.AppendCommand(nil, "PING"))))
	_, _ = io.WriteString(conn, "+PONG\r\n")
}
