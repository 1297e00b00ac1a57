package quorum

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
	"lockproxy/quorum/vouch"
)

func (w *world) start(req AcquireRequest) chan Acquired {
	c := make(chan Acquired, 1)
	w.Acquire(req, func(a Acquired) { c <- a })
	return c
}

func req1(token string, ttl time.Duration) AcquireRequest {
	return AcquireRequest{Key: Key{Name: key}, Token: token, TTL: ttl}
}

// A contender with the holder's constant token loses its connections before its SETs run.
func TestALostAttemptDoesNotTakeTheVotesOfAHolderWithTheSameToken(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		held := w.acquire(key, "1", minute)
		for _, f := range w.fakes[:2] {
			f.setDelay(20 * time.Millisecond)
		}
		c := w.start(req1("1", minute))
		time.Sleep(5 * time.Millisecond)
		w.fakes[0].cut() // the SETs never even ran
		w.fakes[1].cut()
		<-c
		w.settle()
		w.expectHolders(key, "111")
		if z := w.acquire(key, "z", minute); z.Lock != nil && time.Now().Before(held.Lock.Until()) {
			t.Errorf("two holders for %v", time.Until(held.Lock.Until()))
		}
	})
}

// The same, where the holder's key looks as if the lost attempt had set it: it was extended while the attempt was under way.
func TestALostAttemptDoesNotTakeAVoteThatWasExtendedMeanwhile(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		held := w.acquire(key, "1", minute)
		w.settle()
		for _, f := range w.fakes[:2] {
			f.setDelay(20 * time.Millisecond)
		}
		c := w.start(req1("1", minute))
		extended := make(chan Extended, 1)
		w.Extend(ExtendRequest{Key: Key{Name: key}, Token: "1", TTL: minute}, func(x Extended) { extended <- x })
		time.Sleep(35 * time.Millisecond) // both have run, and nobody knows
		w.fakes[0].hangUp()
		w.fakes[1].hangUp()
		<-c
		<-extended
		w.settle()
		w.expectHolders(key, "111")
		if z := w.acquire(key, "z", minute); z.Lock != nil && time.Now().Before(held.Lock.Until()) {
			t.Errorf("two holders for %v", time.Until(held.Lock.Until()))
		}
	})
}

// The holder itself re-enters, and its connections break.
func TestALostReentryDoesNotTakeTheLockItself(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		r := req1("mine", minute)
		r.Reentrant = true
		held := w.try(r)
		for _, f := range w.fakes[:2] {
			f.setDelay(20 * time.Millisecond)
		}
		c := w.start(r)
		time.Sleep(5 * time.Millisecond)
		w.fakes[0].cut()
		w.fakes[1].cut()
		<-c
		w.settle()
		w.expectHolders(key, "mmm")
		if z := w.acquire(key, "z", minute); z.Lock != nil && time.Now().Before(held.Lock.Until()) {
			t.Errorf("two holders for %v", time.Until(held.Lock.Until()))
		}
	})
}

// A client that lost its connection asks again, with the same token, through another proxy.
func TestALostAttemptDoesNotTakeTheVoteOfItsRetryThroughAnotherProxy(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		other, err := New(Config{Grace: 400 * time.Millisecond}, w.ms)
		if err != nil {
			t.Fatal(err)
		}
		w.settle()
		w.fakes[2].setDelay(20 * time.Millisecond)
		first := make(chan Acquired, 1)
		other.Acquire(req1("1", minute), func(a Acquired) { first <- a })
		time.Sleep(5 * time.Millisecond)
		w.fakes[2].cut() // its SET never ran there
		if a := <-first; a.Lock != nil {
			a.Lock.Abandon()
		}
		time.Sleep(5 * time.Millisecond)
		w.fakes[0].leave() // so that the vote of the third master counts
		held := w.acquire(key, "1", minute)
		if held.Lock == nil {
			w.settle()
			held = w.acquire(key, "1", minute)
		}
		w.settle()
		w.expectHolders(key, ".11")
		other.Close()
	})
}

