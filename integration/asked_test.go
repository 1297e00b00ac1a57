package integration

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"lockproxy/cmd/lockproxy/embedded"
	"lockproxy/integration/harness"
	"lockproxy/quorum"
	"lockproxy/quorum/masters"
	"lockproxy/quorum/pubsub"
	"lockproxy/resp"
	"lockproxy/script"
)

// A command asks masters for no more than its reply needs. These tests count what they are sent, and what they send.

// A traffic counts what passes between an engine and one master, heartbeats and proofs included.
type traffic struct {
	mu sync.Mutex // guards counts
	counts
}

type counts struct {
	asked    int // bytes of commands
	told     int // bytes of replies
	longest  int // of the replies to one command
	scripts  int
	keysMost int // of one script
}

// A tallied is a master with a count of the traffic.
type tallied struct {
	masters.Master
	*traffic
}

func (c tallied) Dial(ctx context.Context, db int) (masters.Conn, error) {
	conn, err := c.Master.Dial(ctx, db)
	return talliedConn{conn, c.traffic}, err
}

type talliedConn struct {
	masters.Conn
	*traffic
}

func (c talliedConn) Exec(calls []*masters.Call) error {
	defer c.tally(calls)
	return c.Conn.Exec(calls)
}

func (c talliedConn) Receive(calls []*masters.Call) error {
	defer c.tally(calls)
	return c.Conn.Receive(calls)
}

// tally counts calls that were answered.
func (c talliedConn) tally(calls []*masters.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range calls {
		asked, told := 0, sizeOf(call.Reply)
		for _, arg := range call.Args {
			asked += sizeOf(arg)
		}
		c.asked, c.told, c.longest = c.asked+asked, c.told+told, max(c.longest, told)
		if name, _ := call.Args[0].(string); strings.HasPrefix(name, "EVAL") {
			c.scripts++
			keys, _ := call.Args[2].(int64)
			c.keysMost = max(c.keysMost, int(keys))
		}
	}
}

func sizeOf(x any) (n int) {
	switch x := x.(type) {
	case string:
		return len(x)
	case *string:
		return len(*x)
	case []any:
		for _, item := range x {
			n += sizeOf(item)
		}
		return n
	}
	return 8
}

// reset returns what was counted since the last reset.
func (c *traffic) reset() (was counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, c.counts = c.counts, counts{}
	return was
}

// since returns what was counted since the last call. LOCKINFO waits for every master, so each has answered all that came before.
func (c *traffic) since(t *testing.T, client *harness.Conn) counts {
	t.Helper()
	if reply, err := client.Do("LOCKINFO", "absent"); err != nil || reply[0] == '-' {
		t.Fatalf("%q, %v", reply, err)
	}
	return c.reset()
}

// startCounted serves clients in this process, over embedded masters. It returns a client, and the traffic of the first master.
func startCounted(t *testing.T) (*harness.Conn, *traffic) {
	t.Helper()
	embeddedMasters, err := embedded.Start(3)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(embeddedMasters.Close)
	of := &traffic{}
	var all []masters.Master
	for i, addr := range embeddedMasters.Addrs() {
		m, err := masters.NewRedis(addr, masters.RedisOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, m); i == 0 {
			all[0] = tallied{m, of}
		}
	}
	cfg := quorum.Config{InstanceTimeout: 10 * time.Second, Grace: 30 * time.Second, Databases: 1}
	if err := quorum.Initialise(context.Background(), cfg, all); err != nil {
		t.Fatal(err)
	}
	engine, err := quorum.New(cfg, all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	hub := pubsub.New(pubsub.Config{}, nil)
	t.Cleanup(hub.Close)
	srv := resp.New(resp.Config{}, engine, script.NewCache(16), hub)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Shutdown(context.Background()) })
	c := dial(t, l.Addr().String())
	eventually(t, progressMax, "all masters vote", func() error {
		if reply, err := c.Do("SET", "probe", "x", "NX", "PX", "60000"); err != nil || string(reply) != "+OK\r\n" {
			return fmt.Errorf("%q, %v", reply, err)
		}
		return nil
	})
	return c, of
}

const (
	large  = 1 << 20
	little = 4 << 10 // what a master may send, and be sent beside a script's text, for a reply of a few bytes
)

