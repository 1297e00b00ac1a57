package sock_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockproxy/cmd/lockproxy/sock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ends returns both ends of a connection, of which one was accepted by what listening makes of the listener.
func ends(t testing.TB, listening func(net.Listener) net.Listener) (dialed, accepted net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if dialed, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if accepted, err = listening(l).Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = dialed.Close()
		_ = accepted.Close()
	})
	return dialed, accepted
}

// pair returns both ends of a connection, the first of which is wrapped.
func pair(t *testing.T) (wrapped net.Conn, other *net.TCPConn) {
	t.Helper()
	dialed, wrapped := ends(t, sock.Listener)
	if _, plain := wrapped.(*net.TCPConn); plain && runtime.GOOS == "linux" {
		t.Fatal("it is not wrapped")
	}
	return wrapped, dialed.(*net.TCPConn)
}

// What is written arrives whole and in order, much more than the sockets hold, and in both directions at once.
func TestMuchInBothDirections(t *testing.T) {
	c, other := pair(t)
	much := make([]byte, 16<<20)
	for i := range much {
		much[i] = byte(i >> 8 * i)
	}
	var all sync.WaitGroup
	for _, end := range []net.Conn{c, other} {
		all.Go(func() {
			if n, err := end.Write(much); n != len(much) || err != nil {
				t.Errorf("wrote %d, %v", n, err)
			}
		})
		all.Go(func() {
			got := make([]byte, len(much))
			if _, err := io.ReadFull(end, got); err != nil || !bytes.Equal(got, much) {
				t.Errorf("read something else, %v", err)
			}
		})
	}
	all.Wait()
}

func TestTheEndOfTheOtherSide(t *testing.T) {
	c, other := pair(t)
	if _, err := other.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	_ = other.CloseWrite()
	if got, err := io.ReadAll(c); string(got) != "last" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF { //nolint:errorlint // as net has it: not wrapped
		t.Errorf("%d, %v", n, err)
	}
	if n, err := c.Read(nil); n != 0 || err != nil {
		t.Errorf("reading nothing: %d, %v", n, err)
	}
}

func TestReset(t *testing.T) {
	c, other := pair(t)
	_ = other.SetLinger(0)
	_ = other.Close()
	want(t, "read", func() error {
		_, err := c.Read(make([]byte, 1))
		return err
	}, syscall.ECONNRESET)
	want(t, "write", func() error {
		_, err := c.Write([]byte("x"))
		return err
	}, syscall.EPIPE)
}

// want runs an operation that must fail as one of package net does.
func want(t *testing.T, op string, f func() error, cause error) {
	t.Helper()
	err := f()
	var named *net.OpError
	if !errors.Is(err, cause) || !errors.As(err, &named) || named.Op != op {
		t.Errorf("%s: %v, want %v", op, err, cause)
	}
}

func TestDeadlines(t *testing.T) {
	c, _ := pair(t)
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	want(t, "read", func() error {
		_, err := c.Read(make([]byte, 1))
		return err
	}, os.ErrDeadlineExceeded)
	_ = c.SetReadDeadline(time.Time{})

	n := 0
	_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	want(t, "write", func() (err error) {
		n, err = c.Write(make([]byte, 64<<20)) // nobody reads
		return err
	}, os.ErrDeadlineExceeded)
	if n == 0 || n == 64<<20 {
		t.Errorf("%d bytes are said to be written", n)
	}
}

// Close ends who reads and who writes, and who does after it.
func TestClosed(t *testing.T) {
	c, _ := pair(t)
	read := func() error {
		_, err := c.Read(make([]byte, 1))
		return err
	}
	write := func() error {
		_, err := c.Write(make([]byte, 64<<20))
		return err
	}
	var both sync.WaitGroup
	both.Go(func() { want(t, "read", read, net.ErrClosed) })
	both.Go(func() { want(t, "write", write, net.ErrClosed) })
	time.AfterFunc(20*time.Millisecond, func() { _ = c.Close() })
	both.Wait()
	want(t, "read", read, net.ErrClosed)
	want(t, "write", write, net.ErrClosed)
}

// What several write at once does not mix.
func TestWritersTakeTurns(t *testing.T) {
	c, other := pair(t)
	const writers, size = 8, 1 << 20
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() { _, _ = c.Write(bytes.Repeat([]byte{byte(i)}, size)) })
	}
	part := make([]byte, size)
	for range writers {
		if _, err := io.ReadFull(other, part); err != nil {
			t.Fatal(err)
		}
		if bytes.Count(part, part[:1]) != size {
			t.Fatal("two writes are mixed")
		}
	}
	all.Wait()
}

// What is no TCP connection stays what it is.
func TestOthersAreLeftAlone(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	secure := tls.Client(a, &tls.Config{InsecureSkipVerify: true})
	for _, c := range []net.Conn{a, secure} {
		if got := sock.Wrap(c); got != c {
			t.Errorf("%T became %T", c, got)
		}
	}
}

func BenchmarkEcho(b *testing.B) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"plain":   func(c net.Conn) net.Conn { return c },
		"wrapped": sock.Wrap,
	} {
		b.Run(name, func(b *testing.B) {
			client, served := ends(b, func(l net.Listener) net.Listener { return l })
			client, served = wrap(client), wrap(served)
			var echo sync.WaitGroup
			echo.Go(func() {
				_, _ = io.CopyBuffer(struct{ io.Writer }{served}, struct{ io.Reader }{served}, make([]byte, 1024))
			})
			word := make([]byte, 64)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.Write(word); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(client, word); err != nil {
					b.Fatal(err)
				}
			}
			_ = client.Close()
			echo.Wait()
		})
	}
}
