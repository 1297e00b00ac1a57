package quorum

import (
	"testing"
	"time"

	"lockproxy/quorum/vouch"
)

// Another proxy has written stricter settings and granted a lock, and then the clock stepped by more than these tolerate. The batch that is
// the first to show the settings shows the step, too.
func TestABatchIsJudgedByTheSettingsThatItShows(t *testing.T) {
	inWorldWith(t, 3, Config{Grace: 2 * time.Second, DriftFactor: 0.5}, func(w *world) {
		w.fakes[1].leave()
		w.settle()
		w.acquire("horizon", "mine", minute)
		w.settle()
		time.Sleep(240 * time.Millisecond) // just before the next heartbeat
		f := w.fakes[0]
		f.mu.Lock()
		c, _ := vouch.ParseCanary(f.marks[canaryKey].text)
		c.Grace, c.DriftFactor = 20*time.Millisecond, 0.001
		f.putMark(canaryKey, c.String())
		f.mu.Unlock()
		f.step(200 * time.Millisecond)
		if a := w.acquire("k", "yours", minute); a.Lock != nil {
			t.Error("granted")
		}
		w.settle()
		if n, _ := w.masters[0].watch.confirmed(); n != 1 {
			t.Errorf("%d jumps are confirmed", n)
		}
	})
}
