package gate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"lockproxy/quorum"
	"lockproxy/quorum/pubsub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = quorum.Key{Name: "k"}

// A world is gates over one resource, which a test holds and releases.
type world struct {
	*Gates
	t *testing.T

	mu      sync.Mutex // guards all below
	holder  string
	expires time.Time
	err     error  // of the next attempt
	votes   string // of an attempt that is refused: r refused, g granted, f told nothing
	tries   []string
	bell    pubsub.Subscriber
	deaf    error  // subscriptions fail
	hears   uint64 // masters whose bells ring for the waiters
	answers []string

	handovers int
	mute      bool // no bell rings by itself
}

func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, votes: "rrr", hears: all}
		w.Gates = New(w, w, 3, rand.N[time.Duration])
		f(w)
		w.Close()
		if w.bell != nil || len(w.gates) != 0 {
			t.Error("a gate was left behind")
		}
	})
}

// Acquire of an engine takes 1 ms.
func (w *world) attempt(req quorum.AcquireRequest) quorum.Acquired {
	time.Sleep(time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries = append(w.tries, req.Token)
	left := time.Until(w.expires)
	switch {
	case w.err != nil:
		return quorum.Acquired{Err: w.err}
	case w.holder != "" && left > 0:
		var in []time.Duration
		for _, v := range w.votes {
			in = append(in, map[rune]time.Duration{'r': left, 'g': 0, 'f': -1}[v])
		}
		return quorum.Acquired{Refused: true, FreeIn: in}
	}
	w.holder, w.expires = req.Token, time.Now().Add(req.TTL)
	return quorum.Acquired{Lock: &quorum.Lock{}}
}

func (w *world) Acquire(req quorum.AcquireRequest, done func(quorum.Acquired)) {
	if !req.WantFree {
		w.t.Error("an attempt of a waiter did not ask for the TTL")
	}
	go func() { done(w.attempt(req)) }()
}

// Release of an engine takes 1 ms, and rings.
func (w *world) Release(_ quorum.Key, token string, done func(quorum.Released)) {
	go func() { done(w.giveBack(token, "")) }()
}

func (w *world) giveBack(token, bell string) quorum.Released {
	time.Sleep(time.Millisecond)
	w.mu.Lock()
	held := w.holder == token
	if held {
		w.holder = ""
	}
	rings := held && !w.mute
	w.mu.Unlock()
	if rings {
		w.ringAs(bell, 0, 1, 2)
	}
	return quorum.Released{Held: held}
}

func (w *world) HandOver(h quorum.HandOver, released func(quorum.Released), acquired func(quorum.Acquired)) {
	go func() {
		r := w.giveBack(h.Token, h.Bell)
		w.mu.Lock()
		w.handovers++
		w.mu.Unlock()
		a := w.attempt(h.Next)
		released(r)
		acquired(a)
	}()
}

func (w *world) Subscribe(s pubsub.Subscriber, topics []pubsub.Topic, done func(error)) {
	if !slices.Equal(topics, []pubsub.Topic{{Kind: pubsub.Bell, Name: "k"}}) {
		w.t.Errorf("subscribed to %v", topics)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deaf == nil {
		w.bell = s
	}
	done(w.deaf)
}

func (w *world) Unsubscribe(s pubsub.Subscriber, _ []pubsub.Topic) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bell = nil
}

func (w *world) Confirmed(pubsub.Topic) uint64 { return w.hears }

func (w *world) hold(token string, ttl time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holder, w.expires = token, time.Now().Add(ttl)
}

func (w *world) ring(masters ...int) { w.ringAs("", masters...) }

// release rings the bells of these masters.
func (w *world) release(masters ...int) {
	w.mu.Lock()
	w.holder = ""
	w.mu.Unlock()
	w.ring(masters...)
}

func (w *world) ringAs(name string, masters ...int) {
	w.mu.Lock()
	bell := w.bell
	w.mu.Unlock()
	for _, m := range masters {
		if bell != nil {
			bell.Deliver(pubsub.Message{Master: m, Payload: name})
		}
	}
}

// wait makes token wait, and notes the answer.
func (w *world) wait(token string, patience time.Duration) *Waiter {
	began := time.Now()
	return w.Gates.Acquire(quorum.AcquireRequest{Key: key, Token: token, TTL: time.Second}, patience, func(a quorum.Acquired) {
		w.mu.Lock()
		defer w.mu.Unlock()
		text := "nothing"
		switch {
		case a.Lock != nil:
			text = "granted"
		case a.Refused:
			text = "refused"
		case a.Err != nil:
			text = a.Err.Error()
		}
		w.answers = append(w.answers, fmt.Sprintf("%s %s@%d", token, text, time.Since(began).Milliseconds()))
	})
}

// want compares what was answered since the last want, and how many tries there were.
func (w *world) want(tries int, answers ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.answers, answers) || len(w.tries) != tries {
		w.t.Errorf("%d tries, %q; want %d, %q", len(w.tries), w.answers, tries, answers)
	}
	w.answers, w.tries = nil, nil
}

