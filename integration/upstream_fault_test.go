package integration

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockproxy/integration/harness"
)

const gone = 15 * time.Second // what a busy machine may take to notice something

// blocked waits until so many clients of the server are blocked.
func blocked(t *testing.T, r *harness.Redis, n int) {
	t.Helper()
	eventually(t, gone, "clients that are blocked", func() error {
		reply, err := r.Do(0, "INFO", "clients")
		if want := fmt.Sprintf("blocked_clients:%d\r\n", n); err == nil && !bytes.Contains(reply, []byte(want)) {
			err = fmt.Errorf("want %s", want)
		}
		return err
	})
}

func TestWhoHangsUpLeavesNothingUpstream(t *testing.T) {
	f := startFront(t)
	for _, request := range [][]string{
		{"BLPOP", "queue", "0"}, {"XREAD", "BLOCK", "0", "STREAMS", "stream", "$"}, {"BZPOPMIN", "z", "0"},
	} {
		c := dial(t, f.proxy.Addr)
		if err := c.Send(harness.Encode(nil, request...)); err != nil {
			t.Fatal(err)
		}
		blocked(t, f.upstream, 1)
		_ = c.Close()
		blocked(t, f.upstream, 0)
	}
	// Who hangs up in the midst of a request has sent none.
	c := dial(t, f.proxy.Addr)
	expect(t, c, "+OK\r\n", "SET", "half", "1")
	half := harness.Encode(nil, "SET", "half", "2")
	if err := c.Send(half[:len(half)-4]); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	eventually(t, gone, "connections to the upstream", func() error {
		c, err := harness.Dial(f.proxy.Addr)
		if err != nil {
			return err
		}
		defer c.Close()
		reply, err := c.Do("INFO", "lockproxy")
		if err == nil && !bytes.Contains(reply, []byte("upstream_connections:0\r\n")) {
			err = fmt.Errorf("%s", reply)
		}
		return err
	})
	if reply, err := f.upstream.Do(0, "GET", "half"); err != nil || string(reply) != "$1\r\n1\r\n" {
		t.Fatalf("GET: %q, %v", reply, err)
	}
}

func TestBlockedClientsAreServedAndLocksWaitForThem(t *testing.T) {
	f := startFront(t)
	c, other := dial(t, f.proxy.Addr), dial(t, f.proxy.Addr)
	raw := harness.Encode(nil, "BLPOP", "queue", "0")
	raw = harness.Encode(raw, "SET", "lock:after", "tok", "NX", "PX", "20000")
	raw = harness.Encode(raw, "PING")
	if err := c.Send(raw); err != nil {
		t.Fatal(err)
	}
	blocked(t, f.upstream, 1)
	expect(t, other, "$-1\r\n", "GET", "lock:after") // as on one Redis, what comes behind has not run
	expect(t, other, ":1\r\n", "RPUSH", "queue", "x")
	for _, want := range []string{"*2\r\n$5\r\nqueue\r\n$1\r\nx\r\n", "+OK\r\n", "+PONG\r\n"} {
		if reply, err := c.Reply(); err != nil || string(reply) != want {
			t.Fatalf("got %q, %v, want %q", reply, err, want)
		}
	}
	// CLIENT KILL reaches one that is blocked upstream.
	reply, err := c.Do("CLIENT", "ID")
	id, ok := harness.Int(reply)
	if err != nil || !ok {
		t.Fatalf("CLIENT ID: %q, %v", reply, err)
	}
	if err := c.Send(harness.Encode(nil, "BLPOP", "queue", "0")); err != nil {
		t.Fatal(err)
	}
	blocked(t, f.upstream, 1)
	expect(t, other, ":1\r\n", "CLIENT", "KILL", "ID", fmt.Sprint(id))
	blocked(t, f.upstream, 0)
	if err := c.ExpectClosed(); err != nil {
		t.Fatal(err)
	}
}

