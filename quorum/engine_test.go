package quorum

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/quorum/masters"
)

// A world is an engine over fakes in a bubble, where time passes only when everything waits.
type world struct {
	*Engine
	t     *testing.T
	fakes []*fake
	ms    []masters.Master // the same
}

// inWorld runs f with an engine over n connected fakes, and checks that everything ends.
func inWorld(t *testing.T, n int, f func(w *world)) {
	t.Helper()
	inWorldWith(t, n, Config{Grace: 400 * time.Millisecond}, f) // the masters of some tests are far away
}

// oneByOne is for tests in which requests are to wait until the batch before is answered, as where masters are near.
var oneByOne = Config{Grace: 400 * time.Millisecond, FarAway: time.Hour}

func inWorldWith(t *testing.T, n int, cfg Config, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fakes, ms := newFakes(n)
		w := &world{t: t, fakes: fakes, ms: ms}
		cfg.InstanceTimeout = cmp.Or(cfg.InstanceTimeout, 100*time.Millisecond)
		full := cfg.withDefaults()
		for _, f := range w.fakes {
			f.initialise(Members(ms, ""), full.bounds())
		}
		e, err := New(cfg, ms)
		if err != nil {
			t.Fatal(err)
		}
		w.Engine = e
		w.settle()
		f(w)
		for _, m := range w.fakes {
			m.resume()
		}
		e.Close()
		time.Sleep(time.Second) // for what the fakes still hold
	})
}

// settle lets everything that was begun come to its end, without waiting for keys to expire. It ends between two
// heartbeats, so that the lanes are idle.
func (w *world) settle() { time.Sleep(2*time.Second + heartbeatEvery/2 - w.now()%heartbeatEvery) }

func (w *world) acquire(key, token string, ttl time.Duration) Acquired {
	return w.try(AcquireRequest{Key: Key{Name: key}, Token: token, TTL: ttl})
}

func (w *world) try(req AcquireRequest) Acquired {
	c := make(chan Acquired, 1)
	w.Acquire(req, func(a Acquired) { c <- a })
	return <-c
}

func (w *world) release(key, token string) Released {
	c := make(chan Released, 1)
	w.Release(Key{Name: key}, token, func(r Released) { c <- r })
	return <-c
}

func (w *world) extend(req ExtendRequest) Extended {
	c := make(chan Extended, 1)
	w.Extend(req, func(x Extended) { c <- x })
	return <-c
}

func (w *world) read(key string) View {
	c := make(chan View, 1)
	w.Read(Key{Name: key}, func(v View) { c <- v })
	return <-c
}

// holders draws who holds key on each master: one letter each, the token's first, or a point.
func (w *world) holders(key string) string {
	var b strings.Builder
	for _, f := range w.fakes {
		if t := f.has(key); t != "" {
			b.WriteByte(t[0])
		} else {
			b.WriteByte('.')
		}
	}
	return b.String()
}

func (w *world) expectHolders(key, want string) {
	w.t.Helper()
	if got := w.holders(key); got != want {
		w.t.Errorf("masters hold %q, want %q", got, want)
	}
}

const key, minute = "k", time.Minute

func TestALockIsTakenRefusedAndReleased(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		if a := w.acquire(key, "other", minute); !a.Refused {
			t.Fatalf("not refused: %+v", a)
		}
		if r := w.release(key, "other"); r.Held || r.Absent || r.Err != nil {
			t.Fatalf("a stranger released: %+v", r)
		}
		if r := w.release(key, "mine"); !r.Held {
			t.Fatalf("the holder did not release: %+v", r)
		}
		w.settle()
		w.expectHolders(key, "...")
		if r := w.release(key, "mine"); !r.Absent {
			t.Fatalf("want absent: %+v", r)
		}
	})
}

// Else clients would not be held back, however many ask.
func TestRoundsUnderWayAreCounted(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		running := func() int {
			n, _ := w.Admission().Rounds()
			return n
		}
		before := running()
		c := w.start(AcquireRequest{Key: Key{Name: key}, Token: "mine", TTL: minute})
		if n := running() - before; n != 1 {
			t.Errorf("%d rounds are under way", n)
		}
		<-c
		(&readRound{done: func(*readRound) {}}).ask(w.Engine, 0, []string{"i", "j", "k"})
		if n := running() - before; n != 3 {
			t.Errorf("one on three keys counts as %d", n)
		}
		w.settle()
		if n := running() - before; n != 0 {
			t.Errorf("%d rounds are under way after the answer", n)
		}
	})
}

