package integration

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// inlines makes one request of each line.
func inlines(lines ...string) string {
	var raw []byte
	for _, line := range lines {
		raw = harness.Encode(raw, strings.Split(line, " ")...)
	}
	return string(raw)
}

// The end of a client's input means to the proxy what it means to Redis, as long as it does not ask for a lock: who pipes
// requests into nc reads all replies, and what would wait is ended.
func TestTheEndOfTheInputIsAsOnRedis(t *testing.T) {
	f := startFront(t)
	for name, raw := range map[string]string{
		"nothing":               "",
		"inline":                "SET half:a x\r\nGET half:a\r\n",
		"shared and not":        inlines("SET half:b 1", "INCR half:b", "MULTI", "INCR half:b", "EXEC", "GET half:b", "PING"),
		"a script":              inlines("SET half:c 1", "EVAL return{redis.call('get',KEYS[1]),1} 1 half:c", "PING"),
		"half a command":        inlines("SET half:d x") + "*2\r\n$3\r\nGET\r\n$6\r\nhalf",
		"many":                  strings.Repeat(inlines("INCR half:f", "ECHO x", "GET half:f"), 500),
		"a list that is empty":  inlines("PING", "GET half:g", "BLPOP half:g 0", "SET half:g x", "PING"),
		"a list that is not":    inlines("RPUSH half:h x", "BLPOP half:h 0", "PING", "GET half:i"),
		"a stream with nothing": inlines("XADD half:j 1-1 a b", "XREAD BLOCK 0 STREAMS half:j $", "PING"),
		"a stream":              inlines("XADD half:k 1-1 a b", "XREAD BLOCK 0 STREAMS half:k 0", "PING"),
		"replicas":              inlines("SET half:l x", "WAIT 1 0", "PING"),
		"a subscription":        inlines("SUBSCRIBE half:news", "PING"),
		"the end":               inlines("SET half:m x", "QUIT", "GET half:m"),
		"no protocol":           inlines("SET half:n x") + "*x\r\n",
	} {
		for range 3 {
			want, got := piped(t, f.oracle.Addr, raw), piped(t, f.proxy.Addr, raw)
			if want != got {
				t.Errorf("%s: got %.300q, want %.300q", name, got, want)
			}
			for _, r := range []*harness.Redis{f.oracle, f.upstream} {
				if _, err := r.Clear(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if out := f.proxy.Output(); strings.Contains(out, "connection ended") {
		t.Errorf("what waits was not ended at once: %s", out)
	}
	// Redis writes 64 KB at once, and forgets what is left when it meets the end.
	const size = 300_000
	got := piped(t, f.proxy.Addr, inlines("SETRANGE half:o 299999 x", "GET half:o", "EVAL return(redis.call('get',KEYS[1])) 1 half:o"))
	bulk := "$300000\r\n" + strings.Repeat("\x00", size-1) + "x\r\n"
	if got != ":300000\r\n"+bulk+bulk {
		t.Errorf("large replies: %d bytes: %.100q", len(got), got)
	}
}

// piped sends all, ends its input, and returns what comes until the connection ends.
func piped(t *testing.T, addr, raw string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, err = io.WriteString(conn, raw)
	if err == nil {
		err = conn.(*net.TCPConn).CloseWrite()
	}
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Errorf("%.100q: %v after %.300q", raw, err, all)
	}
	return string(all)
}

// A lock is the exception: that of a client that is gone, which looks the same, would stay until its TTL.
func TestNoLockIsGivenAfterTheEndOfTheInput(t *testing.T) {
	f := startFront(t)
	c := dial(t, f.proxy.Addr)
	for _, raw := range []string{"SET lock:half t NX PX 60000\r\n", inlines("SETNX lock:half t"), inlines("LOCK lock:half 60000"),
		inlines("MULTI", "SET lock:half t", "EXEC")} {
		got := ""
		for tries := 0; !strings.Contains(got, "\r\n-ERR no lock is given to a client that has shut down its sending side"); tries++ {
			got = piped(t, f.proxy.Addr, inlines("SET half:before x")+raw+inlines("GET half:before"))
			if tries > 100 || !strings.HasPrefix(got, "+OK\r\n") || !strings.HasSuffix(got, "\r\n$1\r\nx\r\n") {
				t.Fatalf("%q: got %q", raw, got)
			}
			_, _ = c.Do("DEL", "lock:half") // it may have been quicker than the end
		}
		if err := harness.Poll(time.Minute, func() error {
			for _, m := range f.masters {
				if keys, err := m.LockKeys(); err != nil || len(keys) > 0 {
					return fmt.Errorf("%q, %w", keys, errors.Join(err))
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	// What takes none is done.
	expect(t, c, "+OK\r\n", "SET", "lock:half", "t", "NX", "PX", "60000")
	raw := inlines("SET lock:half other NX PX 60000", "GET lock:half", "PEXPIRE lock:half 50000") +
		string(harness.Encode(nil, "EVAL", compareAndDelete, "1", "lock:half", "t")) + inlines("EXISTS lock:half")
	if got, want := piped(t, f.proxy.Addr, raw), "$-1\r\n$1\r\nt\r\n:1\r\n:1\r\n:0\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
