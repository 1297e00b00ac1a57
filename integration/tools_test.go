package integration

import (
	"context"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

func TestRedisCliLocks(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		missing(t, "LOCKPROXY_REQUIRE_REDIS", "redis-cli is not installed")
	}
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	for _, protocol := range []string{"-2", "-3"} {
		cli := func(want string, args ...string) {
			t.Helper()
			_, port, _ := net.SplitHostPort(proxy.Addr)
			out, err := exec.Command("redis-cli", append([]string{protocol, "--no-raw", "-p", port}, args...)...).CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Errorf("redis-cli %s %q: got %s, %v, want %s", protocol, args, got, err, want)
			}
		}
		cli(`OK`, "SET", "job:7", "me", "NX", "PX", "30000")
		cli(`(nil)`, "SET", "job:7", "you", "NX", "PX", "30000")
		cli(`"me"`, "GET", "job:7")
		cli(`(integer) 0`, "EVAL", compareAndDelete, "1", "job:7", "you")
		cli(`(integer) 1`, "EVAL", compareAndDelete, "1", "job:7", "me")
		cli(`OK`, "-n", "1", "SET", "job:7", "you", "NX", "PX", "30000")
		cli(`(nil)`, "GET", "job:7")
		cli(`(integer) 1`, "-n", "1", "DEL", "job:7")
	}
}

func TestRedisBenchmarkRuns(t *testing.T) {
	if _, err := exec.LookPath("redis-benchmark"); err != nil {
		missing(t, "LOCKPROXY_REQUIRE_REDIS", "redis-benchmark is not installed")
	}
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	_, port, _ := net.SplitHostPort(proxy.Addr)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // it would wait for a missing reply for ever
	defer cancel()
	for _, args := range [][]string{
		{"-t", "ping,set,get"},
		{"-t", "set,get", "-P", "16"},
		{"-t", "set", "-3"},
		{"SET", "key:__rand_int__", "tok", "NX", "PX", "30000"},
		{"-P", "16", "SET", "key:__rand_int__", "tok", "NX", "PX", "30000"},
		{"EVAL", compareAndDelete, "1", "key:__rand_int__", "tok"},
	} {
		words := append([]string{"-p", port, "-c", "20", "-n", "2000", "-r", "1000", "-q"}, args...)
		out, err := exec.CommandContext(ctx, "redis-benchmark", words...).CombinedOutput()
		if text := string(out); err != nil || !strings.Contains(text, "requests per second") ||
			strings.Contains(text, "Error") || strings.Contains(text, "WARNING") {
			t.Errorf("redis-benchmark %q: %v\n%s", words, err, text)
		}
	}
}
