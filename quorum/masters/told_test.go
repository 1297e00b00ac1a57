package masters

import (
	"fmt"
	"testing"
	"time"
)

func TestWhatTheLogIsToldOfAConnection(t *testing.T) {
	var told Told
	start := time.Now()
	lost := func(after time.Duration, cause string, want bool, wantAll uint64) {
		t.Helper()
		if tell, all := told.Lost(cause, start.Add(after)); tell != want || all != wantAll {
			t.Errorf("%v, %s: %v %d, want %v %d", after, cause, tell, all, want, wantAll)
		}
	}
	found := func(want bool) {
		t.Helper()
		if tell := told.Found(); tell != want {
			t.Errorf("found: %v, want %v", tell, want)
		}
	}
	found(false) // the first one
	lost(0, "broke", true, 1)
	lost(time.Second, "refused", true, 1)
	lost(2*time.Second, "broke", false, 1)
	lost(3*time.Hour, "refused", false, 1)
	found(true)

	at := 4 * time.Hour
	lost(at, "broke", true, 2)
	found(true)
	for i := 2; i < 60; i++ { // each second
		lost(at+time.Duration(i)*time.Second, "broke", false, uint64(i+1))
		found(false)
	}
	lost(at+59*time.Second, "broke", false, 61)
	lost(at+59*time.Second, "refused", true, 61)
	found(true)
	lost(at+59*time.Second, "broke", false, 62)
	lost(at+time.Minute, "broke", true, 62) // it still is
	lost(at+time.Hour, "broke", false, 62)
	found(true)

	for i := range 100 {
		lost(5*time.Hour, fmt.Sprint(i), i < ToldMax, 63)
	}
}
