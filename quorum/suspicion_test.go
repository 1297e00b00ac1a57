package quorum

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockproxy/quorum/rules"
	"lockproxy/quorum/vote"
	"lockproxy/quorum/vouch"
)

// What is gone when a clock was ahead for a moment does not come back when it is set right.
func TestAClockThatJumpsAndComesBackIsAMasterThatForgot(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatal("not granted")
		}
		w.fakes[1].stall() // so that the monitor waits for its answer
		for _, by := range []time.Duration{time.Hour, -time.Hour} {
			w.fakes[0].step(by)
			w.read(key)
		}
		w.fakes[1].resume()
		time.Sleep(50 * time.Millisecond)
		if w.settle(); w.quarantined()[0] != 'q' {
			t.Errorf("states %q: %+v", w.quarantined(), w.Masters())
		}
	})
}

// Of a process that stood still for long, the connections are gone as well.
func TestAProxyThatWasSuspendedWaitsForItsConnections(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for i, f := range w.fakes {
			f.step(time.Hour)
			if i > 0 {
				f.leave()
			}
		}
		w.settle()
		w.fakes[1].comeBack()
		w.settle()
		w.fakes[2].comeBack()
		w.settle()
		w.expectStates("ccc")
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Errorf("not granted: %+v", a)
		}
	})
}

// What a master answered before the process stood still says nothing of the time since.
func TestAnAnswerFromBeforeASuspensionAcquitsNobody(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[1].setDelay(30 * time.Millisecond)
		w.settle()
		time.Sleep(50 * time.Millisecond) // the monitor is at work between its two answers
		asked := make(chan View, 1)
		w.Read(Key{Name: key}, func(v View) { asked <- v })
		time.Sleep(40 * time.Millisecond) // the slow one has answered, and the answer is on its way
		for _, f := range w.fakes {
			f.step(time.Hour)
		}
		w.read(key)
		<-asked
		w.settle()
		w.expectStates("ccc")
	})
}

func TestAJumpIsJudgedWhenAnotherClockDisagrees(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "mine", minute)
		w.fakes[1].leave()
		w.fakes[2].leave()
		w.settle()
		w.fakes[0].step(time.Hour)
		w.settle()
		w.fakes[1].comeBack()
		w.settle()
		w.expectStates("qc.")
	})
}

// A proxy that has never seen the master's clock goes by the mark: nothing may have to be asked of the master before it is there.
func TestAMasterIsMarkedAsSoonAsItsClockIsJudged(t *testing.T) {
	for _, away := range []int{0, 1} { // of the others, which are waited for
		inWorld(t, 3, func(w *world) {
			w.settle()
			for _, f := range w.fakes[3-away:] {
				f.stall()
			}
			w.fakes[0].step(time.Hour)
			w.acquire(key, "mine", minute) // finds out
			time.Sleep(w.cfg.InstanceTimeout + 2*suspectEvery)
			f := w.fakes[0]
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.markText(quarantineKey) == "" {
				t.Errorf("%d away: not marked", away)
			}
		})
	}
}

// What another proxy writes into the canary in the same moment may have nothing to do with what this one knows.
func TestAChargeIsNotLostToAFasterProxy(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatal("not granted")
		}
		f := w.fakes[0]
		f.mu.Lock()
		f.faster = func() { // another proxy permits longer locks
			c, _ := vouch.ParseCanary(f.markText(canaryKey))
			c.Kept *= 2
			f.putMark(canaryKey, c.String())
		}
		f.mu.Unlock()
		f.step(time.Hour)
		w.settle()
		w.expectStates("qcc")
	})
}

// The clock of the proxy that quarantined it may be wrong, and others may know later epochs from before.
func TestAMasterIsQuarantinedAnewIfItsEpochIsNot(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, f := range w.fakes[1:] {
			f.mu.Lock()
			f.merge([]any{int64(1 << 50), int64(0), int64(0)})
			f.mu.Unlock()
		}
		f := w.fakes[0]
		f.mu.Lock()
		f.putMark(quarantineKey, "1 "+vouch.New)
		f.mu.Unlock()
		w.acquire(key, "mine", time.Second)
		w.settle()
		w.settle()
		w.expectStates("ccc")
		if c, _ := vouch.ParseCanary(f.markText(canaryKey)); c.Epoch <= 1<<50 {
			t.Errorf("epoch %d", c.Epoch)
		}
	})
}