func TestAFreeResourceIsTakenWithOneTry(t *testing.T) {
	inWorld(t, func(w *world) {
		w.wait("a", time.Minute)
		time.Sleep(time.Millisecond)
		w.want(1, "a granted@1")
	})
}

func TestWaitersAreServedInTheirOrderWhenTheBellsRing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hold("x", time.Minute)
		for _, token := range []string{"a", "b", "c"} {
			w.wait(token, time.Hour)
		}
		time.Sleep(10 * time.Millisecond)
		w.want(2) // and one more after the subscription
		if n := w.Waiting(key); n != 3 {
			t.Errorf("%d wait", n)
		}
		w.release(0, 1)
		time.Sleep(time.Millisecond)
		w.release(2)
		w.want(1, "a granted@11")
		time.Sleep(100 * time.Millisecond)
		w.want(0)
		w.release(2, 0, 1)
		time.Sleep(time.Millisecond)
		w.want(1, "b granted@112")
		w.release(1, 2)
		time.Sleep(time.Millisecond)
		w.want(1, "c granted@113")
	})
}

// One that fails while its attempt is under way is told why, unless the attempt succeeds.
func TestAWaitThatIsMadeToFailEndsWithTheCause(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pause = func(most time.Duration) time.Duration { return most }
		w.hold("x", time.Minute)
		sleeping := w.wait("a", time.Hour)
		time.Sleep(10 * time.Millisecond)
		sleeping.Fail(errors.New("cause"))
		w.want(2, "a cause@10")
		trying := w.wait("b", time.Hour)
		time.Sleep(500 * time.Microsecond)
		trying.Fail(errors.New("cause"))
		w.want(0)
		time.Sleep(time.Millisecond)
		w.want(1, "b cause@1")
		w.release()
		granted := w.wait("c", time.Hour)
		time.Sleep(500 * time.Microsecond)
		granted.Fail(errors.New("cause"))
		time.Sleep(time.Millisecond)
		w.want(1, "c granted@1")
		w.err = &quorum.NoQuorum{Masters: 3, Answered: 1}
		unanswered := w.wait("d", time.Hour)
		time.Sleep(1500 * time.Microsecond)
		unanswered.Fail(errors.New("cause"))
		w.want(1, "d cause@1")
	})
}

// Nobody had to listen for the first to get it; the second has to.
func TestTheSecondOfTwoWaitersHearsTheBells(t *testing.T) {
	inWorld(t, func(w *world) {
		w.wait("a", time.Hour)
		w.wait("b", time.Hour)
		time.Sleep(100 * time.Millisecond)
		w.want(3, "a granted@1")
		w.release(0, 1, 2)
		time.Sleep(time.Millisecond)
		w.want(1, "b granted@101")
	})
}

