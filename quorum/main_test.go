package quorum

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
	"lockproxy/quorum/vouch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An instant master is clean, and grants everything at once: what is left is the engine's own cost.
type instantMaster struct{ addr, canary string }

func (m *instantMaster) Addr() string                                    { return m.addr }
func (m *instantMaster) Dial(context.Context, int) (masters.Conn, error) { return m, nil }
func (m *instantMaster) Close() error                                    { return nil }
func (m *instantMaster) Send([]*masters.Call) error                      { return nil }
func (m *instantMaster) Receive(calls []*masters.Call) error             { return m.Exec(calls) }
func (m *instantMaster) Exec(calls []*masters.Call) error {
	for _, c := range calls {
		c.Answered, c.Reply = true, "OK"
		switch c.Args[0] {
		case "TIME":
			us := time.Now().UnixMicro()
			c.Reply = []any{strconv.FormatInt(us/1e6, 10), strconv.FormatInt(us%1e6, 10)}
		case "MGET":
			c.Reply = []any{m.canary, nil, nil}
		case "EVAL": // luaHorizon
			c.Reply = c.Args[len(c.Args)-1]
		}
	}
	return nil
}

// BenchmarkAcquire measures an attempt over five masters without any network, with about 50 under way.
func BenchmarkAcquire(b *testing.B) {
	cfg, ms := Config{}.withDefaults(), make([]masters.Master, 5)
	for i := range ms {
		ms[i] = &instantMaster{addr: strconv.Itoa(i)}
	}
	for i := range ms {
		is := vouch.Canary{Slot: i, Process: "-", Lineage: "-", Epoch: 1, Members: Members(ms, ""), Bounds: cfg.bounds()}
		ms[i].(*instantMaster).canary = is.String()
	}
	e, err := New(cfg, ms)
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	for began := time.Now(); e.Ready() != nil; runtime.Gosched() {
		if time.Since(began) > time.Minute {
			b.Fatal(e.Ready())
		}
	}
	var names [1000]string
	for i := range names {
		names[i] = "job:" + strconv.Itoa(i)
	}
	b.ReportAllocs()
	b.SetParallelism(50 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		req := AcquireRequest{Token: "token", TTL: minute}
		done := make(chan Acquired, 1)
		for i := rand.IntN(len(names)); pb.Next(); i++ {
			req.Key.Name = names[i%len(names)]
			e.Acquire(req, func(a Acquired) { done <- a })
			if a := <-done; a.Lock == nil {
				b.Errorf("not granted: %+v", a)
				return
			}
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	t := rules.Tally{Masters: 5, Granted: 2, Refused: 1}
	b.ReportAllocs()
	for b.Loop() {
		if rules.DecideAcquire(t) != rules.Undecided {
			b.Fatal("decided")
		}
	}
}