// Nobody knows whether the SET of the lost attempt will still run.
func TestALostAttemptThatCannotBeKilledDoesNotTakeLaterLocks(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, f := range w.fakes[:2] {
			f.noKill = true
			f.setDelay(20 * time.Millisecond)
		}
		c := w.start(req1("1", minute))
		time.Sleep(5 * time.Millisecond)
		w.fakes[0].cut()
		w.fakes[1].cut()
		<-c
		w.fakes[0].setDelay(time.Millisecond)
		w.fakes[1].setDelay(time.Millisecond)
		w.settle()
		held := w.acquire(key, "1", 30*time.Second)
		if held.Lock == nil {
			t.Fatalf("%+v", held)
		}
		time.Sleep(3 * time.Second)
		w.expectHolders(key, "111")
		if z := w.acquire(key, "z", minute); z.Lock != nil && time.Now().Before(held.Lock.Until()) {
			t.Errorf("two holders for %v", time.Until(held.Lock.Until()))
		}
	})
}

// No fault but one master that is down. In one batch X takes, R releases, Y takes; X loses.
func TestAnUndoDoesNotTakeAVoteOfTheSameBatch(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[1].set(key, "1", 10*time.Second) // B's lock, taken while m1 was away
		w.fakes[2].set(key, "1", 10*time.Second)
		w.fakes[2].mu.Lock()
		w.fakes[2].refuse = true // cannot be reached; keeps what it has
		w.fakes[2].mu.Unlock()
		w.fakes[2].cut()
		w.settle()
		w.Get(Key{Name: "x"}, func(View) {}) // occupies the lanes, so that the next three share a batch
		time.Sleep(500 * time.Microsecond)
		x := w.start(req1("1", minute))
		r := make(chan Released, 1)
		w.Release(Key{Name: key}, "1", func(x Released) { r <- x })
		y := w.start(req1("1", minute))
		yy := <-y
		<-x
		<-r
		w.settle()
		if yy.Lock == nil {
			t.Fatal("Y not granted")
		}
		w.expectHolders(key, "111")
		w.fakes[2].comeBack()
		time.Sleep(10 * time.Second) // B's key on m3 expires
		if z := w.acquire(key, "z", minute); z.Lock != nil && time.Now().Before(yy.Lock.Until()) {
			t.Errorf("two holders for %v", time.Until(yy.Lock.Until()))
		}
	})
}

// The undo is late on the wire, or the younger key has a shorter TTL.
func TestALateUndoDoesNotTakeAYoungerKey(t *testing.T) {
	for _, ttl := range []time.Duration{minute, 10 * time.Second} {
		t.Run(ttl.String(), func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.fakes[1].set(key, "1", minute)
				w.fakes[2].set(key, "1", minute)
				m1 := w.fakes[0]
				c := w.start(req1("1", minute))
				time.Sleep(1500 * time.Microsecond) // m1 has run the SET, its answer is on the way
				if ttl == minute {
					m1.setDelay(80 * time.Millisecond) // the undo is late on the wire
					time.Sleep(20 * time.Millisecond)
				}
				// The holder releases through another proxy, and its next owner takes all, with the same constant token.
				for _, f := range w.fakes {
					f.set(key, "1", w.cfg.kept(ttl))
				}
				<-c
				w.settle()
				w.expectHolders(key, "111")
			})
		})
	}
}

func TestAnUndoAnsweredWithAnErrorIsRepeated(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.undoAfterAnError(minute)
	})
}

// undoAfterAnError lets an attempt lose whose undo the third master answers with an error at first, and expects that it is undone.
func (w *world) undoAfterAnError(ttl time.Duration) {
	w.fakes[0].set(key, "other", ttl)
	w.fakes[1].set(key, "other", ttl)
	m3 := w.fakes[2]
	m3.mu.Lock()
	m3.fail["EVAL"] = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	m3.mu.Unlock()
	w.acquire(key, "mine", ttl)
	time.Sleep(100 * time.Millisecond)
	m3.mu.Lock()
	clear(m3.fail)
	m3.mu.Unlock()
	w.settle()
	w.expectHolders(key, "oo.")
}

// For how long this process has stood still before the undo does not count.
func TestAnUndoIsRepeatedThoughTheProcessHasStoodStillForLonger(t *testing.T) {
	s := &sleeper{}
	inWorldWith(t, 3, s.config(), func(w *world) {
		s.sleep(w, time.Hour)
		w.settle()
		w.undoAfterAnError(10 * minute)
	})
}

// What counts is when the SET can no longer run.
func TestAnUndoOutlivesAStallLongerThanTheTTL(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[0].set(key, "other", time.Hour)
		w.fakes[1].set(key, "other", time.Hour)
		late := w.fakes[2]
		late.stall()
		w.acquire(key, "mine", 30*time.Second)
		late.hangUp()
		time.Sleep(40 * time.Second)
		late.resume() // runs the SET
		w.settle()
		w.expectHolders(key, "oo.")
	})
}