func TestAWaiterIsWokenByTheExpiryAndNotByTheClock(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hold("x", 10*time.Second)
		w.wait("a", time.Hour)
		time.Sleep(9 * time.Second)
		w.want(2)
		w.hold("x", 10*time.Second) // extended
		time.Sleep(2 * time.Second)
		w.want(1)
		time.Sleep(10 * time.Second)
		w.want(1, "a granted@19001")
	})
}

// It had the lock to expect of whom it waits behind, and knows nothing of the masters.
func TestAReleaseThatFewMastersRingForIsTriedAfterAWhile(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hold("x", time.Minute)
		w.wait("a", time.Hour)
		w.wait("b", time.Hour)
		time.Sleep(10 * time.Millisecond)
		w.release(0, 1)
		time.Sleep(10 * time.Millisecond)
		w.want(3, "a granted@11")
		w.release(1)
		time.Sleep(ringWait - time.Millisecond)
		w.want(0)
		time.Sleep(2 * time.Millisecond)
		w.want(1, "b granted@41")
	})
}

// The waiter itself is granted where the lock is not, and hears when that is undone.
func TestNobodyIsWokenByWhatLeavesTheLockHeld(t *testing.T) {
	inWorld(t, func(w *world) {
		w.votes = "rrg"
		w.hold("x", time.Minute)
		w.wait("a", time.Hour)
		time.Sleep(10 * time.Millisecond)
		w.want(2)
		w.ring(2)
		time.Sleep(time.Second)
		w.ring(2, 2)
		time.Sleep(time.Second)
		w.want(0)
		w.release(0)
		time.Sleep(2 * time.Millisecond)
		w.want(1, "a granted@2011")
	})
}

// Master 2 has something of somebody else's, and master 1 answers too late to be heard: its bell says nothing before the pause is over.
func TestAWaiterThatHasBeenRefusedOftenIsWokenAsSoonAsAnother(t *testing.T) {
	for name, again := range map[string]func(w *world){
		"bells": func(w *world) {
			w.ring(0, 2)
			time.Sleep(2 * time.Millisecond)
		},
		"expiries": func(w *world) {
			time.Sleep(798 * time.Millisecond)
			w.hold("x", time.Second)
			time.Sleep(202 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.votes = "rfr"
				w.hold("x", time.Second)
				w.wait("a", time.Hour)
				time.Sleep(2 * time.Millisecond)
				for range 10 {
					again(w)
				}
				w.release(0, 1)
				time.Sleep(splitWait + 2*time.Millisecond)
				synctest.Wait()
				w.mu.Lock()
				defer w.mu.Unlock()
				if len(w.tries) != 13 || len(w.answers) != 1 {
					t.Errorf("%d tries, %q", len(w.tries), w.answers)
				}
				w.tries, w.answers = nil, nil
			})
		})
	}
}

// Master 1 has something of somebody else's, and the bell of master 0 is not heard.
func TestAWaiterIsWokenWhereTheBellOfOneMasterIsNotHeard(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hears = 0b110
		w.hold("x", time.Minute)
		w.wait("a", time.Hour)
		time.Sleep(time.Second)
		w.want(2)
		w.release(2)
		time.Sleep(time.Millisecond)
		w.want(1, "a granted@1001")
	})
}

// Master 2 tells nothing. Of two that have a vote each, each hears the other's undo.
func TestVotesThatAreSplitAgainAndAgainAreTriedMoreAndMoreSlowly(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pause = func(most time.Duration) time.Duration { return most }
		w.votes = "grf"
		w.hold("x", time.Hour)
		w.wait("a", time.Hour)
		time.Sleep(2 * time.Millisecond)
		w.want(2)
		w.ring(1)
		time.Sleep(time.Millisecond)
		w.want(1)
		for _, still := range []time.Duration{2500, 4000, 4000} {
			w.ring(1)
			time.Sleep(still * time.Microsecond)
			w.want(0)
			time.Sleep(time.Millisecond)
			w.want(1)
		}
	})
}

