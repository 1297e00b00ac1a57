package integration

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"lockproxy/integration/harness"
)

// A cutter leads to a server. It cuts each connection after so many bytes in one direction or the other, as chance has it.
type cutter struct {
	addr string
	cuts atomic.Int64

	listener net.Listener
	running  sync.WaitGroup
	mu       sync.Mutex // guards what follows
	chance   *rand.Rand
	open     map[net.Conn]struct{}
	closed   bool
}

func startCutter(t testing.TB, target string, seed uint64) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{addr: l.Addr().String(), listener: l, chance: rand.New(rand.NewPCG(seed, 0)), open: map[net.Conn]struct{}{}}
	c.running.Go(func() { c.accept(target) })
	t.Cleanup(func() {
		_ = l.Close()
		c.mu.Lock()
		c.closed = true
		for conn := range c.open {
			_ = conn.Close()
		}
		c.mu.Unlock()
		c.running.Wait()
	})
	return c
}

func (c *cutter) accept(target string) {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", target)
		if err != nil {
			_ = near.Close()
			continue
		}
		c.mu.Lock()
		limits := [2]int64{c.limit(), c.limit()}
		if c.open[near], c.open[far] = struct{}{}, struct{}{}; c.closed {
			_, _ = near.Close(), far.Close()
		}
		c.mu.Unlock()
		c.running.Go(func() { c.pass(near, far, limits[0]) })
		c.running.Go(func() { c.pass(far, near, limits[1]) })
	}
}

// limit is as often small as large; a greeting passes more often than not. c.mu is held.
func (c *cutter) limit() int64 { return 60 + c.chance.Int64N(1<<(4+c.chance.IntN(20))) }

// pass cuts both sides when so many bytes have passed to one.
func (c *cutter) pass(to, from net.Conn, limit int64) {
	if n, _ := io.CopyN(to, from, limit); n == limit {
		c.cuts.Add(1)
	}
	_, _ = to.Close(), from.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, to)
	delete(c.open, from)
}

// startCut starts a proxy whose connections to its upstream are cut.
func startCut(t *testing.T) (upstream *harness.Redis, cut *cutter, proxy *harness.Proxy, number uint64) {
	t.Helper()
	upstream, number = startMasters(t, 1)[0], seed(t)
	cut = startCutter(t, upstream.Addr, number)
	proxy = startProxy(t, harness.Addrs(startMasters(t, 3)), "--upstream", "redis://"+cut.addr, "--lock-keys", "lock:*",
		"--instance-timeout", "4s")
	return upstream, cut, proxy, number
}

// cutOne cuts some connection at once, whether anything passes or not.
func (c *cutter) cutOne() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		c.cuts.Add(1)
		_ = conn.Close()
		return
	}
}

// A question is a request, and what its reply is unless it is an error. Empty: the reply is not known.
type question struct {
	args []string
	want string
}

const prepared = 300 // keys at the upstream whose value their name tells

func preparedValue(n int) string {
	size := n % 40
	switch n % 50 {
	case 7:
		size = 9 << 10
	case 8:
		size = 200 << 10 // more than is read at once
	}
	return fmt.Sprint("value ", n, " ", strings.Repeat("x", size))
}

