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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An instant master grants everything at once: what is left is the engine's own cost.
type instantMaster struct{}

func (instantMaster) Addr() string                                    { return "m" }
func (instantMaster) Dial(context.Context, int) (masters.Conn, error) { return instantMaster{}, nil }
func (instantMaster) Close() error                                    { return nil }
func (instantMaster) Exec(calls []*masters.Call) error {
	for _, c := range calls {
		c.Answered, c.Reply = true, "OK"
		if c.Args[0] == "TIME" {
			us := time.Now().UnixMicro()
			c.Reply = []any{strconv.FormatInt(us/1e6, 10), strconv.FormatInt(us%1e6, 10)}
		}
	}
	return nil
}

// BenchmarkAcquire measures an attempt over five masters without any network, with about 50 under way.
func BenchmarkAcquire(b *testing.B) {
	ms := make([]masters.Master, 5)
	for i := range ms {
		ms[i] = instantMaster{}
	}
	e, err := New(Config{}, ms)
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
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
			<-done
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	t := tally{Masters: 5, Granted: 2, Refused: 1}
	b.ReportAllocs()
	for b.Loop() {
		if decideAcquire(t) != Undecided {
			b.Fatal("decided")
		}
	}
}