// What one master has of an attempt that failed is not who holds the lock: its client would take that for its own.
func TestWhoHoldsARefusedLockIsWhatAQuorumHas(t *testing.T) {
	for _, c := range []struct{ masters, holder string }{
		{"ooo", "other"}, {"moo", "other"}, {"omo", "other"}, {"mmo", "mine"}, {"mo.", ""}, {"mmooo", "other"}, {"mmoo.", ""},
	} {
		inWorld(t, len(c.masters), func(w *world) {
			for i, f := range w.fakes {
				if token := map[byte]string{'m': "mine", 'o': "other"}[c.masters[i]]; token != "" {
					f.set(key, token, minute)
				}
			}
			a := w.try(AcquireRequest{Key: Key{Name: key}, Token: "mine", TTL: minute, WantHolder: true})
			if !a.Refused || a.Holder != c.holder {
				t.Errorf("%s: %+v", c.masters, a)
			}
			w.settle()
			w.expectHolders(key, c.masters)
		})
	}
}

func TestValidityEndsBeforeTheMastersForget(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		before := time.Now()
		a := w.acquire(key, "mine", minute)
		if a.Lock == nil {
			t.Fatal("not granted")
		}
		if got, want := a.Lock.Until().Sub(before), minute-602*time.Millisecond; got != want {
			t.Errorf("valid for %v, want %v", got, want)
		}
		time.Sleep(minute - time.Since(before))
		w.expectHolders(key, "mmm")
		time.Sleep(minute / 50)
		w.expectHolders(key, "...")
	})
}

func TestAMinorityMayBeDownOrStalled(t *testing.T) {
	inWorld(t, 5, func(w *world) {
		w.fakes[0].die()
		w.fakes[1].stall()
		began := time.Now()
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		if d := time.Since(began); d > 10*time.Millisecond {
			t.Errorf("took %v: the reply must not wait for the slow", d)
		}
		if r := w.release(key, "mine"); !r.Held {
			t.Fatalf("not released: %+v", r)
		}
	})
}

func TestWithoutAQuorumTheErrorNamesEachCauseAndNothingIsLeft(t *testing.T) {
	inWorld(t, 5, func(w *world) {
		w.fakes[0].die()
		w.fakes[1].die()
		w.settle()
		w.fakes[2].stall()
		began := time.Now()
		a := w.acquire(key, "mine", minute)
		if d := time.Since(began); d > 250*time.Millisecond {
			t.Errorf("answered after %v", d)
		}
		var nq *NoQuorum
		if !errors.As(a.Err, &nq) {
			t.Fatalf("want NoQuorum: %+v", a)
		}
		want := "NOQUORUM 2 of 5 masters answered, 3 needed: m1 connection refused; m2 connection refused; " +
			"m3 did not answer within 100ms"
		if a.Err.Error() != want {
			t.Errorf("got  %s\nwant %s", a.Err, want)
		}
		w.expectHolders(key, ".....")
		w.fakes[2].resume()
		w.settle()
		w.expectHolders(key, ".....")
	})
}

// A client that names when its lock is to expire means that, however often it is asked for.
func TestAnAttemptThatIsMadeAnewDoesNotKeepTheLockForLonger(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for i, f := range w.fakes {
			f.setDelay(time.Duration(10*min(i+1, 2)) * time.Millisecond) // the first has answered before it is decided
			if i > 0 {
				f.set(key, "other", 30*time.Millisecond)
			}
		}
		asked := 0
		until := time.Now().Add(w.Engine.cfg.kept(minute))
		a := w.try(AcquireRequest{Key: Key{Name: key}, Token: "mine", TTL: minute, Insist: func() bool { asked++; return true }})
		if a.Lock == nil || asked == 0 {
			t.Fatalf("%+v, asked %d times", a, asked)
		}
		w.settle()
		for i, f := range w.fakes {
			f.mu.Lock()
			v, ok := f.get(key)
			f.mu.Unlock()
			if late := v.expires.Sub(until); !ok || late < 0 || late > 10*time.Millisecond {
				t.Errorf("master %d: %v, expires %v late", i, ok, late)
			}
		}
	})
}