func TestLocksGoOnWithoutTheUpstream(t *testing.T) {
	f := startFront(t)
	idle, blocks, listens, watches := dial(t, f.proxy.Addr), dial(t, f.proxy.Addr), dial(t, f.proxy.Addr), dial(t, f.proxy.Addr)
	expect(t, idle, "+OK\r\n", "SET", "data", "1")
	if err := blocks.Send(harness.Encode(nil, "BLPOP", "queue", "0")); err != nil {
		t.Fatal(err)
	}
	blocked(t, f.upstream, 1)
	expect(t, listens, "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", "SUBSCRIBE", "c")
	expect(t, watches, "+OK\r\n", "WATCH", "data")
	f.upstream.Kill()
	for name, c := range map[string]*harness.Conn{"blocked": blocks, "subscribed": listens, "watching": watches} {
		if err := c.ExpectClosed(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	eventually(t, gone, "the error", func() error {
		reply, err := idle.Do("SET", "data", "2")
		if err != nil { // that command was sent when nobody had heard of it yet, and this client was told like the others
			idle = dial(t, f.proxy.Addr)
		}
		if want := "-LOADING upstream " + f.upstream.Addr + ": connection refused\r\n"; err != nil || string(reply) != want {
			return fmt.Errorf("got %q, %w, want %q", reply, err, want)
		}
		return nil
	})
	expect(t, idle, "+OK\r\n", "SET", "lock:1", "tok", "NX", "PX", "30000")
	expect(t, idle, ":1\r\n", "EVAL", compareAndDelete, "1", "lock:1", "tok")
	expect(t, idle, "*3\r\n$9\r\nsubscribe\r\n$22\r\nlock_channel:{lock:22}\r\n:1\r\n", "SUBSCRIBE", "lock_channel:{lock:22}")
	expect(t, idle, "*3\r\n$11\r\nunsubscribe\r\n$22\r\nlock_channel:{lock:22}\r\n:0\r\n", "UNSUBSCRIBE")
	if reply, err := idle.Do("INFO"); err != nil || !bytes.Contains(reply, []byte("redis_mode:standalone")) {
		t.Errorf("INFO: %q, %v", reply, err)
	}
	if err := f.upstream.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, gone, "the upstream is found again", func() error {
		reply, err := idle.Do("SET", "data", "3")
		if err == nil && string(reply) != "+OK\r\n" {
			err = fmt.Errorf("%q", reply)
		}
		return err
	})
	expect(t, idle, "$1\r\n3\r\n", "GET", "data")
}

// Libraries that wait for a Redis that is away wait for an upstream that is, though lockproxy is there: they go by the error.
func TestClientsThatTryAgainOutliveTheUpstreamsRestart(t *testing.T) {
	f := startFront(t)
	c := redis.NewClient(&redis.Options{Addr: f.proxy.Addr, MaxRetries: 1000, MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 10 * time.Millisecond})
	defer c.Close()
	f.upstream.Kill()
	done := make(chan error, 2)
	go func() { done <- c.Set(t.Context(), "data", "1", 0).Err() }()
	go func() { done <- c.JSONGet(t.Context(), "data", "$").Err() }() // what lockproxy does not know
	watch := dial(t, f.proxy.Addr)
	eventually(t, gone, "errors", func() error {
		reply, err := watch.Do("INFO", "lockproxy")
		if err == nil && regexp.MustCompile(`upstream_errors:[0-9]\r`).Match(reply) {
			err = fmt.Errorf("%s", reply)
		}
		return err
	})
	if err := f.upstream.Restart(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-done; err != nil && !strings.Contains(err.Error(), "unknown command") {
			t.Error(err)
		}
	}
}

// The log has one line when the upstream goes and one when it is back, however many clients notice.
func TestTheLogHasOneLineForAnUpstreamThatGoesAndOneForItsReturn(t *testing.T) {
	f := startFront(t)
	f.upstream.Kill()
	clients := make([]*harness.Conn, 20)
	for i := range clients {
		clients[i] = dial(t, f.proxy.Addr)
	}
	if !strings.Contains(f.proxy.Output(), " upstream="+f.upstream.Addr+" admin=off\n") {
		t.Errorf("the upstream is not named at the start:\n%s", f.proxy.Output())
	}
	logged := func(text string, want int) {
		t.Helper()
		eventually(t, gone, text, func() error {
			for _, c := range clients {
				if reply, err := c.Do("GET", "data"); err != nil || reply[0] != '-' && reply[0] != '$' {
					return fmt.Errorf("%q, %w", reply, err)
				}
			}
			if out := f.proxy.Output(); strings.Count(out, text) != want {
				return fmt.Errorf("want it %d times:\n%s", want, out)
			}
			return nil
		})
	}
	went := `"the upstream cannot be used: its commands get an error, or wait; locks go on" upstream=` + f.upstream.Addr + ` cause="connection refused"`
	returned := `"the upstream can be used again" upstream=` + f.upstream.Addr
	logged(went, 1)
	if err := f.upstream.Restart(); err != nil {
		t.Fatal(err)
	}
	logged(returned, 1)
	logged(went, 1)
	// A proxy that starts without its upstream says so, and begins.
	f.upstream.Kill()
	if err := errors.Join(f.proxy.Stop(), f.proxy.Start()); err != nil {
		t.Fatal(err)
	}
	for i := range clients {
		clients[i] = dial(t, f.proxy.Addr)
	}
	logged(went, 1)
	eventually(t, gone, "a lock", func() error {
		reply, err := clients[0].Do("SET", "lock:1", "tok", "PX", "30000")
		if err == nil && string(reply) != "+OK\r\n" {
			err = fmt.Errorf("%q", reply)
		}
		return err
	})
}

func TestAnUpstreamThatIsRestartedIsNoticedByIdleClients(t *testing.T) {
	f := startFront(t)
	c := dial(t, f.proxy.Addr)
	expect(t, c, "+OK\r\n", "CLIENT", "SETNAME", "worker")
	expect(t, c, "+OK\r\n", "SELECT", "7")
	expect(t, c, "+OK\r\n", "SET", "data", "1")
	if err := f.upstream.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, gone, "the connection that broke is noticed", func() error {
		other, err := harness.Dial(f.proxy.Addr)
		if err != nil {
			return err
		}
		defer other.Close()
		reply, err := other.Do("PING")
		if err == nil && string(reply) != "+PONG\r\n" {
			err = fmt.Errorf("%q", reply)
		}
		return err
	})
	// The proxy hears of it from the kernel at some time; until then a command costs the client its connection.
	reply, err := c.Do("SET", "data", "2")
	if err != nil {
		c = dial(t, f.proxy.Addr)
		expect(t, c, "+OK\r\n", "CLIENT", "SETNAME", "worker")
		expect(t, c, "+OK\r\n", "SELECT", "7")
		expect(t, c, "+OK\r\n", "SET", "data", "2")
	} else if string(reply) != "+OK\r\n" {
		t.Fatalf("SET: %q", reply)
	}
	if reply, err := f.upstream.Do(7, "GET", "data"); err != nil || string(reply) != "$1\r\n2\r\n" {
		t.Fatalf("database 7 has %q, %v", reply, err)
	}
	if reply, err := f.upstream.Do(0, "CLIENT", "LIST"); err != nil || !bytes.Contains(reply, []byte("name=worker ")) {
		t.Fatalf("CLIENT LIST: %q, %v", reply, err)
	}
}

