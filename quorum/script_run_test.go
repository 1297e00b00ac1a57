package quorum

import (
	"testing"
	"time"
)

// A fair lock puts whoever it refuses into a queue. The queues are alike only if every master is asked, one that is busy until
// the others have refused, too. A refusal that changes nothing is not worth that.
func TestAPlaceInAQueueIsTakenOnEveryMaster(t *testing.T) {
	own := func(v Value) bool { return v.Kind == NilValue }
	for name, test := range map[string]struct {
		refusal []any
		asked   int
	}{
		"a place in a queue": {[]any{":5000;", "", "queue", "m", "60000", "1", "after", "before", "0"}, 1},
		"nothing":            {[]any{":5000;", ""}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				s := NewScript("return 1")
				for _, f := range w.fakes {
					f.vote(map[string]any{s.wrapped.text: test.refusal})
				}
				busy := w.fakes[2]
				busy.setDelay(8 * time.Millisecond)
				w.Acquire(AcquireRequest{Key: Key{Name: "another"}, Token: "mine", TTL: minute}, func(Acquired) {})
				time.Sleep(4 * time.Millisecond) // its batch is on its way to that master, and done with on the others
				refused := make(chan Ran, 1)
				w.Run(RunRequest{Script: s, Keys: []string{key, "queue"}, Rule: Rule{Merge: Taking, Granted: own}}, func(r Ran) { refused <- r })
				if r := <-refused; r.Err != nil || r.Reply.Int != 5000 {
					t.Errorf("got %+v", r)
				}
				w.settle()
				if n := busy.ran("EVAL " + s.wrapped.text[:20]); n != test.asked {
					t.Errorf("the master that was busy was asked %d times, want %d", n, test.asked)
				}
			})
		})
	}
}
