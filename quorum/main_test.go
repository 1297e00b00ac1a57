package quorum

import (
	"context"
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
			c.Reply = []any{strconv.FormatInt(time.Now().Unix(), 10), "0"}
		}
	}
	return nil
}

// BenchmarkAcquire measures an attempt over five masters without any network.
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
	req := AcquireRequest{Key: Key{Name: "job:7"}, Token: "token", TTL: minute}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		done := make(chan Acquired, 1)
		for pb.Next() {
			e.Acquire(req, func(a Acquired) { done <- a })
			<-done
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	t := Tally{Masters: 5, Granted: 2, Refused: 1}
	b.ReportAllocs()
	for b.Loop() {
		if Decide(t) != Undecided {
			b.Fatal("decided")
		}
	}
}
