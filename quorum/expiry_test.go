package quorum

import (
	"strconv"
	"testing"
	"time"
)

// beside returns a token of another resource whose expiries are chosen from the same place.
func (sig signature) beside(name string) signature {
	place := func(sig signature) uint64 { return (sig.hash()>>32*31 + sig.hash()) % 1024 }
	other := signature{name: name}
	for i := 0; place(other) != place(sig); i++ {
		other.token = strconv.Itoa(i)
	}
	return other
}

// An attempt is lost on its way to a master, and undone there until it is sure that it was not there. Meanwhile another is granted
// that is to expire at the same time: made anew, or by a client that names when its lock is to expire.
func TestAnUndoThatIsRepeatedTakesNoVoteOfTheNextAttempt(t *testing.T) {
	for wait := range 8 { // whatever the millisecond is
		insists := wait%2 == 0
		inWorld(t, 3, func(w *world) {
			time.Sleep(time.Duration(wait/2) * time.Millisecond)
			w.cfg.Pause = func(time.Duration) time.Duration { return 50 * time.Millisecond }
			w.acquire("before", "mine", minute) // which tells the time
			w.fakes[1].set(key, "other", minute)
			w.fakes[2].stall()
			began := w.now()
			c := w.start(AcquireRequest{Key: Key{Name: key}, Token: "mine", TTL: minute, Insist: func() bool { return insists }})
			time.Sleep(5 * time.Millisecond)
			w.fakes[2].cut()
			w.fakes[2].resume()
			time.Sleep(30 * time.Millisecond)
			beside := signature{name: key, token: "mine"}.beside("elsewhere")
			w.acquire(beside.name, beside.token, time.Second)
			a := <-c
			if !insists {
				time.Sleep(20 * time.Millisecond)
				a = w.acquire(key, "mine", minute-(w.now()-began))
			}
			if a.Lock == nil {
				t.Fatalf("not granted: %+v", a)
			}
			w.settle()
			w.expectHolders(key, "mom")
		})
	}
}

// The same, and one that lasts longer is being undone as well.
func TestUndosThatAreRepeatedTakeNoVoteOfTheNextAttempt(t *testing.T) {
	for wait := range 4 {
		inWorld(t, 3, func(w *world) {
			time.Sleep(time.Duration(wait) * time.Millisecond)
			w.acquire("before", "mine", minute)
			w.fakes[1].set(key, "other", minute)
			began := w.now()
			for _, ttl := range []time.Duration{minute, 2 * minute} {
				w.fakes[2].stall()
				c := w.start(AcquireRequest{Key: Key{Name: key}, Token: "mine", TTL: ttl - (w.now() - began)})
				time.Sleep(5 * time.Millisecond)
				w.fakes[2].cut()
				w.fakes[2].resume()
				time.Sleep(50 * time.Millisecond)
				<-c
			}
			beside := signature{name: key, token: "mine"}.beside("elsewhere")
			w.acquire(beside.name, beside.token, time.Second)
			if a := w.acquire(key, "mine", minute-(w.now()-began)); a.Lock == nil {
				t.Fatalf("not granted: %+v", a)
			}
			w.settle()
			w.expectHolders(key, "mom")
		})
	}
}

// The lane has not begun to work on what fills its queue.
func TestAReleaseForWhichThereIsNoRoomIsOwed(t *testing.T) {
	inWorldWith(t, 3, Config{QueueMax: 1}, func(w *world) {
		l := newLane(w.Engine, w.masters[2], 0, make(roster, 3))
		attempt, release := &entry{}, &entry{}
		if d := l.queue.push(attempt, w.waited()); !d.none() {
			t.Fatal(d)
		}
		if d := l.queue.push(release, w.waited()); d.none() {
			t.Fatal("there is room")
		}
		sig := signature{name: key, token: "mine"}
		if l.ledger.owe(sig, 2); !l.ledger.owes(sig, 1) {
			t.Error("the attempt that waits is not undone")
		}
		l.rest()
		if !l.ledger.owes(sig, 1) {
			t.Error("it is not undone after the batch before it")
		}
		l.collect()
		if l.rest(); l.ledger.owes(sig, 1) {
			t.Error("it is remembered for ever")
		}
	})
}

// An undo is lost with its connection, and there is no room for it any more.
func TestAnUndoThatIsGivenUpKeepsNoInstant(t *testing.T) {
	inWorldWith(t, 3, Config{Grace: 400 * time.Millisecond, QueueMax: 2}, func(w *world) {
		late := w.fakes[2]
		for _, name := range []string{"a", "b"} {
			w.acquire(name, "mine", minute)
		}
		for _, f := range w.fakes[:2] {
			f.set(key, "other", minute)
		}
		w.settle()
		c := w.start(req1("mine", minute))
		time.Sleep(5 * time.Millisecond / 2) // granted, and about to be undone
		late.stall()
		<-c
		time.Sleep(w.cfg.InstanceTimeout)
		w.release("a", "mine")
		w.release("b", "mine")
		late.cut()
		late.resume()
		w.settle()
		w.settle()
		l := w.databases.lanes(0)[2]
		l.queue.mu.Lock()
		defer l.queue.mu.Unlock()
		if n := len(l.clock.expiries.undone); n > 0 {
			t.Errorf("%d instants are kept for undos that are over", n)
		}
	})
}

// How much longer a key is kept than was asked for is known of the instant that was chosen last, and has a bound of any other.
func TestHowMuchLaterAKeyExpiresIsKnown(t *testing.T) {
	var e expiries
	sig := signature{name: key, token: "mine"}
	for asked := int64(1_000_000); asked < 1_000_200; asked++ { // an attempt each millisecond
		at := e.choose(sig.hash(), asked, 1)
		if least, most := e.surplus(sig.hash(), at, 0, 7); least != at-asked || most != least {
			t.Fatalf("asked for %d, chose %d: %d to %d", asked, at, least, most)
		}
		if least, most := e.surplus(sig.hash(), at+2, 2, 7); least != at-asked || most != least+2 {
			t.Fatalf("inexactly, chose %d: %d to %d", at, least, most)
		}
		if least, most := e.surplus(sig.hash(), at+1, 0, 7); least != 0 || most != 10 {
			t.Fatalf("of another instant: %d to %d", least, most)
		}
	}
	e.unsure[place(sig.hash())] = 5
	if _, most := e.surplus(sig.hash(), e.last[place(sig.hash())], 0, 7); most != e.later[place(sig.hash())]+5 {
		t.Errorf("of an unsure clock: %d", most)
	}
	if least, most := e.surplus(signature{name: "another"}.hash(), 5, 2, 1); least != 0 || most != 20 {
		t.Errorf("of nothing known, inexactly: %d to %d", least, most)
	}
}