// For who waits.
func TestARefusalTellsHowLongEachMasterHoldsSomethingElse(t *testing.T) {
	inWorld(t, 5, func(w *world) {
		for i, ttl := range []time.Duration{10 * time.Second, 0, 20 * time.Second, 30 * time.Second} {
			if ttl > 0 {
				w.fakes[i].set(key, "other", ttl)
				w.fakes[i].setDelay(5 * time.Millisecond) // so that all have answered
			}
		}
		w.fakes[4].leave()
		time.Sleep(time.Second)
		a := w.try(AcquireRequest{Key: Key{Name: key}, Token: "mine", TTL: minute, WantFree: true})
		if !a.Refused || len(a.FreeIn) != 5 {
			t.Fatalf("%+v", a)
		}
		for i, want := range []time.Duration{9 * time.Second, 0, 19 * time.Second, 29 * time.Second, -1} {
			if got := a.FreeIn[i]; got > want || got < want && (want <= 0 || got < want-10*time.Millisecond) {
				t.Errorf("master %d: %v", i, got)
			}
		}
		w.expectHolders(key, "o.oo.")
	})
}

func TestARefusedAttemptLeavesNoVoteBehind(t *testing.T) {
	inWorld(t, 5, func(w *world) {
		for _, f := range w.fakes[:3] {
			f.set(key, "other", minute)
		}
		a := w.acquire(key, "mine", minute)
		if !a.Refused {
			t.Fatalf("want refused: %+v", a)
		}
		w.settle()
		w.expectHolders(key, "ooo..")
	})
}

func TestALateGrantIsUndoneWhenItComes(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[0].set(key, "other", minute)
		w.fakes[1].set(key, "other", minute)
		w.fakes[2].stall()
		if a := w.acquire(key, "mine", minute); !a.Refused {
			t.Fatalf("want refused: %+v", a)
		}
		w.fakes[2].resume()
		w.settle()
		w.expectHolders(key, "oo.")
	})
}

func TestALockReleasedWhileAMasterSleptIsReleasedThereWhenItWakes(t *testing.T) {
	for _, wait := range []time.Duration{0, 300 * time.Millisecond} { // before and after the lane is known to be late
		for _, cut := range []bool{false, true} {
			inWorld(t, 3, func(w *world) {
				slow := w.fakes[2]
				slow.stall()
				if a := w.acquire(key, "mine", minute); a.Lock == nil {
					t.Fatalf("not granted: %+v", a)
				}
				time.Sleep(wait)
				if r := w.release(key, "mine"); !r.Held {
					t.Fatalf("not released: %+v", r)
				}
				time.Sleep(300 * time.Millisecond)
				if cut {
					slow.hangUp()
				}
				slow.resume()
				w.settle()
				w.expectHolders(key, "...")
				if slow.ran("SET") != 1 && !cut {
					t.Error("the late SET never ran")
				}
				if t.Failed() {
					t.Errorf("wait %v cut %v: %q", wait, cut, slow.log)
				}
			})
		}
	}
}

func TestAnAttemptOnABrokenConnectionIsKilledThenUndone(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		late := w.loseAnAttempt()
		w.expectHolders(key, "oo.")
		kill, undo := late.first("CLIENT KILL"), late.first("EVAL ")
		if kill < 0 || undo < kill {
			t.Errorf("killed at %d, undone at %d", kill, undo)
		}
	})
}

func TestAnAttemptThatCannotBeKilledIsUndoneWheneverItRuns(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[2].noKill = true
		w.loseAnAttempt()
		w.expectHolders(key, "oo.")
		time.Sleep(minute)
		w.expectHolders(key, "...")
	})
}

// Before Redis 7, CLIENT KILL ID 0 would be every client, of whomever.
func TestWhoIsNotToldItsClientIDKillsNobody(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		late := w.fakes[2]
		late.mu.Lock()
		late.noID = true
		late.mu.Unlock()
		late.cut()
		w.settle()
		kills := late.ran("CLIENT KILL")
		w.loseAnAttempt()
		if n := late.ran("CLIENT KILL"); n != kills {
			t.Errorf("%d clients were killed", n-kills)
		}
		time.Sleep(minute)
		w.expectHolders(key, "...")
	})
}

// loseAnAttempt lets a SET run on the third master after its connection broke, and returns that master.
func (w *world) loseAnAttempt() *fake {
	late := w.fakes[2]
	w.fakes[0].set(key, "other", minute)
	w.fakes[1].set(key, "other", minute)
	late.stall()
	if a := w.acquire(key, "mine", minute); !a.Refused {
		w.t.Fatalf("want refused: %+v", a)
	}
	late.hangUp()
	time.Sleep(300 * time.Millisecond)
	late.resume()
	w.settle()
	return late
}