func TestMessagesOfBothSidesArriveOnce(t *testing.T) {
	f := startFront(t)
	for _, proto := range []string{"2", "3"} {
		t.Run("RESP"+proto, func(t *testing.T) {
			c, other := dial(t, f.proxy.Addr), dial(t, f.proxy.Addr)
			hello(t, proto, c)
			kind := map[string]string{"2": "*", "3": ">"}[proto]
			frame := func(words ...string) string {
				b := kind + fmt.Sprint(len(words)) + "\r\n"
				for _, w := range words {
					if n, ok := strings.CutPrefix(w, ":"); ok {
						b += ":" + n + "\r\n"
						continue
					}
					b += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
				}
				return b
			}
			next := func(want string) {
				t.Helper()
				if reply, err := c.Reply(); err != nil || string(reply) != want {
					t.Fatalf("got %q, %v, want %q", reply, err, want)
				}
			}
			expect(t, c, frame("subscribe", "news", ":1"), "SUBSCRIBE", "news")
			expect(t, c, frame("subscribe", "channel:{lock:1}", ":2"), "SUBSCRIBE", "channel:{lock:1}")
			expect(t, c, frame("psubscribe", "n[aeiou]w*", ":3"), "PSUBSCRIBE", "n[aeiou]w*")
			expect(t, c, frame("ssubscribe", "shard", ":1"), "SSUBSCRIBE", "shard")
			publish := func(addr, want string, args ...string) {
				t.Helper()
				expect(t, dial(t, addr), want, args...)
			}
			publish(f.proxy.Addr, ":2\r\n", "PUBLISH", "news", "through the proxy")
			next(frame("message", "news", "through the proxy"))
			next(frame("pmessage", "n[aeiou]w*", "news", "through the proxy"))
			publish(f.upstream.Addr, ":2\r\n", "PUBLISH", "news", "past the proxy")
			next(frame("message", "news", "past the proxy"))
			next(frame("pmessage", "n[aeiou]w*", "news", "past the proxy"))
			publish(f.upstream.Addr, ":1\r\n", "SPUBLISH", "shard", "s")
			next(frame("smessage", "shard", "s"))
			// As Redisson's unlock: a script on a lock publishes at the masters.
			expect(t, other, "+OK\r\n", "SET", "lock:1", "tok", "NX", "PX", "20000")
			expect(t, other, ":1\r\n", "EVAL", "if redis.call('get',KEYS[1])==ARGV[1] then redis.call('del',KEYS[1]);"+
				"redis.call('publish',KEYS[2],'free');return 1 end;return 0", "2", "lock:1", "channel:{lock:1}", "tok")
			next(frame("message", "channel:{lock:1}", "free"))
			expect(t, c, frame("unsubscribe", "news", ":2"), "UNSUBSCRIBE", "news")
			expect(t, c, frame("punsubscribe", "n[aeiou]w*", ":1"), "PUNSUBSCRIBE")
			expect(t, c, frame("unsubscribe", "channel:{lock:1}", ":0"), "UNSUBSCRIBE")
			expect(t, c, frame("sunsubscribe", "shard", ":0"), "SUNSUBSCRIBE")
			publish(f.upstream.Addr, ":0\r\n", "PUBLISH", "news", "nobody")
			expect(t, c, "+OK\r\n", "SET", "data", "x")
			expect(t, c, "$1\r\nx\r\n", "GET", "data")
		})
	}
}

