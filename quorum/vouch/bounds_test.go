package vouch

import (
	"strings"
	"testing"
	"time"
)

func TestBoundsKeepBoth(t *testing.T) {
	a, b := Bounds{time.Hour, time.Second, 0.5, time.Second}, Bounds{time.Minute, 50 * time.Millisecond, 0.01, time.Minute}
	want := Bounds{time.Hour, 50 * time.Millisecond, 0.01, time.Minute}
	if a.And(b) != want || b.And(a) != want {
		t.Errorf("%v, %v, want %v", a.And(b), b.And(a), want)
	}
	if a.And(Unbound) != a || Unbound.And(a) != a {
		t.Errorf("unbound: %v, %v, want %v", a.And(Unbound), Unbound.And(a), a)
	}
}

func TestBoundsAreReadAsTheyAreWritten(t *testing.T) {
	for _, b := range []Bounds{
		Unbound, {time.Hour + 36*time.Second + 52*time.Millisecond, 0, 0.0001, 0}, {1500 * time.Microsecond, 90 * time.Second, 1. / 3, time.Second},
	} {
		if got, ok := parseBounds(strings.Fields(b.String())); !ok || got != b {
			t.Errorf("%v: %v %v", b, got, ok)
		}
	}
}
