package integration

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// proxyBinary is the lockproxy under test, built once.
var proxyBinary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if harness.HaveRedis() != nil {
		return m.Run() // every test that needs it says so itself, in requireRedis
	}
	dir, err := os.MkdirTemp("", "lockproxy-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if proxyBinary, err = harness.BuildProxy(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// requireRedis skips the test where redis-server is missing, and fails it there with LOCKPROXY_REQUIRE_REDIS=1.
func requireRedis(t testing.TB) {
	t.Helper()
	if err := harness.HaveRedis(); err != nil {
		missing(t, "LOCKPROXY_REQUIRE_REDIS", "redis-server cannot be run (%v): nothing was tested against real masters", err)
	}
}

// requireOneVersion skips what needs masters that agree on something that depends on their version.
func requireOneVersion(t *testing.T, on string) {
	t.Helper()
	if harness.MasterServer(0) != harness.MasterServer(1) {
		t.Skip("NOT RUN: masters of several versions do not agree on " + on)
	}
}

// missing skips the test, or fails it if the environment variable demands what is missing.
func missing(t testing.TB, variable, format string, args ...any) {
	t.Helper()
	if os.Getenv(variable) == "1" {
		t.Fatalf(format+"; "+variable+"=1 demands it", args...)
	}
	t.Skipf("NOT RUN: "+format, args...)
}

// startMasters starts n empty masters that end with the test.
func startMasters(t testing.TB, n int, extra ...string) []*harness.Redis {
	t.Helper()
	requireRedis(t)
	masters, err := harness.StartRedises(n, extra...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { harness.StopAll(masters) })
	return masters
}

var versionField = regexp.MustCompile(`redis_version:(\d+)\.`)

// majorOf returns the major version of Redis that a server says it is compatible with.
func majorOf(t testing.TB, r *harness.Redis) int {
	t.Helper()
	info, err := r.Do(0, "INFO", "server")
	if err != nil {
		t.Fatal(err)
	}
	found := versionField.FindSubmatch(info)
	if found == nil {
		t.Fatalf("%s does not say its version: %q", r.Addr, info)
	}
	major, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return major
}

// The proxies under test are patient: on a busy machine a master, or the proxy, may get no processor for much longer than
// the defaults of 100 ms and 50 ms forgive, and a vote that is late for that reason is nothing that a test is about.
const (
	instanceTimeout = 500 * time.Millisecond
	grace           = 500 * time.Millisecond
)

func patient(flags ...string) []string {
	return append([]string{"--instance-timeout", instanceTimeout.String(), "--grace", grace.String()}, flags...)
}

// startProxy starts a patient proxy in front of the addresses. Further flags win. At the end of the test it must stop by
// SIGTERM with status 0.
func startProxy(t testing.TB, masters []string, flags ...string) *harness.Proxy {
	t.Helper()
	return startBinary(t, proxyBinary, masters, flags...)
}

// startBinary is startProxy for another binary.
func startBinary(t testing.TB, bin string, masters []string, flags ...string) *harness.Proxy {
	t.Helper()
	p, err := harness.StartProxy(bin, masters, patient(flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	stopAtTheEnd(t, p)
	return p
}

// stopAtTheEnd stops a proxy when the test is over. If that has failed, it shows what the proxy has said.
func stopAtTheEnd(t testing.TB, p *harness.Proxy) {
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("stop the proxy: %v", err)
		}
		if t.Failed() {
			t.Logf("output of the proxy:\n%s", p.Output())
		}
	})
}

// dial connects a raw client that closes with the test.
func dial(t testing.TB, addr string) *harness.Conn {
	t.Helper()
	c, err := harness.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// expect sends a command and demands this raw reply.
func expect(t testing.TB, c *harness.Conn, want string, args ...string) {
	t.Helper()
	got, err := c.Do(args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	if string(got) != want {
		t.Fatalf("%q: got %q, want %q", args, got, want)
	}
}

// direct sends a command past the proxy, to every server.
func direct(t testing.TB, servers []*harness.Redis, args ...string) {
	t.Helper()
	for _, r := range servers {
		reply, err := r.Do(0, args...)
		if err != nil || reply[0] == '-' {
			t.Fatalf("%q on %s: %q, %v", args, r.Addr, reply, err)
		}
	}
}

// eventually polls until check returns nil, and fails the test at the deadline. It returns how long it took.
func eventually(t testing.TB, deadline time.Duration, what string, check func() error) time.Duration {
	t.Helper()
	start := time.Now()
	if err := harness.Poll(deadline, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return time.Since(start)
}

// keysLeft returns an error that lists the clients' keys that any of the servers holds.
func keysLeft(servers ...*harness.Redis) error {
	var left []string
	for _, r := range servers {
		keys, err := r.LockKeys()
		if err != nil {
			return err
		}
		for _, k := range keys {
			left = append(left, fmt.Sprintf("%s on %s", k, r.Addr))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%d keys left: %s", len(left), strings.Join(left[:min(len(left), 10)], ", "))
	}
	return nil
}

// seed returns a new seed, or that of LOCKPROXY_SEED, which plays a failure again.
func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("LOCKPROXY_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// hello asks for a version of RESP, or for none if it is empty.
func hello(t testing.TB, version string, conns ...*harness.Conn) {
	t.Helper()
	for _, c := range conns {
		if version == "" {
			continue
		}
		if reply, err := c.Do("HELLO", version); err != nil || reply[0] == '-' {
			t.Fatalf("HELLO %s: %q, %v", version, reply, err)
		}
	}
}

// together runs f in n goroutines and waits for all of them.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// The scripts of the Redis documentation.
const (
	compareAndDelete = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	compareAndExpire = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`
)
