package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/integration/harness"
	"lockproxy/quorum/masters"
)

// shipped returns the scripts that the engine sends, seen by a master in a few worlds.
func shipped(t *testing.T) []string {
	t.Helper()
	texts := make(map[string]bool)
	for seed := range uint64(5) {
		synctest.Test(t, func(*testing.T) {
			w := newWorld(NewPlan(Seed{Number: seed}), nil, nil)
			w.play()
			for _, s := range w.servers {
				for _, text := range s.scripts {
					texts[text] = true
				}
			}
		})
	}
	var list []string
	for text := range texts {
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

// A real redis-server answers random commands, our scripts among them, as a simulated one does.
func TestASimulatedMasterAnswersAsARealOne(t *testing.T) {
	if err := harness.HaveRedis(); err != nil {
		if os.Getenv("LOCKPROXY_REQUIRE_REDIS") == "1" {
			t.Fatal("no redis-server to compare with: ", err)
		}
		t.Skip("no redis-server to compare with: ", err)
	}
	scripts := shipped(t)
	if len(scripts) < 8 {
		t.Fatalf("only %d scripts seen", len(scripts))
	}
	redis, err := harness.StartRedis()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Stop)
	m, err := masters.NewRedis(redis.Addr, masters.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := m.Dial(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	p := NewPlan(Seed{Number: 1})
	p.Proxies = 0
	w := newWorld(p, nil, nil)
	s := w.servers[0]
	s.clock = clock{read: float64(time.Now().UnixNano()), since: w.now(), rate: 1}
	s.old = false
	c := &session{}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		s.do(c, []string{"FLUSHALL"})
		real(t, conn, []string{"FLUSHALL"})
		for range 150 {
			args := randomCommand(r, s, scripts)
			got, want := simulated(s, c, args), real(t, conn, args)
			if !alike(got, want) {
				t.Fatalf("seed %d: %q: simulated %v, real %v", seed, args, got, want)
			}
		}
	}
}

func simulated(s *server, c *session, args []string) any {
	r := s.do(c, args)
	if f, ok := r.(fault); ok {
		return error(f)
	}
	return plain(r)
}

func real(t *testing.T, conn masters.Conn, args []string) any {
	t.Helper()
	call := &masters.Call{}
	for _, a := range args {
		call.Args = append(call.Args, a)
	}
	if err := conn.Exec([]*masters.Call{call}); err != nil {
		t.Fatal(err)
	}
	if call.Err != nil {
		return call.Err
	}
	return call.Reply
}

// alike compares replies; numbers that tell the time may differ by as long as a command takes.
func alike(got, want any) bool {
	switch want := want.(type) {
	case error:
		got, ok := got.(error)
		return ok && firstWords(got.Error()) == firstWords(want.Error())
	case int64:
		got, ok := got.(int64)
		return ok && (got == want || want > 100 && got-want < 500 && want-got < 500)
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return false
		}
		for i := range got {
			if !alike(got[i], want[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(got, want)
}

// firstWords leaves out where in a script an error was raised, and what the interpreter calls it.
func firstWords(text string) string {
	if rest, ok := strings.CutPrefix(text, "ERR user_script:"); ok {
		text, _, _ = strings.Cut(rest, ":")
		return text
	}
	text, _, _ = strings.Cut(text, " script: ")
	return text
}

func randomCommand(r *rand.Rand, s *server, scripts []string) []string {
	key := func() string { return pick(r, "k1", "k2", "k3") }
	value := func() string { return pick(r, "a", "b", "", "string", "none", "0", "x y") }
	ms := func() string {
		return pick(r, "20000", "50000", "90000", "0", "-1", "1e3", "20000.5", "9223372036854775807")
	}
	now := s.clock.millis(s.now())
	switch r.IntN(12) {
	case 0, 1:
		args := []string{"SET", key(), value()}
		for range r.IntN(3) {
			args = append(args, pick(r, "NX", "XX", "GET", "KEEPTTL", "PX", "ex", "PXAT", "20000", "bad"))
		}
		return args
	case 2:
		return []string{"SET", key(), value(), "PX", ms(), pick(r, "NX", "XX", "GET")}
	case 3:
		return []string{pick(r, "GET", "TYPE", "PTTL", "PEXPIRETIME", "DEL", "EXISTS"), key()}
	case 4:
		return []string{"PEXPIRE", key(), ms()}
	case 5:
		return []string{"PEXPIREAT", key(), strconv.FormatInt(now+pick(r, int64(30000), -5), 10)}
	case 6:
		return pick(r, []string{"GET"}, []string{"NOSUCH", "a"}, []string{"PING"},
			[]string{"EVALSHA", strings.Repeat("0", 40), "0"}, []string{"EVAL", "return 1", "x"},
			[]string{"EVAL", "return {1, 2.9, 'x', true, false, 3, nil, 4}", "0"}, []string{"EVAL", "return redis.call('NOSUCH')", "0"},
			[]string{"EVAL", "return redis.call('SET', KEYS[1], 1.5, 'PX', 30000)", "1", key()},
			[]string{"EVAL", "return {redis.pcall('PEXPIRE', KEYS[1], 'x').err, redis.status_reply('HI')}", "1", key()},
			[]string{"EVAL", "return redis.call('SET', KEYS[1])", "1", key()})
	case 7: // of one field: real ones tell several in an order of their own
		return pick(r, []string{"HGET", key(), "f"}, []string{"HEXISTS", key(), "f"}, []string{"HGETALL", key()},
			[]string{"HKEYS", key()}, []string{"HVALS", key()},
			[]string{"HINCRBY", key(), "f", pick(r, "1", "-1", "x")}, []string{"HDEL", key(), "f", "g"})
	case 8:
		return pick(r, []string{"EVAL", takeHash, "1", key(), "30000", "f"}, []string{"EVAL", renewHash, "1", key(), "30000", "f"},
			[]string{"EVAL", freeHash, "2", key(), "channel", "0", "30000", "f"}, []string{"EVAL", takeText, "1", key(), "a", "30000"},
			[]string{"EVAL", freeText, "1", key(), "a"}, []string{pick(r, "RENAME", "COPY"), key(), key()}, []string{"EVAL", takeAll, "2", key(), key(), "a", "30000"},
			[]string{"EVAL", renewAll, "2", key(), key(), "a", "30000"}, []string{"EVAL", freeAll, "2", key(), key(), "a"})
	}
	args := []string{"EVAL", pick(r, scripts...), "1", key()}
	for range r.IntN(9) {
		stamp := strconv.FormatInt(now+pick(r, int64(-1e6), 1e6), 10)
		args = append(args, pick(r, value(), ms(), stamp, "put", "replace", "expire", "delete"))
	}
	return args
}

func TestALockThatAMasterForgetsIsReallyForgotten(t *testing.T) {
	s := newStore()
	for i := range 10 {
		s.do(mutation{at: time.Duration(i), kind: put, key: fmt.Sprint(i), item: item{text: "x"}})
	}
	s.do(mutation{at: 10, kind: removed, key: "0"})
	s.do(mutation{at: 11, db: 1, kind: put, key: "other"})
	s.do(mutation{at: 12, kind: swapped})
	s.rewind(10)
	if n := len(s.dbs[0]); n != 9 || len(s.dbs[1]) != 0 {
		t.Errorf("%d keys and %d after the tenth change, want 9 and 0", n, len(s.dbs[1]))
	}
}