func TestAnUndoLeavesAnotherAttemptWithTheSameTokenAlone(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		a := w.acquire(key, "mine", minute)
		time.Sleep(10 * time.Second)
		for _, f := range w.fakes { // released and taken again, with the same token, through another proxy
			f.set(key, "mine", minute)
		}
		a.Lock.Abandon()
		w.settle()
		w.expectHolders(key, "mmm")
		for _, f := range w.fakes {
			if f.ran("EVAL ") == 0 {
				t.Errorf("%s: the undo did not even try", f.addr)
			}
		}
	})
}

func TestAnAbandonedLockIsFree(t *testing.T) {
	inWorld(t, 5, func(w *world) {
		w.fakes[4].stall()
		a := w.acquire(key, "mine", minute)
		a.Lock.Abandon()
		a.Lock.Abandon()
		w.fakes[4].resume()
		w.settle()
		w.expectHolders(key, ".....")
		if n := w.Stats().Undone; n != 5 {
			t.Errorf("%d keys undone, want 5", n)
		}
	})
}

func TestAQuorumThatAnswersTooLateIsNoLock(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, f := range w.fakes {
			f.setDelay(40 * time.Millisecond)
		}
		if a := w.acquire(key, "mine", 50*time.Millisecond); !a.Refused {
			t.Fatalf("want refused: %+v", a)
		}
		w.expectHolders(key, "...")
	})
}

// What the others have settled before it was sent is no failure of the master.
func TestAVoteThatNobodyAskedForIsNotCounted(t *testing.T) {
	inWorldWith(t, 3, oneByOne, func(w *world) {
		slow := w.fakes[0]
		for _, f := range w.fakes[1:] {
			f.set(key, "other", minute)
		}
		slow.stall()
		w.Get(Key{Name: "x"}, func(View) {}) // occupies the lane
		time.Sleep(10 * time.Millisecond)
		if a := w.acquire(key, "mine", minute); !a.Refused {
			t.Fatalf("want refused: %+v", a)
		}
		slow.resume()
		w.settle()
		if n, votes := slow.ran("SET"), w.Masters()[0].Votes; n != 0 || votes.Failed != 0 {
			t.Errorf("sent %d times; votes %+v", n, votes)
		}
	})
}

func TestARequestPastItsDeadlineIsNeverSent(t *testing.T) {
	inWorldWith(t, 3, oneByOne, func(w *world) {
		slow := w.fakes[0]
		slow.stall()
		w.Get(Key{Name: "x"}, func(View) {}) // occupies the lane
		time.Sleep(10 * time.Millisecond)
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		time.Sleep(time.Second)
		slow.resume()
		w.settle()
		if n := slow.ran("SET"); n != 0 {
			t.Errorf("sent %d times", n)
		}
	})
}

func TestAReentrantAcquireExtendsAndUndoesOnlyWhatItMade(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		req := AcquireRequest{Key: Key{Name: key}, Token: "mine", TTL: minute, Reentrant: true}
		for _, held := range []bool{false, true} {
			if a := w.try(req); a.Lock == nil || a.Held != held {
				t.Fatalf("got %+v, want held %v", a, held)
			}
		}
		w.fakes[0].set(key, "other", minute)
		w.fakes[1].set(key, "other", minute)
		if a := w.try(req); !a.Refused {
			t.Fatalf("want refused: %+v", a)
		}
		w.settle()
		w.expectHolders(key, "oom")
	})
}

func TestExtendCountsOnAQuorumAndNeverCreates(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		req := ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: minute}
		if x := w.extend(req); x.Held || !x.Absent {
			t.Fatalf("extended nothing: %+v", x)
		}
		w.expectHolders(key, "...")
		w.acquire(key, "mine", 10*time.Second)
		before := time.Now()
		if x := w.extend(req); !x.Held || x.Until.Sub(before) != minute-602*time.Millisecond {
			t.Fatalf("got %+v, %v", x, x.Until.Sub(before))
		}
		req.Add = true
		if x := w.extend(req); !x.Held || x.Until.Sub(before) < 2*minute-3*time.Second || x.Until.Sub(before) > 2*minute {
			t.Fatalf("got %+v, %v", x, x.Until.Sub(before))
		}
		req.TTL = time.Hour
		if x := w.extend(req); !errors.Is(x.Err, ErrTooLong) {
			t.Fatalf("want ErrTooLong: %+v", x)
		}
		w.fakes[0].die()
		w.fakes[1].die()
		if x := w.extend(req); x.Err == nil || x.Held {
			t.Fatalf("extended without a quorum: %+v", x)
		}
	})
}

