package main

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"lockproxy/cmd/lockproxy/config"
)

func TestProcessorsFollowTheLoad(t *testing.T) {
	repeat := func(n int, v float64) []float64 { return slices.Repeat([]float64{v}, n) }
	for _, c := range []struct {
		name      string
		now, most int
		busy      []float64 // processors, from one look to the next
		want      int
	}{
		{"idle", 1, 4, repeat(100, 0), 1},
		{"one suffices", 1, 4, repeat(100, 0.89), 1},
		{"one does not suffice", 1, 4, repeat(inRow, 0.91), 2},
		{"a short burst", 1, 4, slices.Concat(repeat(inRow-1, 1), repeat(1, 0.5), repeat(inRow-1, 1)), 1},
		{"nor do two", 1, 4, slices.Concat(repeat(inRow, 1), repeat(inRow, 1.9)), 3},
		{"two suffice", 1, 4, slices.Concat(repeat(inRow, 1), repeat(100, 1.1)), 2},
		{"step by step", 1, 8, repeat(3*inRow, 4), 4},
		{"no more than Go would take", 1, 2, repeat(100, 2), 2},
		{"one would do again", 3, 4, repeat(inRow, 1.6), 2},
		{"one would do, but not for long enough", 3, 4, repeat(inRow-1, 1.6), 3},
		{"nor again and again", 3, 4, slices.Concat(repeat(inRow-1, 1.6), repeat(1, 1.8), repeat(inRow-1, 1.6)), 3},
		{"fewer step by step", 4, 4, repeat(2*inRow, 0), 2},
		{"all are given back but one", 4, 4, repeat(100, 0), 1},
		{"what the larger number costs does not keep it", 2, 4, repeat(inRow, 0.84), 1},
		{"it does not go up and down", 2, 4, repeat(100, 0.9), 2},
	} {
		at, used := time.Now(), time.Duration(0)
		p := processors{now: c.now, most: c.most, at: at}
		got := c.now
		for _, busy := range c.busy {
			at, used = at.Add(lookEvery), used+time.Duration(busy*float64(lookEvery))
			got = p.look(at, used)
		}
		if got != c.want {
			t.Errorf("%s: %d processors, want %d", c.name, got, c.want)
		}
	}
}

func TestTheProcessorTimeGrows(t *testing.T) {
	user, system := processorTime()
	if user+system == 0 {
		t.Skip("it is not known on this system")
	}
	for deadline := time.Now().Add(waitMax); time.Now().Before(deadline); {
		if u, s := processorTime(); u+s > user+system {
			return
		}
	}
	t.Error("it stands still")
}

func TestGOMAXPROCSIsTheUsersChoice(t *testing.T) {
	defer runtime.SetDefaultGOMAXPROCS()
	for _, c := range []struct {
		set      string
		adapting bool
	}{{"", true}, {"3", false}} {
		t.Setenv("GOMAXPROCS", c.set)
		runtime.GOMAXPROCS(3)
		p := process{cfg: &config.Config{}}
		if err := p.startProcessors(); err != nil {
			t.Fatal(err)
		}
		if got := runtime.GOMAXPROCS(0); (got < 3) != c.adapting {
			t.Errorf("GOMAXPROCS=%q: %d processors", c.set, got)
		}
		p.stop(0)
	}
}
