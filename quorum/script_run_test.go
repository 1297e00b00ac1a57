package quorum

import (
	"testing"
	"time"

	"lockproxy/quorum/vote"
)

// A fair lock puts whoever it refuses into a queue. The queues are alike only if every master is asked, one that is busy until
// the others have refused, too. A refusal that changes nothing is not worth that.
func TestAPlaceInAQueueIsTakenOnEveryMaster(t *testing.T) {
	own := func(v vote.Value) bool { return v.Kind == vote.NilValue }
	for name, test := range map[string]struct {
		refusal []any
		asked   int
	}{
		"a place in a queue": {[]any{":5000;", "", "queue", "m", "60000", "1", "after", "before", "0"}, 1},
		"nothing":            {[]any{":5000;", ""}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorldWith(t, 3, oneByOne, func(w *world) {
				s := NewScript("return 1")
				for _, f := range w.fakes {
					f.vote(map[string]any{s.wrapped.text: test.refusal})
				}
				busy := w.fakes[2]
				busy.setDelay(8 * time.Millisecond)
				w.Acquire(AcquireRequest{Key: Key{Name: "another"}, Token: "mine", TTL: minute}, func(Acquired) {})
				time.Sleep(4 * time.Millisecond) // its batch is on its way to that master, and done with on the others
				refused := make(chan Ran, 1)
				w.Run(RunRequest{Script: s, Keys: []string{key, "queue"}, Rule: vote.Rule{Merge: vote.Taking, Granted: own}}, func(r Ran) { refused <- r })
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

// A script was run twice, and the connection to a master broke that had not answered the first time. There the second was not run,
// and a third would count on from the first.
func TestAScriptIsNotAskedAgainWhereAnEarlierRunMayBeLeft(t *testing.T) {
	first := &scriptRound{round: round{entries: []entry{{fate: unknown}, {fate: answered}}}}
	second := &scriptRound{round: round{entries: []entry{{fate: dropped}, {fate: answered}}}, before: first}
	if second.isPutBack() {
		t.Error("it is run once more")
	}
	if first.entries[0].fate = sent; !second.isPutBack() {
		t.Error("it is not run once more, though a late master puts the first run back before")
	}
}

// The client counts from its request, however often it is made anew.
func TestTheTimeOfWhatIsAskedAgainBeginsOnce(t *testing.T) {
	first := &scriptRound{round: round{start: 1}}
	second := &scriptRound{round: round{start: 2}, before: first}
	third := &scriptRound{round: round{start: 3}, before: second}
	for i, r := range []interface{ began() instant }{
		first, second, third, &acquireRound{round: round{start: 1}, asked: 1}, &acquireRound{round: round{start: 2}, since: 1, asked: 2},
	} {
		if r.began() != 1 {
			t.Errorf("%d begins at %v", i, r.began())
		}
	}
}