// asks are commands on a large string, or on a hash with a large field, and what each may bring from a master.
var asks = map[string]struct {
	request string
	most    int
}{
	"get": {"GET big", large + little}, "mget": {"MGET big", large + little}, "getrange": {"GETRANGE big 0 1", little},
	"strlen": {"STRLEN big", little}, "exists": {"EXISTS big big absent", little}, "type": {"TYPE big", little},
	"ttl": {"TTL big", little}, "pttl": {"PTTL big", little}, "expiretime": {"EXPIRETIME big", little}, "pexpiretime": {"PEXPIRETIME big", little},
	"fence": {"FENCE big 1", little}, "lockinfo": {"LOCKINFO big", little}, "locks": {"LOCKS", little},
	"hget": {"HGET hash f", little}, "hmget": {"HMGET hash f", little}, "hexists": {"HEXISTS hash big", little}, "hlen": {"HLEN hash", little},
	"hstrlen": {"HSTRLEN hash big", little}, "hkeys": {"HKEYS hash", little}, "hgetall": {"HGETALL hash", large + little}, "hvals": {"HVALS hash", large + little},
	"object|encoding": {"OBJECT ENCODING big", little},
	"eval_ro":         {"EVAL_RO return(1) 1 big", little}, "evalsha_ro": {"EVALSHA_RO 930269f31393d0be681588b6ab08dccee7d6bb67 1 big", little},
}

// comparing are other commands that only compare what is there.
var comparing = []string{"EXPIRE big 600", "PEXPIRE big 600000 GT", "PERSIST big", "WATCH big", "UNWATCH", "SETNX big v", "SET big v NX PX 1000",
	"UNLOCK big v", "EXTEND big v 1000", "MSETNX big v", "DEL big"}

func TestACommandAsksMastersForNoMoreThanItsReplyNeeds(t *testing.T) {
	c, master := startCounted(t)
	value := strings.Repeat("v", large)
	expect(t, c, "+OK\r\n", "SET", "big", value, "PX", "600000")
	expect(t, c, ":2\r\n", "EVAL", `redis.call('hset', KEYS[1], 'f', 'x') redis.call('hset', KEYS[1], 'big', string.rep('v', 1048576)) return 2`, "1", "hash")
	try := func(request string, most int) {
		t.Helper()
		master.since(t, c)
		reply, err := c.Do(strings.Fields(request)...)
		is := master.since(t, c)
		if err != nil || reply[0] == '-' && !strings.Contains(request, "OBJECT") {
			t.Errorf("%s: %.100q, %v", request, reply, err)
		}
		if is.longest > most {
			t.Errorf("%s: a master sends %d bytes, for a reply of %d", request, is.longest, len(reply))
		}
		if is.asked-is.scripts*10_000 > little {
			t.Errorf("%s: a master is sent %d bytes", request, is.asked)
		}
	}
	for _, row := range readers(t, c) {
		ask, known := asks[row]
		if !known {
			t.Errorf("%s reads: say in asks what it may bring from a master", row)
			continue
		}
		try(ask.request, ask.most)
	}
	for _, request := range comparing {
		try(request, little)
	}
}

// readers returns the names of all commands that only read, in the command table's order.
func readers(t *testing.T, c *harness.Conn) (names []string) {
	t.Helper()
	reply, err := c.Do("COMMAND")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range strings.Split(string(reply), "\r\n$")[1:] {
		_, rest, _ := strings.Cut(row, "\r\n")
		name, rest, _ := strings.Cut(rest, "\r\n")
		if strings.Contains(rest, "+readonly\r\n") {
			names = append(names, name)
		}
	}
	if len(names) < 20 {
		t.Fatalf("only %q read", names)
	}
	return names
}

// What is long goes in pieces.
func TestManyKeysAreAskedAboutInPieces(t *testing.T) {
	c, master := startCounted(t)
	set := func(keys, size int) (names []string) {
		t.Helper()
		for i := range keys {
			names = append(names, fmt.Sprintf("k%d", i))
			expect(t, c, "+OK\r\n", "SET", names[i], strings.Repeat("v", size), "PX", "600000")
		}
		return names
	}
	for _, load := range []struct{ keys, size int }{{900, 20}, {100, 16_000}, {5, 1 << 20}} {
		names := set(load.keys, load.size)
		for _, command := range []string{"EXISTS", "MGET", "DEL"} {
			master.since(t, c)
			reply, err := c.Do(append([]string{command}, names...)...)
			if err != nil || reply[0] == '-' {
				t.Fatalf("%s of %v: %.200q, %v", command, load, reply, err)
			}
			is := master.since(t, c)
			if is.keysMost > 256 || is.longest > max(300<<10, load.size+little) {
				t.Errorf("%s of %v: a script about %d keys, a reply of %d bytes", command, load, is.keysMost, is.longest)
			}
			if most := load.keys*(load.size+100) + 64<<10; command == "MGET" && is.told > most || command != "MGET" && is.told > load.keys*600+64<<10 {
				t.Errorf("%s of %v: a master sends %d bytes", command, load, is.told)
			}
			if command == "EXISTS" && is.scripts > load.keys/32+4 {
				t.Errorf("EXISTS of %v: %d scripts", load, is.scripts)
			}
		}
	}
}

