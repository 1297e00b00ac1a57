package quorum

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/quorum/vouch"
)

// quarantined draws the masters' states: q in quarantine, c clean, a point if not connected.
func (w *world) quarantined() string {
	var b strings.Builder
	for _, m := range w.Masters() {
		b.WriteByte(map[State]byte{Clean: 'c', Suspect: 'c', Quarantined: 'q', Disconnected: '.'}[m.State])
	}
	return b.String()
}

func (w *world) expectStates(want string) {
	w.t.Helper()
	if got := w.quarantined(); got != want {
		w.t.Errorf("states %q, want %q: %+v", got, want, w.Masters())
	}
}

func TestAMasterThatForgotIsQuarantinedUntilNothingItForgotIsHeld(t *testing.T) {
	for name, forget := range map[string]func(*fake){
		"restarted empty": func(f *fake) { f.die(); f.comeBack() },
		"flushed":         (*fake).flush,
		"restarted with old data": func(f *fake) {
			f.mu.Lock()
			f.runID++
			clear(f.keys)
			f.mu.Unlock()
			f.cut()
		},
		"promoted": func(f *fake) {
			f.mu.Lock()
			f.lineage = "abc"
			clear(f.keys)
			f.mu.Unlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.fakes[2].leave() // so that the lock has the votes of the first two alone
				w.settle()
				a := w.acquire(key, "mine", 20*time.Second)
				if a.Lock == nil {
					t.Fatalf("not granted: %+v", a)
				}
				w.fakes[2].comeBack()
				time.Sleep(time.Second)
				w.expectStates("ccc")
				forget(w.fakes[0])
				w.settle()
				w.expectStates("qcc")
				for time.Now().Before(a.Lock.Until()) {
					if b := w.acquire(key, "other", 20*time.Second); b.Lock != nil {
						t.Fatalf("held twice: %v left", time.Until(a.Lock.Until()))
					}
					time.Sleep(500 * time.Millisecond)
				}
				time.Sleep(10 * time.Second)
				w.expectStates("ccc")
				if b := w.acquire(key, "other", 20*time.Second); b.Lock == nil {
					t.Fatalf("the lock is not free: %+v", b)
				}
			})
		})
	}
}

func TestWhatAQuarantinedMasterStillHasCounts(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatal("not granted")
		}
		w.fakes[0].mu.Lock()
		w.fakes[0].runID++ // it restarts with its data
		w.fakes[0].mu.Unlock()
		w.fakes[0].cut()
		w.fakes[1].leave()
		w.settle()
		w.expectStates("q.c")
		if x := w.extend(ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: minute}); x.Err == nil || !strings.Contains(x.Err.Error(), "quarantined") {
			t.Errorf("want no quorum, and why: %+v", x) // what it has may be over, and have been another's since
		}
		if v := w.read(key); v.Value != "mine" {
			t.Errorf("read %+v", v)
		}
		if a := w.acquire(key, "other", minute); !a.Refused {
			t.Errorf("not refused: %+v", a)
		}
		if r := w.release(key, "mine"); !r.Held {
			t.Errorf("not released: %+v", r)
		}
		if a := w.acquire(key, "other", minute); a.Err == nil || !strings.Contains(a.Err.Error(), "quarantined") {
			t.Errorf("want no quorum, and why: %+v", a)
		}
	})
}