// The connection breaks before the waiting release expires, or before the release is asked for.
func TestAReleaseLostWithItsConnectionIsOwed(t *testing.T) {
	for _, before := range []bool{false, true} {
		t.Run("", func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				slow := w.fakes[2]
				slow.stall()
				a := w.acquire(key, "mine", minute)
				if a.Lock == nil {
					t.Fatal("no")
				}
				if before {
					slow.hangUp()
					time.Sleep(5 * time.Millisecond)
				}
				w.release(key, "mine")
				if !before {
					slow.hangUp()
				}
				time.Sleep(5 * time.Millisecond)
				slow.resume()
				w.settle()
				w.expectHolders(key, "...")
			})
		})
	}
}

func TestANegativeReplyWaitsOnlyForMastersThatGranted(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[0].set(key, "other", minute)
		w.fakes[1].set(key, "other", minute)
		w.fakes[0].setDelay(10 * time.Millisecond)
		w.fakes[1].setDelay(10 * time.Millisecond)
		w.fakes[2].setDelay(10 * time.Millisecond)
		began := time.Now()
		c := w.start(req1("mine", minute))
		time.Sleep(5 * time.Millisecond)
		w.fakes[2].die()
		<-c
		if d := time.Since(began); d > 30*time.Millisecond {
			t.Errorf("refused after %v", d)
		}
	})
}

func TestAKeyWithoutTTLOnOneMasterDoesNotShortenOrLengthenTheAnswer(t *testing.T) {
	c := Config{}.withDefaults()
	agreed := rules.Opinion{Exists: true, Kind: "string", Value: "a"}
	if d, _ := c.remaining([]sighting{{Told: rules.Told{Opinion: agreed}, left: -time.Millisecond}, {Told: rules.Told{Opinion: agreed}, left: 3 * time.Second}}, agreed, 2); d > 3*time.Second {
		t.Errorf("a quorum holds it for 3 s; told %v", d)
	}
}

func TestContendersForAFreeLockAlwaysHaveAWinner(t *testing.T) {
	split, total := 0, 0
	inWorld(t, 5, func(w *world) {
		for range 200 {
			var wg sync.WaitGroup
			var mu sync.Mutex
			won := 0
			gate := make(chan struct{})
			for i := range 4 {
				wg.Go(func() {
					<-gate
					a := w.try(req1(string(rune('a'+i)), minute))
					mu.Lock()
					if a.Lock != nil {
						won++
					}
					mu.Unlock()
				})
			}
			time.Sleep(time.Millisecond)
			close(gate)
			wg.Wait()
			total++
			if won == 0 {
				split++
			}
			time.Sleep(300 * time.Millisecond)
			for _, f := range w.fakes {
				f.mu.Lock()
				clear(f.keys)
				f.log = nil
				f.mu.Unlock()
			}
		}
	})
	if split > 0 {
		t.Errorf("%d of %d races over a free key had no winner", split, total)
	}
}