// A master tells of a short string by the value alone, and of any other key in another way: each way says that the key is there.
func TestEveryKindOfKeyIsPresentUntilItIsDeleted(t *testing.T) {
	c, _ := startCounted(t)
	names := []string{"empty", "short", "edge", "over", "long", "hash"}
	for i, length := range []int{0, 20, 512, 513, 5000} {
		expect(t, c, "+OK\r\n", "SET", names[i], strings.Repeat("v", length), "PX", "600000")
	}
	expect(t, c, ":1\r\n", "EVAL", `return redis.call('hset', KEYS[1], 'f', 'x')`, "1", "hash")
	ask := append([]string{"EXISTS", "absent"}, append(names, "short", "none")...)
	expect(t, c, ":7\r\n", ask...)
	expect(t, c, ":6\r\n", append([]string{"DEL", "absent"}, names...)...)
	expect(t, c, ":0\r\n", ask...)
}

// What would take masters too long at one moment is refused, and what the client may do is said.
func TestWhatIsTooMuchForOneMomentIsRefused(t *testing.T) {
	c, _ := startCounted(t)
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("k%d", i))
		expect(t, c, "+OK\r\n", "SET", names[i], strings.Repeat("v", 16_000), "PX", "600000")
	}
	refused := func(reply []byte, err error) {
		t.Helper()
		if err != nil || !strings.Contains(string(reply), "1048576 are compared at one moment at most") || !strings.Contains(string(reply), "make several") {
			t.Errorf("%.200q, %v", reply, err)
		}
	}
	refused(c.Do(append([]string{"WATCH"}, names...)...))
	expect(t, c, "+OK\r\n", "MULTI")
	for _, name := range names {
		expect(t, c, "+QUEUED\r\n", "GET", name)
	}
	refused(c.Do("EXEC"))
	expect(t, c, "+OK\r\n", append([]string{"WATCH"}, names[:50]...)...)
	expect(t, c, "+OK\r\n", "SET", names[7], "other", "PX", "600000")
	expect(t, c, "+OK\r\n", "MULTI")
	expect(t, c, "+QUEUED\r\n", "GET", names[0])
	expect(t, c, "*-1\r\n", "EXEC")
}

// A script is one moment, and does not come in pieces.
func TestAScriptThatReadsOrChangesTooMuchIsRefused(t *testing.T) {
	c, _ := startCounted(t)
	keys := []string{"a", "b", "c", "d", "e"}
	for _, name := range keys {
		expect(t, c, "+OK\r\n", "SET", name, strings.Repeat(name, 1<<20), "PX", "600000")
	}
	const each = "for _, k in ipairs(KEYS) do redis.%s end return 1"
	for _, call := range []string{"call('get', k)", "pcall('GET', k)", "call('mget', k, k)", "call('append', k, 'x')"} {
		text := fmt.Sprintf(each, call)
		reply, err := c.Do(append([]string{"EVAL", text, "5"}, keys...)...)
		if err != nil || !strings.Contains(string(reply), "it reads or changes more than 4194304 bytes at one moment; make several scripts of it") {
			t.Errorf("%s: %.200q, %v", call, reply, err)
		}
		expect(t, c, ":1\r\n", "EVAL", text, "1", "a")
	}
	expect(t, c, ":1048576\r\n", "STRLEN", "e")
}

// MGET refuses at once what its client could not be given.
func TestAnMGetThatDoesNotFitMaxOutputBringsNothing(t *testing.T) {
	c, master := startCounted(t)
	var names []string
	for i := range 17 {
		names = append(names, fmt.Sprintf("k%d", i))
		expect(t, c, "+OK\r\n", "SET", names[i], strings.Repeat("v", 1<<20), "PX", "600000")
	}
	master.since(t, c)
	reply, err := c.Do(append([]string{"MGET"}, names...)...)
	if is := master.since(t, c); err != nil || !strings.Contains(string(reply), "raise max_output") || is.told > little {
		t.Errorf("%.200q, %v; a master has sent %d bytes", reply, err, is.told)
	}
}