// Masters may hold it still: nobody is to be told that it is lost.
func TestAnExtensionThatIsHeardTooLateIsInDoubt(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "mine", minute)
		for _, f := range w.fakes {
			f.setDelay(20 * time.Millisecond)
		}
		for range 2 { // the first makes it shorter
			if x := w.extend(ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: 30 * time.Millisecond, Fenced: true}); !errors.Is(x.Err, ErrLate) {
				t.Errorf("%+v", x)
			}
		}
		w.expectHolders(key, "mmm")
	})
}

// No validity can be left of such a TTL, and whoever asks for it gives the lock up. What adds it to what is left asks for more.
func TestAnExtensionTooShortToLeaveValidityIsDone(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "mine", minute)
		req := ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: 2 * time.Millisecond, Add: true}
		if x := w.extend(req); !x.Held || x.Lock == nil {
			t.Errorf("added: %+v", x)
		}
		req.Add = false
		if x := w.extend(req); !x.Held || x.Lock != nil || !x.Until.IsZero() {
			t.Errorf("%+v", x)
		}
		w.expectHolders(key, "mmm")
		w.settle()
		w.expectHolders(key, "...")
		if x := w.extend(req); x.Held || !x.Absent {
			t.Errorf("extended nothing: %+v", x)
		}
	})
}

func TestRemoveTakesTheHoldersKeyAndNoOther(t *testing.T) {
	inWorld(t, 5, func(w *world) {
		for i, token := range []string{"a", "a", "a", "b", "b"} {
			w.fakes[i].set(key, token, minute)
		}
		c := make(chan Changed, 1)
		w.Remove(Key{Name: key}, func(x Changed) { c <- x })
		if x := <-c; !x.Applied {
			t.Fatalf("not removed: %+v", x)
		}
		w.settle()
		w.expectHolders(key, "...bb")
		w.Remove(Key{Name: key}, func(x Changed) { c <- x })
		if x := <-c; !x.Applied && x.Err == nil {
			w.expectHolders(key, "...bb")
		} else {
			t.Fatalf("removed a vote in flight: %+v", x)
		}
	})
}

func TestReadsAgreeOrSaySo(t *testing.T) {
	inWorld(t, 5, func(w *world) {
		for i, token := range []string{"a", "a", "b", "b"} {
			w.fakes[i].set(key, token, minute)
		}
		if v := w.read(key); v.Exists || v.Err != nil {
			t.Errorf("nobody has a quorum: %+v", v)
		}
		w.fakes[4].die()
		if v := w.read(key); v.Err == nil {
			t.Errorf("the dead master decides: %+v", v)
		}
		w.fakes[2].set(key, "a", 20*time.Second)
		if v := w.read(key); !v.Exists || v.Value != "a" || v.TTL > 20*time.Second || v.TTL < 19*time.Second {
			t.Errorf("got %+v", v)
		}
	})
}

func TestAMasterThatFallsSilentWhileItIsMendedIsConnectedToAnew(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "mine", minute)
		w.fakes[0].flushScripts()
		released := make(chan Released, 1)
		w.Release(Key{Name: key}, "mine", func(r Released) { released <- r })
		time.Sleep(5 * w.fakes[0].lag / 2)
		w.fakes[0].stall() // its scripts are on their way
		if r := <-released; !r.Held {
			t.Fatalf("not released: %+v", r)
		}
		time.Sleep(w.cfg.MasterDeadAfter + time.Second)
		if w.Masters()[0].State != Disconnected {
			t.Error("still waited for")
		}
		w.fakes[0].resume()
		w.settle()
		if w.Masters()[0].State == Disconnected || w.fakes[0].ran("CLIENT KILL") != 1 {
			t.Errorf("not connected to anew: %+v", w.Masters()[0])
		}
	})
}