func TestNoQuorumTellsWhyAndHowManyWereNotAwaited(t *testing.T) {
	for dead, want := range map[int]string{
		3: "NOQUORUM 0 of 5 masters answered, 3 needed, and 2 were not waited for: " +
			"m1 connection refused; m2 connection refused; m3 connection refused",
		4: "NOQUORUM 0 of 5 masters answered, 3 needed, and 1 was not waited for: " +
			"m1 connection refused; m2 connection refused; m3 connection refused; m4 connection refused",
		5: "NOQUORUM 0 of 5 masters answered, 3 needed: " +
			"m1 connection refused; m2 connection refused; m3 connection refused; m4 connection refused; m5 connection refused",
	} {
		inWorld(t, 5, func(w *world) {
			for _, f := range w.fakes[:dead] {
				f.die()
			}
			w.settle()
			if err := w.acquire(key, "mine", minute).Err; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// A master whose answer is due when the engine is closed is not reported to have no connection.
func TestAnOrderlyEndWarnsOfNothing(t *testing.T) {
	var log bytes.Buffer
	inWorldWith(t, 3, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(w *world) {
		log.Reset()
		for _, f := range w.fakes[:2] {
			f.stall()
		}
		w.acquire(key, "mine", minute)
		w.Close()
	})
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

// A master that is dialled several times a second and refuses in two ways in turn does not fill the log; nor one that refuses
// in another way each time.
func TestEachCauseOfALostConnectionIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	warned := func() int { return strings.Count(log.String(), `msg="no connection"`) }
	inWorldWith(t, 3, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(w *world) {
		f := w.fakes[0]
		lose := func(refusal ...error) {
			synctest.Wait() // nobody writes to log
			log.Reset()
			f.mu.Lock()
			f.refusal = refusal
			f.mu.Unlock()
			f.die()
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		lose(errors.New("a certificate is required"), syscall.EPIPE)
		if n := warned(); n != 2 { // EPIPE is a connection lost, as the first cause was
			t.Errorf("%d lines, want 2:\n%s", n, log.String())
		}
		f.comeBack()
		time.Sleep(time.Second)
		var many []error
		for i := range 100 {
			many = append(many, fmt.Errorf("refusal %d", i))
		}
		lose(many...)
		if n := warned(); n != masters.ToldMax {
			t.Errorf("%d lines, want %d", n, masters.ToldMax)
		}
		w.settle()
	})
}

// A master that takes connections and breaks them every second would have two lines each time.
func TestAMasterThatBreaksConnectionsAllTheTimeDoesNotFillTheLog(t *testing.T) {
	var log bytes.Buffer
	inWorldWith(t, 3, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(w *world) {
		synctest.Wait() // nobody writes to log
		log.Reset()
		for range 120 {
			w.fakes[0].cut()
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if lost, back := strings.Count(log.String(), `msg="no connection"`), strings.Count(log.String(), "msg=connected"); lost != 2 || back != 2 {
			t.Errorf("%d and %d lines, want 2 of each:\n%s", lost, back, log.String())
		}
		w.settle()
	})
}

// forget makes a clock unknown.
func (w *watch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restarts.Add(1)
	w.clock = vouch.Clock{Rate: w.clock.Rate, Tolerance: w.clock.Tolerance}
}

// A clock that is not known, or not exactly, tells no instant for a key to expire at.
func TestNoKeyIsSetByAVagueClock(t *testing.T) {
	for name, forget := range map[string]func(w *world, of *watch){
		"unknown": func(_ *world, of *watch) { of.forget() },
		"vague": func(w *world, of *watch) {
			of.forget()
			shown := time.Duration(time.Now().UnixNano())
			of.observe(w.now()-time.Second, w.now(), shown, shown)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.acquire("another", "mine", minute) // the horizon
				w.settle()
				forget(w, &w.masters[2].watch)
				if a := w.acquire(key, "mine", minute); a.Lock == nil {
					t.Fatalf("not granted: %+v", a)
				}
				time.Sleep(50 * time.Millisecond)
				w.expectHolders(key, "mm.")
				if a := w.acquire("next", "mine", minute); a.Lock == nil { // the clock was asked for meanwhile
					t.Fatalf("not granted: %+v", a)
				}
				time.Sleep(50 * time.Millisecond)
				w.expectHolders("next", "mmm")
			})
		})
	}
}

// What clients read of a master in quarantine: for how long, and what to do.
func TestAQuarantineSaysForHowLongAndWhatToDo(t *testing.T) {
	inWorldWith(t, 3, Config{Grace: 400 * time.Millisecond, TTLMax: 3 * time.Minute}, func(w *world) {
		why := func() string {
			err := w.acquire(key, "mine", time.Second).Err
			if err == nil {
				return "granted"
			}
			_, text, _ := strings.Cut(err.Error(), "; m2 ")
			text, _, _ = strings.Cut(text, "; m3 ")
			return text
		}
		for _, f := range w.fakes[:2] {
			f.flush()
		}
		w.read(key)
		time.Sleep(50 * time.Millisecond)
		want := "quarantined up to 3m6s more (it is new, was flushed, or restarted without its data; asking the other masters), or until lockproxy init, if no client holds a lock"
		if got := why(); got != want {
			t.Errorf("at first\ngot  %s\nwant %s", got, want)
		}
		time.Sleep(3 * time.Second)
		want = "quarantined 3m3s more (it is new, was flushed, or restarted without its data; too few other masters remember), or until lockproxy init, if no client holds a lock"
		if got := why(); got != want {
			t.Errorf("then\ngot  %s\nwant %s", got, want)
		}
	})
}

// A master that tells only roughly when a key expires is told of instants that are clearly apart, so that an undo takes no
// other attempt's key.
func TestInstantsAreApartByMoreThanTheirInexactness(t *testing.T) {
	exact, rough := []int64{1000, 1001, 1004, 1005, 1008}, []int64{1000, 1005, 1020, 1025, 1040} // 1003 and 1015 are guarded, 1002 and 1010 for extensions
	for tells, want := range map[bool][]int64{false: rough, true: exact} {
		c := &laneClock{target: target{master: &master{}}, tellsExpiry: tells}
		for i, want := range want {
			if got := c.expiry(1, 1000+int64(i)/2); got != want { // the clock goes on meanwhile, more slowly
				t.Errorf("tells %v: got %d, want %d", tells, got, want)
			}
		}
		if got := c.expiry(1, 2000); got != 2000 {
			t.Errorf("tells %v: %d, where nothing was near", tells, got)
		}
	}
}

func TestDurationsAreAsTheConfigurationHasThem(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Minute: "1h30m", 30 * time.Second: "30s", 61 * time.Second: "1m1s", 0: "0s",
		10 * time.Minute: "10m", 24 * time.Hour: "24h", 1500 * time.Millisecond: "1.5s",
	} {
		if got := DurationText(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestSpansAreReadAtAGlance(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "1s", 0: "1s", time.Second: "1s", 1100 * time.Millisecond: "2s", minute: "1m", 90 * time.Second: "1m30s",
		20 * minute: "20m", time.Hour: "1h", time.Hour + 10*minute: "1h10m", 24 * time.Hour: "24h",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

func TestTheOldValueIsWhatAQuorumHeldThoughOneMasterHoldsAHash(t *testing.T) {
	inWorld(t, 5, func(w *world) {
		for i, tok := range []string{"", "a", "a", "b", "a"} {
			if tok == "" {
				w.fakes[i].mu.Lock()
				w.fakes[i].keys[key] = value{"h", "hash", time.Now().Add(minute)}
				w.fakes[i].mu.Unlock()
				continue
			}
			w.fakes[i].set(key, tok, minute)
		}
		w.fakes[4].setDelay(20 * time.Millisecond)
		c := make(chan Written, 1)
		w.Write(WriteRequest{Key: Key{Name: key}, Value: "n", TTL: minute, WantOld: true}, func(x Written) { c <- x })
		x := <-c
		if x.Done && !x.HadOld {
			t.Errorf("a quorum held a: %+v", x)
		}
	})
}

// A lane asks for the time again where an answer was slow. Silence must end that, too.
func TestAMasterThatFallsSilentWhileItsClockIsCheckedIsGivenUp(t *testing.T) {
	inWorldWith(t, 3, Config{}, func(w *world) {
		m3 := w.fakes[2]
		w.masters[2].watch.forget() // nothing is known of its clock
		m3.setDelay(40 * time.Millisecond)
		w.acquire(key, "mine", minute)
		time.Sleep(50 * time.Millisecond) // the batch is answered, and the next question is on its way
		m3.stall()
		time.Sleep(7 * time.Second)
		if s := w.Masters()[2]; s.State != Disconnected {
			t.Errorf("a master that has been silent for 7 s counts as connected: %+v", s)
		}
		m3.setDelay(time.Millisecond)
	})
}

// The connection breaks between an attempt and its release, which go to a master in one batch.
func TestAReleaseThatIsLostBehindItsAttemptIsMadeLate(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		m := w.fakes[2]
		m.stall()
		w.start(AcquireRequest{Key: Key{Name: "busy"}, Token: "other", TTL: minute})
		time.Sleep(10 * time.Millisecond)
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		if r := w.release(key, "mine"); !r.Held {
			t.Fatalf("not held: %+v", r)
		}
		m.mu.Lock()
		m.breaks = "SET " + key
		m.mu.Unlock()
		m.resume()
		w.settle()
		w.expectHolders(key, "...")
	})
}

// A master that always answers late is never without something that waits for it, and is not sent one release after the other.
func TestReleasesAreMadeLateForAsLongAsAMasterIsLate(t *testing.T) {
	inWorldWith(t, 3, Config{Grace: time.Second, QueueMax: 64}, func(w *world) {
		w.fakes[2].setDelay(75 * time.Millisecond)
		const locks, held = 300, 8
		for i := range locks + held {
			if i < locks {
				if a := w.acquire(fmt.Sprint(key, i), "mine", minute); a.Lock == nil {
					t.Fatalf("not granted: %+v", a)
				}
			}
			if i >= held {
				if r := w.release(fmt.Sprint(key, i-held), "mine"); !r.Held {
					t.Fatalf("not held: %+v", r)
				}
			}
		}
		w.settle()
		for i := range locks {
			w.expectHolders(fmt.Sprint(key, i), "...")
		}
	})
}