func TestMonitorStreams(t *testing.T) {
	f := startFront(t)
	c := dial(t, f.proxy.Addr)
	expect(t, c, "+OK\r\n", "MONITOR")
	if _, err := f.upstream.Do(0, "SET", "seen", "x"); err != nil {
		t.Fatal(err)
	}
	for {
		line, err := c.Reply()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(line, []byte(`"SET" "seen" "x"`)) {
			return
		}
	}
}

// What MONITOR shows comes between replies, and takes the place of none: not of those either that the proxy asks for itself.
func TestMonitorShowsBesideReplies(t *testing.T) {
	f := startFront(t)
	c, writer := dial(t, f.proxy.Addr), dial(t, f.upstream.Addr)
	expect(t, c, "+OK\r\n", "MONITOR")
	const rounds, refused = 100, "-ERR Replica can't interact with the keyspace\r\n" // for such is a client that monitors
	for range rounds {
		if err := errors.Join(writer.Send([]byte("SET seen x\r\n")), c.Send([]byte("SELECT 1\r\nDBSIZE\r\n"))); err != nil {
			t.Fatal(err)
		}
		if reply, err := writer.Reply(); err != nil || string(reply) != "+OK\r\n" {
			t.Fatalf("%q, %v", reply, err)
		}
	}
	var replies strings.Builder
	for shown := 0; shown < rounds || strings.Count(replies.String(), "\r\n") < 2*rounds; {
		line, err := c.Reply()
		switch {
		case err != nil:
			t.Fatalf("%v after %q", err, replies.String())
		case bytes.Contains(line, []byte(`"SET" "seen" "x"`)):
			shown++
		case !bytes.Contains(line, []byte(` [`)):
			replies.Write(line)
		}
	}
	if got := replies.String(); got != strings.Repeat("+OK\r\n"+refused, rounds) {
		t.Errorf("the replies are %q", got)
	}
}