func TestServiceIsBackWithinASecondOfTheMasters(t *testing.T) {
	inWorld(t, 5, func(w *world) {
		for _, f := range w.fakes[:3] {
			f.leave()
		}
		w.settle()
		began := time.Now()
		if a := w.acquire(key, "mine", minute); a.Err == nil || time.Since(began) > 150*time.Millisecond {
			t.Fatalf("after %v: %+v", time.Since(began), a)
		}
		if w.Ready() == nil {
			t.Error("ready without a quorum")
		}
		for _, f := range w.fakes[:3] {
			f.comeBack()
		}
		time.Sleep(time.Second)
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		if err := w.Ready(); err != nil {
			t.Error(err)
		}
	})
}

func TestABrokenIdleConnectionIsFoundBeforeACommandIsLostOnIt(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, f := range w.fakes {
			f.cut()
		}
		time.Sleep(time.Second)
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
	})
}

func TestAMasterThatIsSilentForTooLongIsConnectedToAnew(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		silent := w.fakes[0]
		silent.stall()
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		time.Sleep(w.cfg.MasterDeadAfter + time.Second)
		if s := w.Masters()[0]; s.State != Disconnected || s.Cause != "is silent" {
			t.Errorf("got %+v", s)
		}
		silent.resume()
		w.settle()
		if err := w.Ready(); err != nil || w.Masters()[0].State == Disconnected {
			t.Errorf("not back: %v, %+v", err, w.Masters()[0])
		}
		if silent.ran("CLIENT KILL") != 1 {
			t.Error("the silent connection was not killed")
		}
	})
}

// Its holder lacks the vote of one master, and another is silent: nobody can say that the lock is gone.
func TestAnExtensionInDoubtIsNotCalledLost(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[1].leave()
		w.settle()
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatal("not granted")
		}
		w.fakes[1].comeBack()
		w.settle()
		w.fakes[2].stall()
		if x := w.extend(ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: minute}); x.Err == nil {
			t.Errorf("extended: %+v", x)
		}
		w.fakes[2].resume()
		w.settle()
		if x := w.extend(ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: minute}); !x.Held {
			t.Errorf("not extended: %+v", x)
		}
	})
}

func TestCloseEndsWhatIsRunning(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, f := range w.fakes {
			f.stall()
		}
		c := make(chan Acquired, 1)
		w.Acquire(AcquireRequest{Key: Key{Name: key}, Token: "mine", TTL: minute}, func(a Acquired) { c <- a })
		go w.Close()
		if a := <-c; a.Err == nil {
			t.Errorf("got %+v", a)
		}
		for _, f := range w.fakes {
			f.resume()
		}
	})
}

// A key that a master sets after its attempt has failed must not outlive the proxy that would have removed it.
func TestCloseWaitsForMastersThatAreLate(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, f := range w.fakes[1:] {
			f.stall()
		}
		if a := w.acquire(key, "mine", minute); a.Err == nil {
			t.Fatalf("got %+v", a)
		}
		closed := make(chan struct{})
		go func() {
			w.Close()
			close(closed)
		}()
		time.Sleep(w.cfg.MasterDeadAfter / 2)
		for _, f := range w.fakes[1:] {
			f.resume()
		}
		resumed := time.Now()
		<-closed
		if took := time.Since(resumed); took > w.cfg.InstanceTimeout {
			t.Errorf("closed %v after there was nothing left to wait for", took)
		}
		for i, f := range w.fakes {
			if f.has(key) != "" || i > 0 && f.ran("SET "+key) == 0 {
				t.Errorf("master %d has set the key %d times and holds %q", i+1, f.ran("SET "+key), f.has(key))
			}
		}
	})
}

func TestOfManyContendersAtMostOneWins(t *testing.T) {
	inWorld(t, 5, func(w *world) {
		for i, f := range w.fakes {
			f.setDelay(time.Duration(i+1) * time.Millisecond)
		}
		for round := range 50 {
			const n = 8
			c := make(chan Acquired, n)
			for i := range n {
				w.Acquire(AcquireRequest{Key: Key{Name: key}, Token: string(rune('a' + i)), TTL: minute},
					func(a Acquired) { c <- a })
			}
			won := 0
			for range n {
				if a := <-c; a.Lock != nil {
					won++
					defer a.Lock.Abandon()
				} else if a.Err != nil {
					t.Fatal(a.Err)
				}
			}
			if won > 1 {
				t.Fatalf("round %d: %d holders", round, won)
			}
			w.settle()
			for _, f := range w.fakes {
				f.mu.Lock()
				clear(f.keys)
				f.mu.Unlock()
			}
		}
	})
}
