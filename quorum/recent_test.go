package quorum

import (
	"fmt"
	"testing"
)

// More holds than there are chains, so that many share one.
func TestRecentKnowsEveryHoldApart(t *testing.T) {
	var r recent
	r.turn(1000)
	entries := map[hold]*entry{}
	for i := range 5000 {
		h := hold{fmt.Sprint("k", i/2), fmt.Sprint("t", i%2)}
		entries[h] = &entry{round: &round{}}
		r.took(h, entries[h])
		if i == 3000 { // over two generations
			r.turn(1000 + recentFor)
		}
	}
	for h, en := range entries {
		if r.last(h) != en {
			t.Fatalf("%v: another entry", h)
		}
		if en.hasPassed() {
			t.Fatalf("%v has passed", h)
		}
	}
	for _, h := range []hold{{"k7", "t1"}, {"k2222", "t1"}} { // of the old and of the young
		second := &entry{round: &round{}}
		r.took(h, second)
		if r.last(h) != second || !entries[h].hasPassed() || second.hasPassed() {
			t.Errorf("%v: a second key of the same hold does not stand for the first", h)
		}
	}
	if r.last(hold{"k7", "t2"}) != nil {
		t.Error("a hold that nobody took")
	}
}

func TestRecentForgetsAfterTwoGenerations(t *testing.T) {
	var r recent
	h := hold{"k", "t"}
	r.turn(1000)
	r.took(h, &entry{round: &round{}})
	r.turn(1000 + recentFor)
	if r.last(h) == nil {
		t.Error("forgotten too early")
	}
	r.turn(1000 + 2*recentFor)
	if r.last(h) != nil {
		t.Error("still there")
	}
}

func BenchmarkRecent(b *testing.B) {
	var r recent
	holds := make([]hold, 256)
	for i := range holds {
		holds[i] = hold{fmt.Sprint("job:", i), "token"}
	}
	en := &entry{round: &round{}}
	b.ReportAllocs()
	now := int64(0)
	for i := 0; b.Loop(); i++ {
		r.took(holds[i%len(holds)], en)
		if i%len(holds) == 0 {
			now += recentFor
			r.turn(now)
		}
	}
}
