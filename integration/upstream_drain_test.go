package integration

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// Workers of job queues wait at the upstream, all the time. A proxy that stops ends that at once, as a Redis does that
// stops; what was asked for before is answered, and nothing that waits.
func TestAProxyThatStopsEndsWhatWaitsAtTheUpstream(t *testing.T) {
	f := startFront(t)
	waits := [][]string{
		{"BLPOP", "queue", "0"}, {"BLMOVE", "queue", "other", "LEFT", "RIGHT", "0"}, {"BZPOPMIN", "z", "0"},
		{"XREAD", "BLOCK", "0", "STREAMS", "stream", "$"}, {"WAIT", "1", "0"},
	}
	var conns []*harness.Conn
	for _, request := range waits {
		c := dial(t, f.proxy.Addr)
		raw := harness.Encode(nil, "SET", "lock:"+request[0], "tok", "NX", "PX", "20000")
		raw = harness.Encode(raw, "INCR", "number")
		if err := c.Send(harness.Encode(raw, request...)); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	blocked(t, f.upstream, len(waits))
	stopInTime(t, f.proxy)
	for i, c := range conns {
		for _, want := range []string{"+OK\r\n", ":"} {
			if reply, err := c.Reply(); err != nil || !strings.HasPrefix(string(reply), want) {
				t.Errorf("%q: got %q, %v, want %q", waits[i], reply, err, want)
			}
		}
		if reply, err := c.Reply(); err == nil {
			t.Errorf("%q: got %q, want the end", waits[i], reply)
		}
	}
	blocked(t, f.upstream, 0)
}

// Who has asked for more behind what waits gets that, too: the upstream does it once it need not wait any more.
func TestAProxyThatStopsAnswersWhatIsBehindWhatWaits(t *testing.T) {
	f := startFront(t)
	direct(t, []*harness.Redis{f.upstream}, "RPUSH", "full", "x")
	c := dial(t, f.proxy.Addr)
	raw := harness.Encode(nil, "INCR", "number")
	for _, request := range [][]string{{"BLPOP", "empty", "0"}, {"BLPOP", "empty", "0"}, {"LPOP", "full"}, {"BLPOP", "empty", "0"}} {
		raw = harness.Encode(raw, request...)
	}
	if err := c.Send(raw); err != nil {
		t.Fatal(err)
	}
	blocked(t, f.upstream, 1)
	stopInTime(t, f.proxy)
	for _, want := range []string{":1\r\n", "-UNBLOCKED ", "-UNBLOCKED ", "$1\r\nx\r\n"} {
		if reply, err := c.Reply(); err != nil || !strings.HasPrefix(string(reply), want) {
			t.Errorf("got %q, %v, want %q", reply, err, want)
		}
	}
	if reply, err := c.Reply(); err == nil {
		t.Errorf("got %q, want the end", reply)
	}
}

// stopInTime stops the proxy, which must not have to cut off anybody.
func stopInTime(t *testing.T, p *harness.Proxy) {
	t.Helper()
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if out := p.Output(); strings.Contains(out, "connection ended") || strings.Contains(out, "cut off") {
		t.Errorf("clients were cut off:\n%s", out)
	}
}

// An element that the upstream takes from a list as the proxy stops still gets to a client.
func TestAProxyThatStopsLosesNoElement(t *testing.T) {
	f := startFront(t)
	const waiters = 300
	var conns []*harness.Conn
	for range waiters {
		c := dial(t, f.proxy.Addr)
		if err := c.Send(harness.Encode(nil, "BLPOP", "queue", "0")); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	blocked(t, f.upstream, waiters)
	var stopped atomic.Bool
	pushed, pusher := make(chan int), dial(t, f.upstream.Addr)
	go func() {
		n := 0
		for ; n < 10 || !stopped.Load(); n++ {
			if _, err := pusher.Do("RPUSH", "queue", "x"); err != nil {
				t.Error(err)
				break
			}
		}
		pushed <- n
	}()
	stopInTime(t, f.proxy)
	stopped.Store(true)
	want, got := <-pushed, 0
	for _, c := range conns {
		if _, err := c.Reply(); err == nil {
			got++
		}
	}
	reply, err := f.upstream.Do(0, "LLEN", "queue")
	left, ok := harness.Int(reply)
	if err != nil || !ok || got+int(left) != want {
		t.Errorf("%d elements were pushed; clients got %d, and %s are left, %v", want, got, reply, err)
	}
}

// An upstream that is silent cannot unblock anybody. That is not waited for beyond shutdown_timeout.
func TestAProxyStopsInTimeThoughTheUpstreamIsSilent(t *testing.T) {
	f := startFront(t, "--dial-timeout", "1m", "--shutdown-timeout", "2s")
	if err := dial(t, f.proxy.Addr).Send(harness.Encode(nil, "BLPOP", "queue", "0")); err != nil {
		t.Fatal(err)
	}
	blocked(t, f.upstream, 1)
	apply(t, paused.hit, f.upstream)
	began := time.Now()
	err := f.proxy.Stop()
	took := time.Since(began)
	apply(t, paused.heal, f.upstream)
	if err != nil || took > 2*time.Second+noise {
		t.Fatalf("it took %v, %v", took, err)
	}
}
