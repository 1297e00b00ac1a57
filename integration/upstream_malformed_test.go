package integration

import (
	"testing"

	"lockproxy/integration/harness"
)

// What is refused inside MULTI decides nothing about where the transaction takes place: what comes behind is queued, on locks and
// on other keys, and EXEC is refused, as on one Redis.
func TestWhatIsRefusedInMultiDoesNotPlaceTheTransaction(t *testing.T) {
	const release = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
	f := startFront(t)
	good := [][]string{
		{"SET", "lock:k", "v", "PX", "9000"}, {"SET", "data", "v"}, {"GET", "lock:k"}, {"EVAL", release, "1", "lock:k", "v"}, {"LPUSH", "list", "v"},
	}
	for _, refused := range [][]string{
		{"SET", "lock:k"}, {"SET", "data"}, {"GET"}, {"GET", "lock:k", "data"}, {"DEL"}, {"EXPIRE", "lock:k"}, {"SETEX", "lock:k", "1"},
		{"EVAL", "return 1"}, {"EVALSHA"}, {"MSETNX", "lock:k"}, {"MGET"}, {"LPUSH", "list"}, {"NOSUCH"}, {"NOSUCH", "lock:k"},
		{"CLIENT", "NOSUCH"}, {"OBJECT", "NOSUCH", "lock:k"}, {"OBJECT"}, {"HSET", "h", "f"}, {"PUBLISH", "lock:k"}, {"SELECT"},
	} {
		for i, then := range good {
			direct(t, []*harness.Redis{f.oracle, f.upstream}, "FLUSHALL")
			o, p := dial(t, f.oracle.Addr), dial(t, f.proxy.Addr)
			for _, request := range [][]string{
				{"MULTI"}, refused, then, refused, good[(i+1)%len(good)], {"EXEC"}, {"EXISTS", "data"}, {"EXISTS", "lock:k"},
				{"MULTI"}, refused, {"DISCARD"},
				{"MULTI"}, then, {"DISCARD"},
			} {
				want, err := o.Do(request...)
				if err != nil {
					t.Fatal(err)
				}
				got, err := p.Do(request...)
				if err != nil || string(got) != string(want) {
					t.Errorf("MULTI, %q, %q, …: %q got %q, %v, and on Redis %q", refused, then, request, got, err, want)
				}
			}
			_, _ = o.Close(), p.Close()
		}
	}
}