// A master that granted, and had forgotten it before another did, has not granted: what was told to the other meanwhile
// says so.
func TestAGrantIsVoidIfItsMasterForgotBeforeTheOthersGranted(t *testing.T) {
	for name, extend := range map[string]func(w *world, done func(bool)){
		"EXPIRE": func(w *world, done func(bool)) {
			w.Expire(ExpireRequest{Key: Key{Name: key}, TTL: minute}, func(c Changed) { done(c.Applied) })
		},
		"SET XX": func(w *world, done func(bool)) {
			req := WriteRequest{Key: Key{Name: key}, Value: "mine", TTL: minute, IfExists: true}
			w.Write(req, func(c Written) { done(c.Done) })
		},
		"SET": func(w *world, done func(bool)) {
			w.Write(WriteRequest{Key: Key{Name: key}, Value: "mine", TTL: minute}, func(c Written) { done(c.Done) })
		},
		"SET GET": func(w *world, done func(bool)) {
			req := WriteRequest{Key: Key{Name: key}, Value: "mine", TTL: minute, WantOld: true}
			w.Write(req, func(c Written) { done(c.Done) })
		},
		"the token's EXTEND": func(w *world, done func(bool)) {
			w.Extend(ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: minute}, func(x Extended) { done(x.Held) })
		},
		"an addition": func(w *world, done func(bool)) {
			req := ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: minute, Add: true}
			w.Extend(req, func(x Extended) { done(x.Held) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.acquire(key, "mine", minute)
				w.fakes[2].leave()
				w.fakes[1].setDelay(20 * time.Millisecond)
				w.settle()
				done := make(chan bool, 1)
				extend(w, func(ok bool) { done <- ok })
				time.Sleep(10 * time.Millisecond)
				if name == "EXPIRE" || name == "SET XX" { // it looked first
					time.Sleep(40 * time.Millisecond)
				}
				f := w.fakes[1]
				f.mu.Lock()
				f.merge([]any{int64(1 << 50), int64(0), int64(0)})
				f.mu.Unlock()
				if <-done {
					t.Error("granted, by a master that may have forgotten it")
				}
			})
		})
	}
}

// Until a master's clock has been read, what it showed in the handshake is long ago.
func TestKeysThatAreSetByAClockThatIsNotKnownLiveAsLongAsAny(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		time.Sleep(200 * time.Millisecond) // almost until the next heartbeat
		for _, m := range w.masters {
			m.watch.forget()
		}
		a := w.acquire(key, "mine", minute)
		for _, f := range w.fakes {
			f.mu.Lock()
			if v, ok := f.get(key); a.Lock != nil && (!ok || v.expires.Sub(f.now()) < w.cfg.kept(minute)-100*time.Millisecond) {
				t.Errorf("%s: the key lives %v", f.addr, v.expires.Sub(f.now()))
			}
			f.mu.Unlock()
		}
	})
}

func TestThatAQuarantinedMasterHasNothingToAddToProvesNothing(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "mine", minute)
		w.fakes[0].flush()
		w.fakes[2].leave()
		w.settle()
		x := w.extend(ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: time.Second, Add: true})
		if x.Err == nil {
			t.Errorf("want no quorum: %+v", x)
		}
	})
}

// A copy of a master's data that is behind may have the key of an attempt that was undone since. It joins no new votes.
func TestAVoteOfAnOlderCopyDoesNotJoinNewOnes(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire("another", "yours", minute) // the horizon
		w.fakes[0].flush()
		w.settle()
		w.fakes[0].set(key, "mine", minute)
		w.fakes[1].leave()
		w.settle()
		w.expectStates("q.c")
		if a := w.try(AcquireRequest{Key: Key{Name: key}, Token: "mine", TTL: minute, Reentrant: true}); a.Lock != nil {
			t.Error("granted by the old vote and a new one")
		}
	})
}

// The same of a script that takes or extends a lock: what it extended there may be what was undone since, or over.
func TestAScriptDoesNotJoinAVoteOfAnOlderCopyToNewOnes(t *testing.T) {
	own := func(v vote.Value) bool { return v.Kind == vote.IntValue && v.Int == 1 }
	for _, test := range []struct {
		name string
		rule vote.Rule
	}{
		{"that takes", vote.Rule{Merge: vote.Taking, Granted: own}},
		{"that takes and counts", vote.Rule{Merge: vote.Taking, Granted: own, Field: "mine"}},
		{"that extends", vote.Rule{Merge: vote.Extending, Granted: own}},
		{"of which nothing is known", vote.Rule{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.acquire("another", "yours", minute) // the horizon
				w.fakes[0].flush()
				w.fakes[1].leave()
				w.settle()
				w.expectStates("q.c")
				s := NewScript("return 1")
				for _, f := range w.fakes {
					extended := []any{":1;", "1", key, "e", "60000", "1", "d", "", "0"}
					f.vote(map[string]any{s.wrapped.text: extended})
				}
				c := make(chan Ran, 1)
				w.Run(RunRequest{Script: s, Keys: []string{key}, Rule: test.rule}, func(r Ran) { c <- r })
				if r := <-c; r.Err == nil {
					t.Errorf("granted: %+v", r)
				}
			})
		})
	}
}