func TestAfterATotalRestartNothingIsGrantedForTheLongestTTL(t *testing.T) {
	inWorldWith(t, 3, Config{Grace: 400 * time.Millisecond, TTLMax: 30 * time.Second}, func(w *world) {
		for _, f := range w.fakes {
			f.die()
			f.comeBack()
		}
		w.settle()
		began := time.Now()
		for {
			if a := w.acquire(key, "mine", time.Second); a.Lock != nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if d := time.Since(began); d < 28*time.Second || d > 40*time.Minute {
			t.Errorf("granted after %v", d)
		}
	})
}

func TestAClockThatJumpsForwardsIsAMasterThatForgot(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[2].leave()
		w.settle()
		a := w.acquire(key, "mine", 20*time.Second)
		if a.Lock == nil {
			t.Fatal("not granted")
		}
		w.fakes[2].comeBack()
		time.Sleep(time.Second)
		w.fakes[0].step(time.Hour)
		if b := w.acquire(key, "other", 20*time.Second); b.Lock != nil {
			t.Fatal("held twice")
		}
		w.settle()
		w.expectStates("qcc")
		if b := w.acquire(key, "other", 20*time.Second); b.Lock != nil {
			t.Fatal("held twice")
		}
		time.Sleep(40 * time.Second)
		w.expectStates("ccc")
	})
}

func TestAClockThatJumpsBackwardsCostsOneBatchItsVotes(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[0].step(-time.Hour)
		w.settle()
		w.expectStates("ccc")
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Errorf("not granted: %+v", a)
		}
		w.settle()
		w.expectHolders(key, "mmm")
	})
}

func TestAMasterIsSuspectUntilABatchCountsAgain(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[0].step(-time.Hour)
		w.acquire(key, "mine", minute)
		synctest.Wait() // the two others suffice for the lock
		if m := w.Masters()[0]; m.State != Suspect || !strings.Contains(m.Cause, "clock that jumped") || w.Ready() != nil {
			t.Errorf("%v: %s; %v", m.State, m.Cause, w.Ready())
		}
		w.settle()
		if m := w.Masters()[0]; m.State != Clean || m.Cause != "" {
			t.Errorf("%v: %s", m.State, m.Cause)
		}
	})
}

func TestAProxyThatWasSuspendedQuarantinesNobody(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, f := range w.fakes { // what a suspended process sees when it wakes
			f.step(time.Hour)
		}
		w.settle()
		w.expectStates("ccc")
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Errorf("not granted: %+v", a)
		}
		if slept := time.Duration(w.slept.Load()); slept < time.Hour-time.Second || slept > time.Hour+time.Second {
			t.Errorf("slept %v", slept)
		}
	})
}

func TestAMasterThatMayEvictDoesNotVote(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		f := w.fakes[0]
		f.mu.Lock()
		f.memory = "maxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\nevicted_keys:3\r\n"
		f.mu.Unlock()
		w.settle()
		w.expectStates(".cc")
		f.mu.Lock()
		f.memory = "maxmemory:1000\r\nmaxmemory_policy:noeviction\r\nevicted_keys:3\r\n"
		f.mu.Unlock()
		w.settle()
		if w.quarantined() == "qcc" { // there was no lock: no horizon
			t.Error("still in quarantine")
		}
		w.expectStates("ccc")
	})
}

func TestAMasterInClusterModeIsRefused(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		f := w.fakes[0]
		f.mu.Lock()
		f.memory = "cluster_enabled:1\r\n"
		f.mu.Unlock()
		f.cut()
		w.settle()
		w.expectStates(".cc")
		if got := w.Masters()[0].Cause; got != errCluster.Error() {
			t.Errorf("cause %q", got)
		}
	})
}

// CONFIG RESETSTAT makes the number less.
func TestAMasterWhoseEvictionsAreCountedAnewMayHaveEvicted(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, evicted := range []int{3, 2, 0} {
			if a := w.acquire(fmt.Sprint(evicted), "mine", 5*time.Second); a.Lock == nil {
				t.Fatalf("not granted: %+v", a)
			}
			w.fakes[0].mu.Lock()
			w.fakes[0].memory = fmt.Sprintf("evicted_keys:%d\r\n", evicted)
			w.fakes[0].mu.Unlock()
			time.Sleep(2 * time.Second)
			w.expectStates("qcc")
			time.Sleep(8 * time.Second)
			w.expectStates("ccc")
		}
	})
}

