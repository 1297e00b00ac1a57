package resp

import (
	"log/slog"
	"strings"
	"testing"
)

// As frameworks send them: a transaction of RQ's scheduler or arq's worker, python-redis-lock's release, a script of
// channels_redis.
func TestRequestsThatLockKeysSplitAreCountedAndLogged(t *testing.T) {
	t.Parallel()
	u := newFakeUpstream(t)
	log := &logged{}
	r := newRig(t, Config{
		Upstream: u.redis, LockKeys: []string{"*lock*", "job:*"},
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	c := r.dial()
	c.ask("WATCH", "job:1")
	c.ask("MULTI")
	c.ask("EXISTS", "job:1")
	for _, request := range []string{"GET queue", "DISCARD", "EVAL return{} 2 lock:a signal:a", "EVAL return{} 0 asgi:lock"} {
		if got := c.ask(strings.Fields(request)...); !strings.HasPrefix(got, "-ERR ") && request != "DISCARD" {
			t.Errorf("%s: got %q", request, got)
		}
	}
	if n := r.server.Stats().Split; n != 3 {
		t.Errorf("%d counted", n)
	}
	const want = `msg="a request was refused because of what lock_keys matches"`
	if n := strings.Count(log.String(), want); n != 1 || !strings.Contains(log.String(), "this transaction is about locks") {
		t.Errorf("told %d times, want once within a minute:\n%s", n, log)
	}
	r.tellAgain("a request was refused because of what lock_keys matches")
	c.ask("EVAL", "return{}", "0", "s3cret-lock")
	if strings.Contains(log.String(), "s3cret") {
		t.Errorf("what may be a token is logged:\n%s", log)
	}
	r.tellAgain("a request was refused because of what lock_keys matches")
	c.ask("EVAL", "return{}", "2", "lock:a", "signal:a")
	if n := strings.Count(log.String(), want); n != 3 || !strings.Contains(log.String(), "all_so_far=5") {
		t.Errorf("told %d times:\n%s", n, log)
	}
	if info := c.ask("INFO", "lockproxy"); !strings.Contains(info, "\r\nsplit_requests:5\r\n") {
		t.Errorf("got %q", info)
	}
}

// tellAgain lets the log have a line again at once that it had before.
func (r *rig) tellAgain(text string) {
	seen := &r.server.journal.told
	seen.mu.Lock()
	defer seen.mu.Unlock()
	seen.told[text] = 1 - seldomEvery.Milliseconds()
}