func bulkReply(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// questions are some that belong together, for the upstream and the masters.
func questions(chance *rand.Rand, unique string) []question {
	n, m := chance.IntN(prepared), chance.IntN(prepared)
	key, value := fmt.Sprint("prepared:", n), preparedValue(n)
	other, otherValue := fmt.Sprint("prepared:", m), preparedValue(m)
	both := "*2\r\n" + bulkReply(value) + bulkReply(otherValue)
	switch chance.IntN(14) {
	case 0:
		return []question{{[]string{"MGET", key, other}, both}}
	case 1:
		return []question{{[]string{"EVAL", "return {ARGV[1],KEYS[1]}", "1", key, unique}, "*2\r\n" + bulkReply(unique) + bulkReply(key)}}
	case 2:
		return []question{{[]string{"MULTI"}, "+OK\r\n"}, {[]string{"GET", key}, "+QUEUED\r\n"}, {[]string{"GET", other}, "+QUEUED\r\n"},
			{[]string{"EXEC"}, both}}
	case 3:
		return []question{{[]string{"PING", unique}, bulkReply(unique)}}
	case 4:
		return []question{{[]string{"SET", "lock:" + unique, unique, "NX", "PX", "30000"}, "+OK\r\n"}, {[]string{"GET", key}, bulkReply(value)},
			{[]string{"GET", "lock:" + unique}, bulkReply(unique)}}[:1+2*chance.IntN(2)]
	case 5:
		return []question{{[]string{"SET", unique, unique}, "+OK\r\n"}}
	case 6:
		return []question{{[]string{"RPUSH", unique, unique}, ""}, {[]string{"BLPOP", unique, "0.01"}, "*2\r\n" + bulkReply(unique) + bulkReply(unique)}}
	case 7:
		return []question{{[]string{"WATCH", key}, "+OK\r\n"}, {[]string{"GET", key}, bulkReply(value)}, {[]string{"UNWATCH"}, "+OK\r\n"}}
	case 8:
		return []question{{[]string{"SELECT", "1"}, "+OK\r\n"}, {[]string{"GET", "prepared:1"}, bulkReply("in 1")}, {[]string{"SELECT", "0"}, "+OK\r\n"}}
	case 9:
		return []question{{[]string{"RESET"}, "+RESET\r\n"}}
	case 10:
		return []question{{[]string{"PUBLISH", unique, unique}, ":0\r\n"}}
	}
	return []question{{[]string{"GET", key}, bulkReply(value)}}
}

// Whatever breaks the upstream's connections at whatever byte, a reply that a client gets is that to its own request.
func TestNoReplyGoesToAnotherRequestThoughTheUpstreamsConnectionsBreakAnywhere(t *testing.T) {
	upstream, cut, proxy, number := startCut(t)
	for n := range prepared {
		direct(t, []*harness.Redis{upstream}, "SET", fmt.Sprint("prepared:", n), preparedValue(n))
	}
	if _, err := upstream.Do(1, "SET", "prepared:1", "in 1"); err != nil {
		t.Fatal(err)
	}
	var right atomic.Int64
	together(8, func(i int) {
		chance := rand.New(rand.NewPCG(number, uint64(i)))
		for round := 0; (right.Load() < 5000 || cut.cuts.Load() < 100) && !t.Failed(); round++ {
			right.Add(int64(askUntilCut(t, proxy.Addr, chance, fmt.Sprintf("%d.%d", i, round))))
		}
	})
}

// askUntilCut sends many questions at once, and returns how many were answered before the connection ended.
func askUntilCut(t *testing.T, addr string, chance *rand.Rand, unique string) (right int) {
	c, err := harness.Dial(addr)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer c.Close()
	var all []question
	for len(all) < 1+chance.IntN(60) {
		all = append(all, questions(chance, fmt.Sprint(unique, ".", len(all)))...)
	}
	var raw []byte
	for _, q := range all {
		raw = harness.Encode(raw, q.args...)
	}
	go func() { _ = c.Send(raw) }()
	for i, q := range all {
		reply, err := c.Reply()
		if err != nil {
			break
		}
		got := string(reply)
		switch {
		case got == q.want || q.want == "" && got[0] == ':':
			right++
		case strings.HasPrefix(got, "-LOADING upstream ") || strings.HasPrefix(got, "-EXECABORT ") || got == "*-1\r\n" && q.args[0] == "BLPOP":
		default:
			t.Errorf("%d of %d: %.80q got %.200q, want %.200q", i, len(all), q.args, got, q.want)
			return right
		}
	}
	return right
}

// What was watched does not become unwatched, nor is an EXEC told that did not take place, whatever breaks between.
func TestNoUpdateIsLostThoughTheUpstreamsConnectionsBreakAnywhere(t *testing.T) {
	upstream, cut, proxy, number := startCut(t)
	var told, untold atomic.Int64 // increments that were told to have taken place, and that may have
	together(4, func(i int) {
		chance := rand.New(rand.NewPCG(number, uint64(i)))
		for (told.Load() < 800 || cut.cuts.Load() < 200) && !t.Failed() {
			c, err := harness.Dial(proxy.Addr)
			if err != nil {
				t.Error(err)
				return
			}
			for addOne(c, cut, chance, &told, &untold) {
			}
			_ = c.Close()
		}
	})
	reply, err := upstream.Do(0, "GET", "counter")
	text, _ := harness.Bulk(reply)
	n := int64(0)
	_, _ = fmt.Sscan(text, &n)
	if err != nil || n < told.Load() || n > told.Load()+untold.Load() {
		t.Errorf("the counter is %q, %v; %d increments were told, %d more may have been made", reply, err, told.Load(), untold.Load())
	}
}

// addOne adds one to the counter if nobody else does meanwhile, and says whether the connection is still of use.
func addOne(c *harness.Conn, cut *cutter, chance *rand.Rand, told, untold *atomic.Int64) bool {
	raw := harness.Encode(nil, "WATCH", "counter")
	if chance.IntN(4) == 0 {
		raw = harness.Encode(raw, "GETRANGE", strings.Repeat("k", 64<<10), "0", "0") // more than is written at once
	}
	reply, err := ask(c, harness.Encode(raw, "GET", "counter"))
	text, isBulk := harness.Bulk(reply)
	if err != nil || !isBulk && string(reply) != "$-1\r\n" {
		return false
	}
	if chance.IntN(4) == 0 {
		cut.cutOne()
	}
	n := 0
	_, _ = fmt.Sscan(text, &n)
	raw = harness.Encode(nil, "MULTI")
	raw = harness.Encode(raw, "SET", "counter", fmt.Sprint(n+1))
	reply, err = ask(c, harness.Encode(raw, "EXEC"))
	switch {
	case err != nil:
		untold.Add(1)
	case string(reply) == "*1\r\n+OK\r\n":
		told.Add(1)
	}
	return err == nil && reply[0] != '-'
}

// ask sends requests, and returns the last reply, or the first that is an error.
func ask(c *harness.Conn, raw []byte) (reply []byte, err error) {
	err = c.Send(raw)
	for n := strings.Count(string(raw), "\r\n*") + 1; n > 0 && err == nil; n-- {
		if reply, err = c.Reply(); err == nil && reply[0] == '-' {
			break
		}
	}
	return reply, err
}
