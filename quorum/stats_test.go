package quorum

import (
	"testing"
	"time"
)

func TestDurationsFallBelowTheirBounds(t *testing.T) {
	var d Histogram
	for _, took := range []time.Duration{-1, 0, 999, time.Microsecond, 1999, 2 * time.Microsecond, time.Second, 2 * time.Hour} {
		b := bucket(took)
		if b < durationBuckets-1 && took >= DurationBound(b) || b > 0 && took < DurationBound(b-1) {
			t.Errorf("%v is in bucket %d", took, b)
		}
		d.Add(took)
	}
	all := d.Load()
	if all.Count != 8 || all.Below[0] != 3 || all.Below[1] != 2 || all.Below[durationBuckets-1] != 1 || all.Sum < 2*time.Hour {
		t.Errorf("%+v", all)
	}
	for q, want := range map[float64]time.Duration{0: time.Microsecond, 0.375: time.Microsecond, 0.5: 2 * time.Microsecond, 0.8: DurationBound(20), 1: DurationBound(32)} {
		if got := all.Quantile(q); got != want {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if got := (&Durations{}).Quantile(0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
