package integration

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

func TestAStoppedUpstreamHoldsNobodyWhoHangsUp(t *testing.T) {
	f := startFront(t)
	waiting, idle := dial(t, f.proxy.Addr), dial(t, f.proxy.Addr)
	for _, c := range []*harness.Conn{waiting, idle} {
		expect(t, c, "+OK\r\n", "SET", "data", "1")
	}
	if err := f.upstream.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := waiting.Send(harness.Encode(nil, "SET", "data", "2")); err != nil {
		t.Fatal(err)
	}
	expect(t, idle, "+OK\r\n", "SET", "lock:1", "tok", "NX", "PX", "30000") // locks go on
	_ = waiting.Close()
	eventually(t, gone, "the client that hung up is gone", func() error {
		reply, err := idle.Do("CLIENT", "LIST")
		if err == nil && strings.Contains(string(reply), "cmd=set ") && strings.Count(string(reply), "id=") > 1 {
			err = fmt.Errorf("%s", reply)
		}
		return err
	})
	if err := f.upstream.Resume(); err != nil {
		t.Fatal(err)
	}
	expect(t, idle, "$1\r\n2\r\n", "GET", "data") // it had been sent
}

// A rambler sends random commands on keys of its own, and demands the replies that a Redis of its own alone would give.
type rambler struct {
	dice          *rand.Rand
	prefix        string
	proxy, oracle *harness.Conn
}

// some returns random commands.
func (r *rambler) some() [][]string {
	key := func() string { return fmt.Sprint(r.prefix, r.dice.IntN(5)) }
	list := func() string { return fmt.Sprint(r.prefix, "list:", r.dice.IntN(2)) }
	value := func() string {
		size := 1 << r.dice.IntN(8)
		if r.dice.IntN(300) == 0 {
			size = 100_000
		}
		return r.prefix + strings.Repeat("v", r.dice.IntN(size))
	}
	kinds := []func() [][]string{
		func() [][]string { return [][]string{{"SET", key(), value()}} },
		func() [][]string { return [][]string{{"GET", key()}} },
		func() [][]string { return [][]string{{"get", key()}, {"STRLEN", key()}} },
		func() [][]string { return [][]string{{"APPEND", key(), "x"}} },
		func() [][]string { return [][]string{{"INCR", r.prefix + "n"}} },
		func() [][]string { return [][]string{{"MGET", key(), key()}} },
		func() [][]string { return [][]string{{"DEL", key(), key()}} },
		func() [][]string {
			return [][]string{{"RPUSH", list(), value(), value()}, {"LRANGE", list(), "0", "-1"}}
		},
		func() [][]string { return [][]string{{"LPOP", list()}, {"INCR", list()}, {"LPUSHX"}} },
		func() [][]string { return [][]string{{"ECHO", r.prefix}, {"PING"}} },
		func() [][]string { return [][]string{{"SELECT", fmt.Sprint(r.dice.IntN(3))}} },
		func() [][]string {
			return [][]string{{"HSET", r.prefix + "h", key(), value()}, {"HMGET", r.prefix + "h", key(), key()}}
		},
	}
	rare := []func() [][]string{
		func() [][]string { return [][]string{{"MULTI"}, {"SET", key(), value()}, {"GET", key()}, {"EXEC"}} },
		func() [][]string {
			return [][]string{{"RPUSH", r.prefix + "queue", "x"}, {"BLPOP", r.prefix + "queue", "0"}}
		},
		func() [][]string {
			return [][]string{{"WATCH", key()}, {"SET", key(), "w"}, {"MULTI"}, {"INCR", r.prefix + "n"}, {"EXEC"}}
		},
		func() [][]string { return [][]string{{"EVAL", "return redis.call('GET',KEYS[1])", "1", key()}} },
		func() [][]string { return [][]string{{"RESET"}} },
		func() [][]string {
			return [][]string{{"MULTI"}, {"SET", key(), value()}, {"PING"}, {"GET", key()}, {"ECHO", "x"}, {"HSET", key(), "f", "1"}, {"EXEC"}}
		},
		func() [][]string { return [][]string{{"MULTI"}, {"NOSUCH"}, {"SET", key(), value()}, {"EXEC"}} },
		func() [][]string { return [][]string{{"CLIENT", "REPLY", "SKIP"}, {"GET", key()}, {"GET", key()}} },
		func() [][]string {
			return [][]string{{"CLIENT", "REPLY", "OFF"}, {"INCR", r.prefix + "n"}, {"BLPOP", list(), "0.01"}, {"GET", key()}, {"CLIENT", "REPLY", "ON"}}
		},
		func() [][]string { // over RESP2, nothing may be published where it says SUBSCRIBE
			return [][]string{{"SUBSCRIBE", r.prefix + "c"}, {"PUBLISH", r.prefix + "c", value()}, {"GET", key()}, {"UNSUBSCRIBE", r.prefix + "c"}}
		},
		func() [][]string {
			return [][]string{{"SET", key(), value()}, {"SET", "lock:" + r.prefix, "me", "NX", "PX", "60000"}, {"GET", key()}, {"GET", "lock:" + r.prefix}}
		},
		func() [][]string {
			return [][]string{{"APPEND", key(), "x"}, {"EVAL", compareAndDelete, "1", "lock:" + r.prefix, "me"}, {"STRLEN", key()}}
		},
	}
	var all [][]string
	for range 1 + r.dice.IntN(20) {
		if r.dice.IntN(50) == 0 {
			all = append(all, rare[r.dice.IntN(len(rare))]()...)
		} else {
			all = append(all, kinds[r.dice.IntN(len(kinds))]()...)
		}
	}
	return all
}

