package quorum

import (
	"testing"
	"time"
)

func TestDurationsFallBelowTheirBounds(t *testing.T) {
	var d durations
	for _, took := range []time.Duration{-1, 0, 63 * time.Microsecond, 64 * time.Microsecond, 127 * time.Microsecond, 128 * time.Microsecond, time.Second, time.Hour} {
		b := bucket(took)
		if b < durationBuckets-1 && took >= DurationBound(b) || b > 0 && took < DurationBound(b-1) {
			t.Errorf("%v is in bucket %d", took, b)
		}
		d.add(max(took, 0))
	}
	all := d.load()
	if all.Count != 8 || all.Below[0] != 3 || all.Below[1] != 2 || all.Below[durationBuckets-1] != 1 {
		t.Errorf("%+v", all)
	}
	for q, want := range map[float64]time.Duration{0: 64 * time.Microsecond, 0.375: 64 * time.Microsecond, 0.5: 128 * time.Microsecond, 0.8: DurationBound(14), 1: DurationBound(15)} {
		if got := all.Quantile(q); got != want {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if got := (&Durations{}).Quantile(0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