func TestUpstreamWithPasswordAndDatabase(t *testing.T) {
	up := startMasters(t, 1)[0]
	direct(t, []*harness.Redis{up}, "CONFIG", "SET", "requirepass", "s3cr3t")
	masters := startMasters(t, 3)
	with := func(url string) *harness.Conn {
		p, err := harness.LaunchProxy(proxyBinary, harness.Addrs(masters), patient("--upstream", url, "--lock-keys", "lock:*")...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Stop(); err != nil {
				t.Errorf("stop the proxy: %v", err)
			}
		})
		return dial(t, p.Addr)
	}
	c := with("redis://:s3cr3t@" + up.Addr + "/3")
	expect(t, c, "+OK\r\n", "SET", "k", "three")
	eventually(t, gone, "a quorum", func() error {
		reply, err := c.Do("SET", "lock:db", "tok", "NX", "PX", "20000")
		if err == nil && string(reply) != "+OK\r\n" {
			err = fmt.Errorf("%q", reply)
		}
		return err
	})
	expect(t, c, "+OK\r\n", "SELECT", "0")
	expect(t, c, "$-1\r\n", "GET", "k")
	expect(t, c, "$-1\r\n", "GET", "lock:db")
	// Who names the database and who relies on the URL's have the same data, and the same locks.
	expect(t, c, "+OK\r\n", "SELECT", "3")
	expect(t, c, "$-1\r\n", "SET", "lock:db", "other", "NX", "PX", "20000")
	expect(t, c, "+OK\r\n", "SELECT", "0")
	expect(t, c, "+RESET\r\n", "RESET")
	expect(t, c, "$5\r\nthree\r\n", "GET", "k")
	expect(t, c, "$3\r\ntok\r\n", "GET", "lock:db")
	wrong := "-ERR the user and password in lockproxy's setting upstream are missing or wrong: upstream " + up.Addr + ": "
	expect(t, with("redis://:wrong@"+up.Addr), wrong+"WRONGPASS invalid username-password pair or user is disabled.\r\n", "GET", "k")
	expect(t, with("redis://"+up.Addr), wrong+"NOAUTH Authentication required.\r\n", "GET", "k")
}

func TestAnEmptyNameIsAName(t *testing.T) {
	f := startFront(t, "--lock-keys", "*")
	c := dial(t, f.proxy.Addr)
	if reply, err := c.Do("LPUSH", "", "x"); err != nil || !bytes.HasPrefix(reply, []byte("-ERR")) {
		t.Errorf("LPUSH on a lock's name: %q, %v", reply, err)
	}
	if reply, err := f.upstream.Do(0, "EXISTS", ""); err != nil || string(reply) != ":0\r\n" {
		t.Errorf("it went upstream: %q, %v", reply, err)
	}
}
