package quorum

import (
	"fmt"
	"testing"
	"time"
)

// busy has so many clients answered in one batch, and returns when they have been.
func (w *world) busy(clients int) {
	w.t.Helper()
	done := make(chan Acquired, clients)
	for i := range clients + 1 { // one goes ahead, and the others wait for its batch
		w.Acquire(AcquireRequest{Key: Key{Name: fmt.Sprint("busy ", w.now(), i)}, Token: "me", TTL: time.Second}, func(a Acquired) { done <- a })
		if i == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	for range clients + 1 {
		if a := <-done; a.Err != nil {
			w.t.Fatal(a.Err)
		}
	}
}

func TestThoseWhoWereAnsweredTogetherAreAskedTogether(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		const clients = 6
		w.busy(clients)
		began, ends := time.Now(), make(chan time.Duration, clients)
		for i := range clients {
			w.Acquire(AcquireRequest{Key: Key{Name: fmt.Sprint(i)}, Token: "me", TTL: time.Second}, func(Acquired) { ends <- time.Since(began) })
			time.Sleep(lingerMost / (2 * clients))
		}
		for i := range clients {
			if end := <-ends; end > lingerMost+3*time.Millisecond {
				t.Errorf("%d took %v: not all were in the first batch", i, end)
			}
		}
	})
}

func TestOneWhoComesAloneHardlyWaitsForTheOthers(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.busy(6)
		for i, most := range []time.Duration{lingerMost, 0, 0} { // besides 1 ms each way
			began := time.Now()
			w.acquire(fmt.Sprint(i), "me", time.Second)
			if took := time.Since(began); took > 2*time.Millisecond+most {
				t.Errorf("%d took %v", i, took)
			}
		}
	})
}
