package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"lockproxy/integration/harness"
)

func TestGoRedisLocks(t *testing.T) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	for _, protocol := range []int{2, 3} {
		for _, db := range []int{0, 1} {
			t.Run(fmt.Sprintf("RESP%d, database %d", protocol, db), func(t *testing.T) {
				client := redis.NewClient(&redis.Options{Addr: proxy.Addr, Protocol: protocol, DB: db, ClientName: "locking", MaxRetries: -1})
				defer client.Close()
				goRedisLocks(t, client)
				eventually(t, cleanMax, "no key is left", func() error { return keysLeft(db, masters...) })
			})
		}
	}
}

func goRedisLocks(t *testing.T, client *redis.Client) {
	ctx := context.Background()
	want := func(what string, got any, err error, expected any) {
		t.Helper()
		if err != nil || got != expected {
			t.Fatalf("%s: got %v, %v, want %v", what, got, err, expected)
		}
	}
	got, err := client.SetNX(ctx, "go", "me", 30*time.Second).Result()
	want("SetNX", got, err, true)
	got, err = client.SetNX(ctx, "go", "you", 1500*time.Millisecond).Result()
	want("a second SetNX", got, err, false)
	if reply, err := client.SetArgs(ctx, "go", "you", redis.SetArgs{Mode: "NX", TTL: time.Second}).Result(); !errors.Is(err, redis.Nil) {
		t.Fatalf("SetArgs: %q, %v", reply, err)
	}
	value, err := client.Get(ctx, "go").Result()
	want("Get", value, err, "me")
	ttl, err := client.PTTL(ctx, "go").Result()
	want("PTTL in range", ttl > 0 && ttl <= 30*time.Second, err, true)
	release := redis.NewScript(compareAndDelete)
	n, err := client.Eval(ctx, compareAndDelete, []string{"go"}, "you").Int()
	want("release by a stranger", n, err, 0)
	n, err = release.Run(ctx, client, []string{"go"}, "me").Int() // EVALSHA, and EVAL on NOSCRIPT
	want("release by the owner", n, err, 1)
	n, err = release.Run(ctx, client, []string{"go"}, "me").Int()
	want("release again", n, err, 0)
	pipe := client.Pipeline()
	first, second := pipe.SetNX(ctx, "go", "me", time.Minute), pipe.SetNX(ctx, "go", "you", time.Minute)
	deleted := pipe.Del(ctx, "go")
	_, err = pipe.Exec(ctx)
	want("the first of a pipeline", first.Val(), err, true)
	want("the second of a pipeline", second.Val(), err, false)
	want("the last of a pipeline", deleted.Val(), err, int64(1))
}

func TestRedsyncLocksThroughTheProxyAsOnOneRedis(t *testing.T) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr})
	defer client.Close()
	rs := redsync.New(goredis.NewPool(client))

	first := rs.NewMutex("redsync", redsync.WithExpiry(30*time.Second), redsync.WithTries(1))
	second := rs.NewMutex("redsync", redsync.WithExpiry(30*time.Second), redsync.WithTries(1))
	if err := first.Lock(); err != nil {
		t.Fatal(err)
	}
	var taken *redsync.ErrTaken
	if err := second.Lock(); !errors.As(err, &taken) {
		t.Fatalf("a second Lock: %v", err)
	}
	if ok, err := first.Extend(); !ok || err != nil {
		t.Fatalf("Extend: %v, %v", ok, err)
	}
	if ok, err := second.Unlock(); ok || err == nil {
		t.Fatalf("Unlock by a stranger: %v, %v", ok, err)
	}
	if ok, err := first.Unlock(); !ok || err != nil {
		t.Fatalf("Unlock: %v, %v", ok, err)
	}
	if ok, err := first.Unlock(); ok || err == nil {
		t.Fatalf("a second Unlock: %v, %v", ok, err)
	}
	if err := second.Lock(); err != nil {
		t.Fatalf("Lock after Unlock: %v", err)
	}
	if ok, err := second.Unlock(); !ok || err != nil {
		t.Fatalf("Unlock: %v, %v", ok, err)
	}
	eventually(t, cleanMax, "no key is left", func() error { return keysLeft(0, masters...) })
}

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
	for _, args := range [][]string{
		{"-t", "ping,set,get"},
		{"-t", "set,get", "-P", "16"},
		{"-t", "set", "-3"},
		{"SET", "key:__rand_int__", "tok", "NX", "PX", "30000"},
		{"-P", "16", "SET", "key:__rand_int__", "tok", "NX", "PX", "30000"},
		{"EVAL", compareAndDelete, "1", "key:__rand_int__", "tok"},
	} {
		words := append([]string{"-p", port, "-c", "20", "-n", "2000", "-r", "1000", "-q"}, args...)
		out, err := exec.Command("redis-benchmark", words...).CombinedOutput()
		if text := string(out); err != nil || !strings.Contains(text, "requests per second") ||
			strings.Contains(text, "Error") || strings.Contains(text, "WARNING") {
			t.Errorf("redis-benchmark %q: %v\n%s", words, err, text)
		}
	}
}
