package held

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockproxy/cmd/lockproxy/shell/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fake is a proxy that answers as the test says. answer gets a command's words, and returns the reply; "" breaks the connection.
type fake struct {
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex // guards all below
	answer func(words []string) string
	conns  []net.Conn
	got    []string // the first word of each command
}

func newFake(t *testing.T, answer func(words []string) string) *fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{listener: l, answer: answer}
	f.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.conns = append(f.conns, c)
			f.mu.Unlock()
			f.running.Go(func() { f.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		f.mu.Lock()
		for _, c := range f.conns {
			_ = c.Close()
		}
		f.mu.Unlock()
		f.running.Wait()
	})
	return f
}

func (f *fake) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		words, err := readCommand(r)
		if err != nil {
			return
		}
		reply := "%0\r\n"
		if words[0] != "HELLO" {
			f.mu.Lock()
			f.got = append(f.got, words[0])
			answer := f.answer
			f.mu.Unlock()
			reply = answer(words)
		}
		if reply == "" {
			return
		}
		if _, err := c.Write([]byte(reply)); err != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) ([]string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.Trim(line, "*\r\n"))
	words := make([]string, n)
	for i := range words {
		_, _ = r.ReadString('\n')
		word, _ := r.ReadString('\n')
		words[i] = strings.TrimSpace(word)
	}
	return words, err
}

func (f *fake) proxies() *client.Proxies {
	return &client.Proxies{Addrs: []string{f.listener.Addr().String()}}
}

func granted(validity int) string {
	return fmt.Sprintf("%%3\r\n+token\r\n+t\r\n+fence\r\n:7\r\n+validity\r\n:%d\r\n", validity)
}

func take(t *testing.T, f *fake, ttl time.Duration) *Lock {
	t.Helper()
	l, err := Take(f.proxies(), Request{Key: "k", TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	return l
}

// However late the reply, and however long a validity it promises, the time counts from before the request, and for no more than the TTL.
func TestValidityIsCountedFromBeforeTheRequest(t *testing.T) {
	const ttl = 10 * time.Second
	for _, validity := range []int{9000, 10000, math.MaxInt32} {
		f := newFake(t, func([]string) string {
			time.Sleep(300 * time.Millisecond) // the way of the reply
			return granted(validity)
		})
		l := take(t, f, ttl)
		if left := l.Until().Left(); left > min(time.Duration(validity)*time.Millisecond, ttl)-300*time.Millisecond || left < 5*time.Second {
			t.Errorf("of a validity of %d ms, %v is left", validity, left)
		}
		if l.Fence != 7 {
			t.Errorf("the fence is %d", l.Fence)
		}
	}
}

// An extension that fails leaves what was promised; the next that succeeds, through a new connection, promises more.
func TestAnExtensionThatFailsIsTriedAgain(t *testing.T) {
	for _, failure := range []string{"-NOQUORUM 1 of 3 masters answered\r\n", "", "?\r\n"} {
		const ttl = 600 * time.Millisecond
		var mu sync.Mutex
		n := 0
		f := newFake(t, func(words []string) string {
			mu.Lock()
			defer mu.Unlock()
			switch n++; {
			case words[0] == "LOCK":
				return granted(590)
			case n == 2:
				return failure
			}
			return ":590\r\n"
		})
		l := take(t, f, ttl)
		first := l.Until()
		deadline := time.Now().Add(30 * time.Second)
		for l.Until() == first && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		select {
		case <-l.Lost():
			t.Errorf("after %q it is lost: %s", failure, l.Why())
		default:
		}
		if l.Until() <= first || l.Why() != "" {
			t.Errorf("after %q it is not extended: %s", failure, l.Why())
		}
	}
}

func TestALockThatIsRefusedAnExtensionIsLost(t *testing.T) {
	for _, refusal := range []string{":0\r\n", "-LOST the lock on k was lost\r\n"} {
		f := newFake(t, func(words []string) string {
			if words[0] == "LOCK" {
				return granted(290)
			}
			return refusal
		})
		l := take(t, f, 300*time.Millisecond)
		select {
		case <-l.Lost():
		case <-time.After(30 * time.Second):
			t.Errorf("after %q it is not lost", refusal)
		}
		if l.Why() != errLost.Error() {
			t.Errorf("after %q: %s", refusal, l.Why())
		}
	}
}

// A lock that was waited for is extended once more before it counts: its reply says nothing of how long it was on its way.
func TestALockThatWasWaitedForIsExtendedFirst(t *testing.T) {
	f := newFake(t, func(words []string) string {
		if words[0] == "LOCK" {
			time.Sleep(400 * time.Millisecond)
			return granted(690)
		}
		return ":690\r\n"
	})
	l := take(t, f, 700*time.Millisecond)
	f.mu.Lock()
	got := fmt.Sprint(f.got)
	f.mu.Unlock()
	if !strings.HasPrefix(got, "[LOCK EXTEND") || l.Until().Left() < 350*time.Millisecond {
		t.Errorf("%s, and %v is left", got, l.Until().Left())
	}
}

func TestWhatKeepsALockFromBeingTaken(t *testing.T) {
	for _, c := range []struct{ reply, want string }{
		{"_\r\n", ErrNotGranted.Error()},
		{"$-1\r\n", ErrNotGranted.Error()},
		{"-NOQUORUM 1 of 3 masters answered\r\n", "NOQUORUM 1 of 3 masters answered"},
		{"-ERR lock TTL exceeds ttl_max\r\n", "ERR lock TTL exceeds ttl_max"},
		{"", "EOF"},
	} {
		f := newFake(t, func([]string) string { return c.reply })
		l, err := Take(f.proxies(), Request{Key: "k", TTL: time.Second})
		if l != nil || err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.reply, err, c.want)
		}
	}
	stop := make(chan struct{})
	waits := make(chan struct{})
	answer := make(chan struct{})
	f := newFake(t, func([]string) string {
		close(waits)
		<-answer
		return "_\r\n"
	})
	go func() {
		<-waits
		close(stop)
	}()
	if _, err := Take(f.proxies(), Request{Key: "k", TTL: time.Second, Wait: time.Hour, Stop: stop}); !errors.Is(err, ErrStopped) {
		t.Errorf("stopped: %v", err)
	}
	close(answer)
}

// A first try may have released the lock though its reply was lost; a lock that was not held at the first try was taken away.
func TestAReleaseTellsWhetherTheLockWasHeld(t *testing.T) {
	for _, c := range []struct {
		replies []string
		held    bool
	}{
		{[]string{":1\r\n"}, true},
		{[]string{":0\r\n"}, false},
		{[]string{"", ":0\r\n"}, true},
		{[]string{"-NOQUORUM x\r\n", ":1\r\n"}, true},
	} {
		var n atomic.Int32
		f := newFake(t, func(words []string) string {
			if words[0] == "LOCK" {
				return granted(9000)
			}
			return c.replies[n.Add(1)-1]
		})
		l, err := Take(f.proxies(), Request{Key: "k", TTL: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		l.Stop()
		if held, err := l.Release(); held != c.held || err != nil {
			t.Errorf("%q: %v, %v", c.replies, held, err)
		}
	}
}