func TestAWaitEndsInTime(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hold("x", time.Minute)
		w.wait("a", 100*time.Millisecond)
		w.wait("b", 50*time.Millisecond)
		c := w.wait("c", time.Hour)
		time.Sleep(70 * time.Millisecond)
		w.want(2, "b refused@50")
		c.Cancel()
		c.Cancel()
		w.want(0, "c refused@70")
		time.Sleep(70 * time.Millisecond)
		w.want(0, "a refused@100")
	})
}

// What is granted after the client's time is over is still the client's, or its session's to abandon.
func TestAnAttemptUnderWayIsWaitedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.wait("a", time.Hour)
		synctest.Wait()
		a.Cancel()
		time.Sleep(time.Millisecond)
		w.want(1, "a granted@1")
		w.wait("b", 500*time.Microsecond)
		time.Sleep(2 * time.Millisecond)
		w.want(1, "b refused@1")
	})
}

func TestErrorsEndTheWait(t *testing.T) {
	inWorld(t, func(w *world) {
		w.err = errors.New("BAD")
		w.wait("a", time.Hour)
		time.Sleep(2 * time.Millisecond)
		w.want(1, "a BAD@1")
		w.err = nil
		w.hold("x", time.Minute)
		w.deaf = errors.New("DEAF")
		w.wait("b", time.Hour)
		w.wait("c", time.Hour)
		time.Sleep(2 * time.Millisecond)
		w.want(2, "b DEAF@1", "c DEAF@2")
	})
}

// A waiter outlasts masters that do not answer for a while, and is told if that is how it ends.
func TestWhileNoQuorumAnswersItIsTriedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pause = func(most time.Duration) time.Duration { return most }
		none := &quorum.NoQuorum{Masters: 3, Answered: 1}
		set := func(attempts, bells error) {
			w.mu.Lock()
			w.err, w.deaf, w.tries = attempts, bells, nil
			w.mu.Unlock()
		}
		set(none, nil)
		w.wait("a", 2*time.Second)
		time.Sleep(3 * time.Second)
		w.mu.Lock()
		if n := len(w.tries); n > 30 || len(w.answers) != 1 || !strings.HasPrefix(w.answers[0], "a "+none.Error()+"@20") {
			t.Errorf("%d tries, %q", n, w.answers)
		}
		w.answers = nil
		w.mu.Unlock()
		w.hold("x", time.Minute)
		set(nil, none)
		w.wait("b", 2*time.Second)
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		w.mu.Lock()
		if !slices.Equal(w.answers, []string{"b " + none.Error() + "@2000"}) {
			t.Errorf("%q", w.answers)
		}
		w.answers = nil
		w.mu.Unlock()
		w.wait("c", time.Hour)
		time.Sleep(3 * time.Second)
		set(nil, nil)
		time.Sleep(2 * time.Second)
		w.release(0, 1)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if !slices.Equal(w.answers, []string{"c granted@5001"}) {
			t.Errorf("%q", w.answers)
		}
	})
}

func TestSplitVotesAreTriedAgainMoreAndMoreRarely(t *testing.T) {
	inWorld(t, func(w *world) {
		w.votes = "rgf"
		w.hold("x", time.Hour)
		w.wait("a", time.Minute)
		time.Sleep(time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		if n := len(w.tries); n < 60 || n > 300 {
			t.Errorf("%d tries in a minute", n)
		}
		w.tries = nil
	})
}

func TestNobodyWaitsAfterTheEnd(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hold("x", time.Minute)
		w.wait("a", time.Hour)
		w.wait("b", time.Hour)
		time.Sleep(10 * time.Millisecond)
		w.EndWaits()
		text := quorum.ErrClosed.Error()
		w.want(2, "a "+text+"@10", "b "+text+"@10")
		w.wait("c", time.Hour).Cancel()
		w.want(0, "c "+text+"@0")
	})
}