// A database that is swapped away is quarantined with the rest. When it is swapped back, its canary is that of the other.
func TestDataThatComesBackInQuarantineHasNoVote(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire("another", "yours", minute) // the horizon
		w.fakes[1].leave()
		w.settle()
		f := w.fakes[0]
		f.mu.Lock()
		canary := f.markText(canaryKey)
		f.putMark(quarantineKey, "1 its databases were swapped")
		f.mu.Unlock()
		if a := w.acquire(key, "mine", minute); a.Lock != nil {
			t.Error("its grant counted")
		}
		w.settle()
		w.expectStates("q.c")
		f.mu.Lock()
		if f.markText(canaryKey) == canary {
			t.Error("what it granted before is not void")
		}
		f.mu.Unlock()
	})
}

// What counts is by how much longer some answers take than others, not how long they take.
func TestAMasterThatIsFarAwayVotes(t *testing.T) {
	for _, away := range []time.Duration{time.Millisecond, 13 * time.Millisecond, 25 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond} {
		inWorldWith(t, 3, Config{Grace: 50 * time.Millisecond, InstanceTimeout: 500 * time.Millisecond}, func(w *world) {
			w.fakes[1].leave()
			w.fakes[0].setDelay(away)
			w.acquire("another", "mine", minute) // from now on it is far away
			w.settle()
			for range 20 {
				w.expectFarVote(away)
			}
		})
	}
}

// expectFarVote expects that a lock is won with the vote of the first master, which is so far away.
func (w *world) expectFarVote(away time.Duration) {
	w.t.Helper()
	began := time.Now()
	a := w.acquire(key, "mine", time.Second)
	if a.Lock == nil {
		w.t.Errorf("%v away: %+v", away, a)
		return
	}
	drift := rules.Drift(time.Second, 0.01)
	if want := began.Add(time.Second - drift); !a.Lock.Until().Equal(want) {
		w.t.Errorf("%v away: valid until %v after the right moment", away, a.Lock.Until().Sub(want))
	}
	f := w.fakes[0]
	f.mu.Lock()
	v, _ := f.get(key)
	f.mu.Unlock()
	if late := v.expires.Sub(a.Lock.Until()); late < 2*drift+30*time.Millisecond || late > 2*drift+52*time.Millisecond+3*away {
		w.t.Errorf("%v away: kept for %v longer than it is valid", away, late)
	}
	w.release(key, "mine")
	time.Sleep(5 * away) // until the other votes are released, too
}

// farStep is a step forwards that nobody can see who is 40 ms away.
const farStep = 70 * time.Millisecond

// inFarWorld has one master away, and another one so far away that it hides farStep.
func inFarWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	inWorldWith(t, 3, Config{Grace: 50 * time.Millisecond, InstanceTimeout: 250 * time.Millisecond}, func(w *world) {
		w.fakes[1].leave()
		w.fakes[0].setDelay(40 * time.Millisecond)
		w.acquire("another", "mine", time.Second) // from now on it is far away
		time.Sleep(2 * time.Second)               // and that is usual
		for w.Masters()[0].RoundTrip < 79*time.Millisecond || w.busyLane(0) {
			time.Sleep(time.Millisecond)
		}
		f(w)
	})
}

// busyLane says that a master is being asked something.
func (w *world) busyLane(master int) bool {
	l := w.databases.lanes(0)[master]
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return l.queue.batchSince != idle
}

// A key that expired too early by a step which the way hides is not missed before whoever set it has been promised no more.
func TestAStepThatTheWayHidesIsWaitedFor(t *testing.T) {
	inFarWorld(t, func(w *world) {
		w.fakes[0].step(farStep)
		w.acquire("yet another", "mine", time.Second) // it has no vote; see below
		for w.busyLane(0) {
			time.Sleep(time.Millisecond)
		}
		const left = 105 * time.Millisecond
		w.fakes[0].set(key, "other", left-farStep) // as if it had been set before the step
		ends := time.Now().Add(left)
		a := w.acquire(key, "mine", minute)
		if early := time.Until(ends); a.Lock == nil || early > Uncertainty(50*time.Millisecond) {
			t.Errorf("granted %v before the other lock's end: %+v", early, a)
		}
	})
}