func TestTwoAddressesOfOneServerAreOneMaster(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[1].mu.Lock()
		w.fakes[1].alias = w.fakes[0].process()
		w.fakes[1].mu.Unlock()
		w.fakes[1].cut()
		w.settle()
		if m := w.Masters()[1]; m.State != Disconnected || !strings.Contains(m.Cause, "same server as m1") {
			t.Errorf("%+v", m)
		}
	})
}

func TestTwoAddressesOfOneServerAreOneMasterThoughBothConnectAtOnce(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[1].mu.Lock()
		w.fakes[1].alias = w.fakes[0].process()
		w.fakes[1].mu.Unlock()
		w.fakes[0].cut()
		w.fakes[1].cut()
		w.settle()
		if ms := w.Masters(); ms[0].State == ms[1].State {
			t.Errorf("%+v", ms)
		}
	})
}

// That it was in quarantine once is not what keeps it from voting now.
func TestAServerThatWasReplacedIsToldToBeRefused(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire("lock", "x", minute)
		w.fakes[0].restartWithData()
		w.settle()
		w.expectStates("qcc")
		for _, f := range w.fakes[1:] { // another proxy has found another server under the address of m1
			f.mu.Lock()
			f.merge([]any{int64(1 << 50), int64(0), int64(0)})
			f.mu.Unlock()
		}
		w.fakes[0].mu.Lock()
		delete(w.fakes[0].marks, quarantineKey) // which has ended there
		w.fakes[0].mu.Unlock()
		w.fakes[0].cut()
		w.settle()
		if m := w.Masters()[0]; m.State != Disconnected || !strings.Contains(m.Cause, "is refused: was replaced") || m.Left != 0 {
			t.Errorf("%+v", m)
		}
		for i, in := range Inspect(context.Background(), w.cfg, w.ms) {
			if in.Err != nil || in.Replaced != (i == 0) || in.Clean() != (i > 0) {
				t.Errorf("inspected %d: %+v", i, in)
			}
		}
	})
}

// A server that was replaced may still be reached by a proxy that was connected to it before.
func TestAServerThatWasReplacedHasNoVote(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		other := w.databases.lanes(0)[1]
		epoch := int64(1 << 50)
		for _, f := range w.fakes[1:] { // another proxy has found another server under the address of m1
			f.mu.Lock()
			f.merge([]any{epoch, int64(0), int64(0)})
			f.mu.Unlock()
		}
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatalf("the other two are a quorum: %+v", a)
		}
		if known := other.epochs.roster[0].Load(); known != epoch {
			t.Fatalf("the roster was not read: %d", known)
		}
		w.settle()
		if m := w.Masters()[0]; m.State != Disconnected || !strings.Contains(m.Cause, "was replaced") {
			t.Errorf("%+v", m)
		}
		w.fakes[2].leave()
		w.settle()
		if a := w.acquire("another", "mine", minute); a.Err == nil {
			t.Errorf("granted with the vote of a server that was replaced: %+v", a)
		}
	})
}

func TestTheHorizonIsNeverShorterThanALock(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, ttl := range []time.Duration{time.Second, 100 * time.Second, 10 * time.Millisecond, 99 * time.Second} {
			name := key + ttl.String()
			w.acquire(name, "mine", ttl)
			w.settleLock(name)
			w.extend(ExtendRequest{Key: Key{Name: name}, Token: "mine", TTL: 2 * ttl})
			w.settleLock(name)
			w.extend(ExtendRequest{Key: Key{Name: name}, Token: "mine", TTL: 5 * ttl, Add: true})
			w.settleLock(name)
		}
	})
}

// settleLock checks the horizon against one key.
func (w *world) settleLock(name string) {
	w.t.Helper()
	time.Sleep(20 * time.Millisecond)
	for _, f := range w.fakes {
		f.mu.Lock()
		if v, ok := f.get(name); ok && f.horizonLeft() < v.expires.Sub(f.now()).Milliseconds() {
			w.t.Errorf("%s lives %v, the horizon %d ms", name, v.expires.Sub(f.now()), f.horizonLeft())
		}
		f.mu.Unlock()
	}
}

