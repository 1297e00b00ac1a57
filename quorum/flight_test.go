package quorum

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// inDistantWorld is a world in which a round trip to a master takes 20 ms. What f begins is in batches that are under way together.
func inDistantWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	inWorldWith(t, 3, Config{Grace: 400 * time.Millisecond}, func(w *world) {
		for _, m := range w.fakes {
			m.setDelay(10 * time.Millisecond)
		}
		for range 1000 { // until the lanes know how far away the masters are
			w.heartbeatAll()
			time.Sleep(25 * time.Millisecond)
		}
		w.settle()
		f(w)
	})
}

// heartbeatAll makes all masters say something.
func (w *world) heartbeatAll() {
	for _, l := range w.databases.lanes(0) {
		l.heartbeat()
	}
}

// attempts begins so many attempts, 2 ms apart, each on a key of its own.
func (w *world) attempts(n int) []chan Acquired {
	told := make([]chan Acquired, n)
	for i := range told {
		told[i] = make(chan Acquired, 1)
		w.Acquire(AcquireRequest{Key: Key{Name: fmt.Sprint("k", i)}, Token: "mine", TTL: minute}, func(a Acquired) { told[i] <- a })
		time.Sleep(2 * time.Millisecond)
	}
	return told
}

func TestNoRequestWaitsForTheBatchBefore(t *testing.T) {
	inDistantWorld(t, func(w *world) {
		began := w.now()
		for i, told := range w.attempts(5) {
			if a := <-told; a.Lock == nil {
				t.Fatalf("%d: %+v", i, a)
			}
			if took := w.now() - began - time.Duration(i)*2*time.Millisecond; took > 22*time.Millisecond {
				t.Errorf("the attempt %d took %v", i, took)
			}
		}
	})
}

// The connections break with three batches under way, and the masters run all three later.
func TestABrokenConnectionLeavesAllBatchesUnknown(t *testing.T) {
	inDistantWorld(t, func(w *world) {
		for _, f := range w.fakes {
			f.noKill = true
		}
		told := w.attempts(3)
		for _, f := range w.fakes {
			f.hangUp()
		}
		for i, told := range told {
			if a := <-told; a.Lock != nil {
				t.Errorf("%d: %+v", i, a)
			}
		}
		w.settle()
		w.settle()
		for i := range told {
			w.expectHolders(fmt.Sprint("k", i), "...")
		}
	})
}

// The canary is away while one batch runs, and back when the next does.
func TestABatchIsVouchedForByItsOwnProof(t *testing.T) {
	inDistantWorld(t, func(w *world) {
		told := make(chan []chan Acquired)
		go func() { told <- w.attempts(3) }() // they run after 10, 12 and 14 ms
		time.Sleep(9 * time.Millisecond)
		var was []value
		for _, f := range w.fakes {
			f.mu.Lock()
			was = append(was, f.marks[canaryKey])
			delete(f.marks, canaryKey)
			f.mu.Unlock()
		}
		time.Sleep(2 * time.Millisecond)
		for i, f := range w.fakes {
			f.mu.Lock()
			f.marks[canaryKey] = was[i]
			f.mu.Unlock()
		}
		for i, told := range <-told {
			a := <-told
			if none := (*NoQuorum)(nil); !errors.As(a.Err, &none) || none.Answered != 0 {
				t.Errorf("%d: %+v", i, a)
			}
		}
		w.settle()
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Errorf("when they were assessed again: %+v", a)
		}
	})
}

func TestAMasterThatStandsStillIsSentNoMore(t *testing.T) {
	inDistantWorld(t, func(w *world) {
		slow := w.fakes[0]
		slow.stall()
		w.attempts(1)
		time.Sleep(50 * time.Millisecond)
		w.attempts(1)
		for range 5 {
			w.acquire(key, "mine", minute)
			time.Sleep(20 * time.Millisecond)
		}
		slow.resume()
		w.settle()
		if n := slow.ran("SET"); n != 1 {
			t.Errorf("it ran %d", n)
		}
	})
}

// The first batch is answered late, but in time. The next is not late for that.
func TestABatchIsNotLateByTheTimeThatItWaitedBehindAnother(t *testing.T) {
	e := &Engine{cfg: Config{}.withDefaults(), engineClock: engineClock{started: time.Now().Add(-time.Hour)}}
	e.answers.ticked.Store(int64(e.now())) // this process has not stood still
	q := &laneQueue{engine: e, master: &master{}}
	if why := q.overdue(q.engine.waited()); why.none() {
		t.Fatal("a batch that is not answered for an hour is not late")
	}
	q.goesOn()
	if why := q.overdue(q.engine.waited()); !why.none() {
		t.Errorf("the next is late: %v", why)
	}
}

// Between two batches that are under way this process finds out that it has stood still. What the first has set expires by a clock
// that was not right.
func TestABatchIsJudgedByTheClockOfItsOwnMoment(t *testing.T) {
	inDistantWorld(t, func(w *world) {
		early := w.attempts(1)
		for _, m := range w.masters {
			m.watch.restarts.Add(1)
		}
		late := w.attempts(2)
		if a := <-early[0]; a.Lock != nil {
			t.Errorf("the first counts: %+v", a)
		}
		if a := <-late[1]; a.Lock == nil {
			t.Errorf("the last does not: %+v", a)
		}
	})
}

// The third master has forgotten the script of a release, and the next attempt is under way behind the release.
func TestNothingIsSentAgainThatALaterBatchHasOvertaken(t *testing.T) {
	inDistantWorld(t, func(w *world) {
		w.acquire(key, "mine", minute)
		w.settle()
		w.fakes[2].set(key, "gone", -time.Second)
		w.fakes[2].flushScripts()
		w.Release(Key{Name: key}, "mine", func(Released) {})
		time.Sleep(2 * time.Millisecond)
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		w.settle()
		w.expectHolders(key, "mmm")
		if w.fakes[2].ran("EVALSHA "+luaRelease.sha) != 1 {
			t.Error("the master knew the script")
		}
	})
}

// The clock of the first batch is asked for again, and is set back before the answer. The batches behind ran before: what they showed of the
// clock is no step forwards, though they are handed out later.
func TestAnswersTellOfAClockInTheirOrder(t *testing.T) {
	inDistantWorld(t, func(w *world) {
		w.attempts(1)
		w.masters[0].watch.restarts.Add(1) // so that the clock is asked for again
		w.attempts(2)
		time.Sleep(24 * time.Millisecond) // they are answered, and the question is on its way
		w.fakes[0].step(-5 * time.Second)
		w.settle()
		if n, why := w.masters[0].watch.confirmed(); n != 0 {
			t.Errorf("%d times the clock is said to have jumped forwards, the last time: %s", n, why)
		}
		w.expectStates("ccc")
	})
}