// The same where the clock is set back while the question is on its way that finds the key gone.
func TestAStepThatTheWayHidesIsWaitedForWhenItIsUndone(t *testing.T) {
	inFarWorld(t, func(w *world) {
		w.fakes[0].step(farStep)
		w.acquire("yet another", "mine", time.Second) // the step is looked at
		time.Sleep(time.Second)
		for w.busyLane(0) {
			time.Sleep(time.Millisecond)
		}
		done := w.start(req1("mine", minute))
		time.Sleep(39 * time.Millisecond)
		ends := time.Now().Add(farStep) // of a lock that was set before the first step, and was dropped just now
		w.fakes[0].step(-farStep)
		a := <-done
		if early := time.Until(ends); a.Lock == nil || early > Uncertainty(50*time.Millisecond) {
			t.Errorf("granted %v before the other lock's end: %+v", early, a)
		}
	})
}

// What is set while the way hides such a step has no vote: it may end too early.
func TestWhatIsSetAfterAStepThatTheWayHidesHasNoVote(t *testing.T) {
	inFarWorld(t, func(w *world) {
		w.fakes[0].step(farStep)
		a := w.acquire(key, "mine", minute)
		if want := "answered too late, compared with before"; a.Err == nil || !strings.Contains(a.Err.Error(), want) {
			t.Errorf("%+v, want %q", a, want)
		}
		if b := w.acquire("another", "mine", minute); b.Lock == nil { // its key is kept for longer
			t.Errorf("%+v", b)
		}
	})
}

// From the second attempt on, keys are kept for longer.
func TestAMasterWhoseWayGetsLongerCostsOneAttempt(t *testing.T) {
	inWorldWith(t, 3, Config{Grace: 50 * time.Millisecond, InstanceTimeout: 250 * time.Millisecond}, func(w *world) {
		w.fakes[1].leave()
		w.settle()
		w.fakes[0].setDelay(40 * time.Millisecond)
		a := w.acquire(key, "mine", minute)
		if want := "m1 answered too late, compared with before"; a.Err == nil || !strings.Contains(a.Err.Error(), want) {
			t.Errorf("%+v, want %q", a, want)
		}
		if b := w.acquire("another", "mine", minute); b.Lock == nil {
			t.Errorf("%+v", b)
		}
		if n := w.Masters()[0].Votes.Failures[FailedLate]; n > 0 {
			t.Errorf("%d votes are said to have failed for being late", n)
		}
	})
}

func TestAMasterThatIsTooFarAwaySaysWhichTimeoutIsEnough(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[1].leave()
		w.fakes[0].setDelay(70 * time.Millisecond)
		w.acquire(key, "mine", minute)
		w.settle()
		a := w.acquire("another", "mine", minute)
		if want := "m1 did not answer within 100ms: its answers take 140ms, raise instance_timeout (100ms) to 450ms"; a.Err == nil || !strings.Contains(a.Err.Error(), want) {
			t.Errorf("%+v, want %q", a, want)
		}
	})
}

func TestAMasterThatFallsSilentWhenAskedForTheTimeAgainIsCalledSilent(t *testing.T) {
	inWorldWith(t, 3, Config{Grace: 50 * time.Millisecond}, func(w *world) {
		w.fakes[1].leave()
		w.fakes[0].setDelay(30 * time.Millisecond)
		a := w.start(req1("mine", minute))
		time.Sleep(70 * time.Millisecond)
		w.fakes[0].stall()
		<-a
		time.Sleep(time.Second)
		b := w.acquire("another", "mine", minute)
		if b.Err == nil || !strings.Contains(b.Err.Error(), "m1 has not answered for 1.") {
			t.Errorf("%+v", b)
		}
	})
}

// What looks like a sleep of this process's own happens to all clocks at one moment.
func TestClocksThatJumpOneAfterTheOtherAreTheMasters(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[2].leave()
		w.settle()
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		for _, f := range w.fakes[:2] {
			f.mu.Lock()
			f.skew += 20 * time.Second
			f.mu.Unlock()
			w.read(key) // which finds out
			w.read(key)
		}
		w.settle()
		w.expectStates("qq.")
	})
}

// A lane asks whether the clock jumped, and then whether a jump was confirmed: no batch may be told no twice.
func TestAJumpIsConfirmedBeforeItIsForgotten(t *testing.T) {
	for range 20000 {
		w := &watch{clock: vouch.Clock{Tolerance: time.Second}}
		w.observe(0, 1, 0, 0)
		w.observe(2, 3, time.Hour, time.Hour)
		var ready atomic.Bool
		var other sync.WaitGroup
		other.Go(func() {
			ready.Store(true)
			w.confirm()
		})
		for !ready.Load() {
			runtime.Gosched()
		}
		for _, doubt := w.observe(4, 5, time.Hour, time.Hour); doubt != ""; _, doubt = w.observe(4, 5, time.Hour, time.Hour) {
			runtime.Gosched()
		}
		if n, _ := w.confirmed(); n == 0 {
			t.Fatal("a batch counts although the clock has just jumped")
		}
		other.Wait()
	}
}