func TestAnotherDeploymentsMasterIsRefused(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		f := w.fakes[0]
		f.mu.Lock()
		f.putMark(canaryKey, vouch.Canary{Process: f.process(), Lineage: "-", Epoch: 1, Members: "others"}.String())
		f.mu.Unlock()
		w.settle()
		if m := w.Masters()[0]; m.State != Disconnected || !strings.Contains(m.Cause, "another deployment") {
			t.Errorf("%+v", m)
		}
	})
}

// Its epochs may be later than those of masters that have nothing to do with it.
func TestWhatAnotherDeploymentsMasterTellsOfEpochsIsNotBelieved(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		f := w.fakes[0]
		f.mu.Lock()
		f.putMark(canaryKey, vouch.Canary{Process: f.process(), Lineage: "-", Epoch: 1, Members: "others"}.String())
		f.putMark(rosterKey, "5000000000000 5000000000000 5000000000000")
		f.mu.Unlock()
		w.settle()
		for _, m := range w.Masters()[1:] {
			if m.State == Disconnected {
				t.Errorf("%+v", m)
			}
		}
	})
}

// So SWAPDB does when it is called a second time.
func TestAMasterWhoseDataIsOldAgainIsQuarantinedAndThenVotes(t *testing.T) {
	for _, cut := range []bool{false, true} {
		inWorld(t, 3, func(w *world) {
			f := w.fakes[0]
			f.mu.Lock()
			old := f.markText(canaryKey)
			f.mu.Unlock()
			f.flush()
			w.settle()
			w.expectStates("ccc") // there was no lock: no horizon
			f.mu.Lock()
			f.putMark(canaryKey, old)
			f.mu.Unlock()
			if cut {
				f.cut()
			}
			w.settle()
			w.expectStates("ccc")
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.markText(canaryKey) == old {
				t.Error("the old canary is in place")
			}
		})
	}
}

// Databases that were both initialised carry canaries of their own.
func TestSwappedDatabasesAreForgottenOnes(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		f := w.fakes[0]
		f.mu.Lock()
		c, _ := vouch.ParseCanary(f.markText(canaryKey))
		c.DB = 1
		f.putMark(canaryKey, c.String())
		f.mu.Unlock()
		w.acquire(key, "mine", minute)
		w.settle()
		w.expectStates("qcc")
	})
}

func TestTheOffsetShownIsThatOfTwoWallClocks(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[0].step(20 * time.Millisecond)
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatal("not granted")
		}
		w.settle()
		for i, want := range []time.Duration{20 * time.Millisecond, 0, 0} {
			if got := w.Masters()[i].ClockOffset; (got - want).Abs() > 15*time.Millisecond {
				t.Errorf("master %d: %v, want %v", i, got, want)
			}
		}
	})
}

// What is released gives no promise that a horizon must keep.
func TestAMasterWithoutMemoryReleasesLocks(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		if a := w.acquire("mine", "me", minute); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		for _, f := range w.fakes {
			f.mu.Lock()
			f.fail["horizon"] = "OOM command not allowed when used memory > 'maxmemory'."
			f.mu.Unlock()
		}
		released, acquired := make(chan Released, 1), make(chan Acquired, 1)
		w.Read(Key{Name: "mine"}, func(View) {}) // while it is under way, what comes waits for one batch
		time.Sleep(time.Microsecond)
		w.Release(Key{Name: "mine"}, "me", func(r Released) { released <- r })
		w.Acquire(AcquireRequest{Key: Key{Name: "other"}, Token: "me", TTL: 10 * minute}, func(a Acquired) { acquired <- a })
		if r := <-released; !r.Held {
			t.Errorf("not released: %+v", r)
		}
		if a := <-acquired; a.Lock != nil || a.Err == nil || !strings.Contains(a.Err.Error(), "has no horizon: answered OOM command not allowed") {
			t.Errorf("granted without a horizon: %+v", a)
		}
	})
}