// round sends some commands, and compares all that comes until the reply to the last.
func (r *rambler) round(n int) error {
	last := fmt.Sprint(r.prefix, "end of round ", n)
	commands := append(r.some(), []string{"ECHO", last})
	var raw []byte
	for _, c := range commands {
		raw = harness.Encode(raw, c...)
	}
	if err := errors.Join(r.oracle.Send(raw), r.proxy.Send(raw)); err != nil {
		return err
	}
	for i := 0; ; i++ {
		want, err := r.oracle.Reply()
		got, err2 := r.proxy.Reply()
		if err = errors.Join(err, err2); err != nil {
			return fmt.Errorf("reply %d to %.100q: %w", i, commands, err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("reply %d to %.100q: got %s, want %s", i, commands, short(fmt.Sprintf("%q", got)), short(fmt.Sprintf("%q", want)))
		}
		if bytes.Contains(want, []byte(last)) {
			return nil
		}
	}
}

func TestManyClientsEachSeeOnlyTheirOwnReplies(t *testing.T) {
	f := startFront(t)
	const clients, rounds = 100, 20
	var over atomic.Bool
	leavers := make(chan struct{})
	go func() { // they ask for much and hang up
		defer close(leavers)
		dice := rand.New(rand.NewPCG(1, 2))
		for n := 0; n < 200 && !over.Load(); n++ {
			c, err := harness.Dial(f.proxy.Addr)
			if err != nil {
				continue
			}
			var raw []byte
			for range 1 + dice.IntN(200) {
				raw = harness.Encode(raw, "SETRANGE", "junk", fmt.Sprint(dice.IntN(1000)), "leaver")
				raw = harness.Encode(raw, "GET", "junk")
			}
			_ = c.Send(raw[:len(raw)-dice.IntN(10)])
			_ = c.Close()
		}
	}()
	together(clients, func(i int) {
		r := &rambler{dice: rand.New(rand.NewPCG(uint64(i), 7)), prefix: fmt.Sprint("client:", i, ":")}
		var err, err2 error
		r.proxy, err = harness.DialPatiently(f.proxy.Addr, time.Minute)
		r.oracle, err2 = harness.DialPatiently(f.oracle.Addr, time.Minute)
		if err = errors.Join(err, err2); err != nil {
			t.Error(err)
			return
		}
		defer func() { _, _ = r.proxy.Close(), r.oracle.Close() }()
		if i%3 == 0 {
			for _, c := range []*harness.Conn{r.proxy, r.oracle} {
				if _, err := c.Do("HELLO", "3"); err != nil {
					t.Error(err)
					return
				}
			}
		}
		for n := range rounds {
			if err := r.round(n); err != nil {
				t.Errorf("client %d, round %d: %v", i, n, err)
				return
			}
		}
	})
	over.Store(true)
	<-leavers
}
