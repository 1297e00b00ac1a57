package main

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

func TestTheTableOfRedisBenchmarkIsRead(t *testing.T) {
	got, err := parseBenchmark("WARNING: something first\n" +
		`"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"` + "\n" +
		`"SET key:__rand_int__ tok NX PX 30000","102040.82","0.250","0.080","0.239","0.335","0.463","1.119"` + "\n")
	want := result{perSecond: 102040.82, p50: 239 * time.Microsecond, p99: 463 * time.Microsecond}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := parseBenchmark("Could not connect"); err == nil {
		t.Error("no table was read as one")
	}
}

// redis-benchmark itself would try for ever.
func TestAServerThatIsNotThereIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if _, err := redisBenchmark(l.Addr().String(), setWords)(load{clients: 1, pipeline: 1, requests: 1}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v", err)
	}
}

func TestMediansAreTakenForEachFigure(t *testing.T) {
	got := median([]result{
		{perSecond: 3, p50: 30, p99: 100}, {perSecond: 1, p50: 10, p99: 300}, {perSecond: 2, p50: 50, p99: 200},
	})
	if want := (result{perSecond: 2, p50: 30, p99: 200}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestATargetWithoutFiguresIsNotJudged(t *testing.T) {
	r := &report{figures: []figure{figureOf("a", 8)}}
	a, missing := key{"set", "a", 1, 1}, key{"set", "b", 1, 1}
	if _, measured := r.ratio(figure.rate, a, missing)(); measured {
		t.Error("a ratio to nothing")
	}
	if got, measured := r.ratio(figure.rate, a, a)(); got.value != 1 || !measured {
		t.Errorf("got %v, %v", got, measured)
	}
}

// By the medians the first is 8 to 3.
func TestRatiosAreOfTheSameRound(t *testing.T) {
	other := figureOf("b", 10, 30, 5)
	other.clients = 2
	r := &report{figures: []figure{figureOf("a", 8, 24, 6), figureOf("b", 2, 4, 3), other}}
	for _, c := range []struct {
		to   key
		want reached
	}{{key{"set", "b", 1, 1}, reached{4, 2, 6}}, {key{"set", "b", 2, 1}, reached{value: 0.8}}} { // the latter was measured in other rounds
		if got, _ := r.ratio(figure.rate, key{"set", "a", 1, 1}, c.to)(); got != c.want {
			t.Errorf("to %v: %v, want %v", c.to, got, c.want)
		}
	}
}

func figureOf(subject string, rates ...float64) figure {
	f := figure{what: "set", subject: subject, clients: 1, pipeline: 1}
	for _, rate := range rates {
		f.rounds = append(f.rounds, result{perSecond: rate})
	}
	f.result = median(f.rounds)
	return f
}

// 150 ns of 10 µs are 1.5 %; without the attempts there is no share.
func TestTheHottestKeysCostAShareOfAnAttempt(t *testing.T) {
	r := &report{sketch: sketchCost{same: 150 * time.Nanosecond, other: 300 * time.Nanosecond}}
	if _, measured := r.watchedTargets(3)[0].got(); measured {
		t.Error("a share of nothing")
	}
	attempts := figure{what: refusedWhat, subject: "lockproxy, 3 masters", clients: 50, pipeline: 1}
	attempts.spent.proxy = cpu{user: 4, system: 6}
	r.figures = []figure{attempts}
	for i, want := range []float64{1.5, 3} {
		if got, measured := r.watchedTargets(3)[i].got(); got.value != want || !measured {
			t.Errorf("got %v, %v, want %v", got, measured, want)
		}
	}
}
