package rules

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestValidityIsTTLLessElapsedLessDrift(t *testing.T) {
	for _, c := range []struct{ ttl, elapsed, want time.Duration }{
		{30 * time.Second, 0, 30*time.Second - 302*time.Millisecond},
		{30 * time.Second, time.Second, 29*time.Second - 302*time.Millisecond},
		{100 * time.Millisecond, 97 * time.Millisecond, 0},
		{2 * time.Millisecond, 0, -20 * time.Microsecond},
	} {
		if got := Validity(c.ttl, c.elapsed, 0.01); got != c.want {
			t.Errorf("Validity(%v, %v) = %v, want %v", c.ttl, c.elapsed, got, c.want)
		}
	}
}

func TestTheShortestTTLLeavesAMillisecond(t *testing.T) {
	for factor, want := range map[float64]time.Duration{0.0001: 4, 0.01: 4, 0.3: 5, 0.5: 6} {
		if got := TTLMin(factor); got != want*time.Millisecond {
			t.Errorf("factor %v: %v", factor, got)
		}
	}
}

func TestMastersKeepALockLongerThanItIsPromised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		factor := rapid.Float64Range(0, 0.5).Draw(t, "factor")
		grace := time.Duration(rapid.Int64Range(0, 1000).Draw(t, "grace")) * time.Millisecond
		ttl := time.Duration(rapid.Int64Range(1, 86_400_000).Draw(t, "ms")) * time.Millisecond
		kept := Kept(ttl, grace, factor)
		// The master's clock runs fast by the whole factor: what it calls kept is this long on ours.
		if real := time.Duration(float64(kept) / (1 + factor)); real < ttl {
			t.Fatalf("a fast master drops the key after %v, before the TTL %v", real, ttl)
		}
		if kept%time.Millisecond != 0 {
			t.Fatalf("%v is not whole milliseconds", kept)
		}
		if shown := Shown(kept, grace, factor); shown < ttl || shown > ttl+2*time.Millisecond {
			t.Fatalf("a key just set with %v shows %v", ttl, shown)
		}
		elapsed := time.Duration(rapid.Int64Range(0, int64(ttl)).Draw(t, "elapsed"))
		if shown := Shown(kept-elapsed, grace, factor); shown < (ttl - elapsed).Truncate(time.Millisecond) {
			t.Fatalf("%v after %v shows %v, less than is left", ttl, elapsed, shown)
		}
	})
}
