package integration

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"lockproxy/integration/harness"
)

// What a client was told of a watched key, by whatever command, counts: if the key was there for a moment, and the client was told so,
// EXEC does not take place. Every command of COMMAND that reads is tried; one that tells nothing of whether the key is there says so
// below.
func TestWatchKnowsWhatEveryReadHasTold(t *testing.T) {
	aboutNoKey := []string{"evalsha_ro"} // it is eval_ro by another name
	tellsNothing := []string{"fence"}    // the newest fence is the same whether the lock is held or not
	masters := harness.Addrs(startMasters(t, 3))
	proxy := startProxy(t, masters)
	other := dial(t, startProxy(t, masters).Addr) // of what is changed through the same proxy, WATCH need not be told
	requests := map[string][]string{"lockinfo": {"LOCKINFO", "k"}, "locks": {"LOCKS"},
		"eval_ro": {"EVAL_RO", "return redis.call('exists', KEYS[1])", "1", "k"}}
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr})
	defer client.Close()
	rows, err := client.Do(t.Context(), "COMMAND").Slice()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range addReads(requests, rows) {
		if !slices.Contains(aboutNoKey, name) {
			t.Errorf("%s reads and has no key: say above with which arguments it tells of the key k, or in aboutNoKey that it tells of none", name)
		}
	}
	if len(requests) < 20 {
		t.Fatalf("only %d reads: %q", len(requests), requests)
	}
	for _, kind := range []struct {
		name string
		set  []string
	}{
		{"string", []string{"SET", "k", "you", "NX", "PX", "60000"}},
		{"hash", []string{"EVAL", "redis.call('hset',KEYS[1],ARGV[2],1) redis.call('pexpire',KEYS[1],ARGV[1]) return 1", "1", "k", "60000", "0"}},
	} {
		for name, request := range requests {
			c := dial(t, proxy.Addr)
			expect(t, c, "+OK\r\n", "WATCH", "k")
			if reply, err := other.Do(kind.set...); err != nil || reply[0] == '-' {
				t.Fatalf("%q: %q, %v", kind.set, reply, err)
			}
			told, err := c.Do(request...)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, other, ":1\r\n", "DEL", "k")
			expect(t, c, "+OK\r\n", "MULTI")
			expect(t, c, "+QUEUED\r\n", "SET", "k", "me", "PX", "60000")
			done, err := c.Do("EXEC")
			if err != nil {
				t.Fatal(err)
			}
			if took := string(done) != "*-1\r\n"; took != slices.Contains(tellsNothing, name) {
				t.Errorf("%q of a %s was answered with %q, and EXEC with %q", request, kind.name, told, done)
			}
			if _, err := other.Do("DEL", "k"); err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
		}
	}
}

// addReads adds a request on the key k for each row of COMMAND that reads keys, and for subcommands. Where arguments follow the key,
// they are numbers, which most commands take.
func addReads(requests map[string][]string, rows []any) (keyless []string) {
	for _, row := range rows {
		fields := row.([]any)
		name := fields[0].(string)
		arity, flags, first := fields[1].(int64), fields[2].([]any), fields[3].(int64)
		if len(fields) > 9 {
			keyless = append(keyless, addReads(requests, fields[9].([]any))...)
		}
		if !slices.ContainsFunc(flags, func(f any) bool { return f == "readonly" }) || requests[name] != nil {
			continue
		}
		if first < 1 {
			keyless = append(keyless, name)
			continue
		}
		words := strings.Split(name, "|")
		for int64(len(words)) < first {
			words = append(words, "0")
		}
		words = append(words, "k")
		for n := max(arity, -arity); int64(len(words)) < n; {
			words = append(words, "0")
		}
		requests[name] = words
	}
	return keyless
}
