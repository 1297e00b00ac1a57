package quorum

import (
	"errors"
	"strings"
	"testing"
	"time"

	"lockproxy/quorum/masters"
)

// Rule 13, for the acquires that are scripts.
func TestAnAcquireSurvivesAFlushedScriptCache(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, f := range w.fakes {
			f.flushScripts()
		}
		r := req1("mine", minute)
		r.WantHolder = true
		if a := w.try(r); a.Lock == nil {
			t.Errorf("%+v", a)
		}
	})
}

// A script that a master has forgotten is sent again, as a whole: before what came after it.
func TestNoReleaseOvertakesAScriptThatIsSentAgain(t *testing.T) {
	inWorldWith(t, 3, oneByOne, func(w *world) {
		s, other := NewScript("return 1"), NewScript("return 2")
		for _, f := range w.fakes {
			took := []any{":1;", "0"}
			f.vote(map[string]any{s.wrapped.text: took, other.wrapped.text: took})
		}
		ran := make(chan Ran, 4)
		run := func(s *Script) { w.Run(RunRequest{Script: s, Keys: []string{key}}, func(r Ran) { ran <- r }) }
		for _, s := range []*Script{s, other} { // the next time it is sent by its name only, which the fakes do not know
			run(s)
			<-ran
		}
		w.settle()
		f := w.fakes[0]
		f.mu.Lock()
		f.log, f.lag = nil, 8*time.Millisecond
		f.mu.Unlock()
		w.Acquire(AcquireRequest{Key: Key{Name: "another"}, Token: "mine", TTL: minute}, func(Acquired) {})
		time.Sleep(4 * time.Millisecond) // its batch is on its way, so that the two scripts are in the next one together
		run(s)
		run(other)
		time.Sleep(16 * time.Millisecond) // they are on their way
		w.release(key, "mine")
		w.settle()
		again, next := f.first("EVAL "+s.wrapped.text[:20]), f.first("EVALSHA "+luaRelease.sha)
		if f.ran("EVAL ") != 2 || again < 0 || next < again {
			t.Errorf("sent again as command %d, released by command %d", again, next)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if !strings.Contains(f.log[again], "return 1") || !strings.Contains(f.log[again+1], "return 2") {
			t.Error("what is sent again is not in order")
		}
	})
}

// And for what gives a lock back or extends it, on all masters at once; after that they have the scripts.
func TestAReleaseAndAnExtensionSurviveAFlushedScriptCache(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for range 2 {
			w.acquire(key, "mine", minute)
			for _, f := range w.fakes {
				f.flushScripts()
			}
			x := w.extend(ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: 2 * minute})
			if left := time.Until(x.Until); !x.Held || left > 2*minute-time.Second {
				t.Fatalf("not extended: %+v", x)
			}
			w.settle()
			w.expectHolders(key, "mmm")
			if left := w.fakes[2].keys[key].expires.Sub(w.fakes[2].now()); left < 2*minute-5*time.Second {
				t.Errorf("a master keeps it for %v", left)
			}
			for _, f := range w.fakes {
				f.flushScripts()
			}
			if r := w.release(key, "mine"); !r.Held {
				t.Fatalf("not released: %+v", r)
			}
			w.settle()
			w.expectHolders(key, "...")
		}
		if n, again := w.fakes[0].ran("EVALSHA "), w.fakes[0].ran("EVAL "); n != 4 || again != 4 {
			t.Errorf("%d scripts by SHA-1, %d again as a whole", n, again)
		}
		w.acquire(key, "mine", minute)
		if r := w.release(key, "mine"); !r.Held || w.fakes[0].ran("EVAL ") != 4 {
			t.Errorf("the scripts were not loaded again: %+v", r)
		}
	})
}

// The scripts of an Exec are long: a connection has each as a whole once. Where a master has forgotten them, the Exec takes place
// all the same.
func TestAnExecGoesBySHA1(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		was := "-"
		for i, text := range []string{"a", "b", "c", "d"} {
			if i == 3 {
				for _, f := range w.fakes {
					f.flushScripts()
				}
			}
			if old, x := w.getSet(key, text, minute); old != was || !x.Done || x.Lock == nil {
				t.Fatalf("%q, %+v; want %q", old, x, was)
			}
			was = text
			w.settle()
			whole := 2 + i/3*2
			for i, f := range w.fakes {
				if n := f.ran("EVAL "); n != whole {
					t.Errorf("master %d was sent %d whole scripts until %q, want %d", i, n, text, whole)
				}
			}
		}
		w.expectHolders(key, "ddd")
	})
}

func TestWhatIsReadGoesBySHA1(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for range 2 {
			w.views(key)
			w.read(key)
		}
		w.settle()
		for i, f := range w.fakes {
			if n := f.ran("EVAL "); n != 1 {
				t.Errorf("master %d was sent %d whole scripts", i, n)
			}
		}
	})
}

// slowThird lets the third master answer slowly, and occupies it: what is sent until now+20 ms waits for it in one batch.
// Its script cache has been flushed.
func (w *world) slowThird() {
	f := w.fakes[2]
	f.flushScripts()
	f.mu.Lock()
	f.lag = 10 * time.Millisecond
	f.mu.Unlock()
	w.Get(Key{Name: "another"}, func(View) {})
	time.Sleep(time.Millisecond)
}

// The third master has no vote of the lock that is released, but one of the next with the same token.
func TestAReleaseThatIsSentAgainDoesNotTakeTheNextLock(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "mine", minute)
		w.settle()
		w.fakes[2].set(key, "gone", -time.Second)
		w.slowThird()
		if r := w.release(key, "mine"); !r.Held {
			t.Fatalf("not released: %+v", r)
		}
		if a := w.acquire(key, "mine", minute); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		w.settle()
		w.expectHolders(key, "mmm")
		if w.fakes[2].ran("EVALSHA "+luaRelease.sha) != 1 {
			t.Error("the release was not in the same batch")
		}
	})
}

func TestAReleaseThatIsSentAgainIsFollowedByOthers(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "mine", minute)
		w.settle()
		w.slowThird()
		w.release(key, "mine")
		if a := w.acquire(key, "other", minute); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		w.settle()
		w.expectHolders(key, "oo.")
	})
}

// An extension that is overtaken by a longer one does not shorten it.
func TestAnExtensionThatIsSentAgainDoesNotShortenTheLock(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "mine", minute)
		w.settle()
		w.slowThird()
		w.extend(ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: time.Second})
		again := req1("mine", minute)
		again.Reentrant = true
		if a := w.try(again); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		time.Sleep(30 * time.Second)
		w.expectHolders(key, "mmm")
	})
}

// What is sent again comes before the deadline of its vote, or not at all. A release is made late, by an undo.
func TestNothingIsSentAgainAfterItsDeadline(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "mine", minute)
		w.settle()
		f := w.fakes[2]
		f.flushScripts()
		f.mu.Lock()
		f.lag = w.cfg.InstanceTimeout
		f.mu.Unlock()
		if r := w.release(key, "mine"); !r.Held {
			t.Fatalf("not released: %+v", r)
		}
		w.settle()
		w.expectHolders(key, "...")
		if f.ran("EVALSHA ") != 1 || f.ran("EVAL "+luaRelease.text[:20]) != 0 || f.ran("EVAL "+luaUndo.text[:20]) != 1 {
			t.Errorf("sent: %q", f.log)
		}
	})
}

func TestWhatOvertakesAScript(t *testing.T) {
	name, token := key, "mine"
	giveBack := luaRelease.whole([]string{key}, "mine")
	tests := []struct {
		what        string
		first       []any
		firstOwner  operation
		later       []any
		laterOwner  operation
		err         string
		isOvertaken bool
	}{
		{"a take with its token", giveBack, &releaseRound{}, []any{"SET", &name, &token, "NX"}, &acquireRound{}, "", true},
		{"another's take", giveBack, &releaseRound{}, []any{"SET", key, "other", "NX"}, &acquireRound{}, "", false},
		{"another lock's", giveBack, &releaseRound{}, []any{"SET", "key", "mine", "NX"}, &acquireRound{}, "", false},
		{"one that did not run either", giveBack, &releaseRound{}, luaReenter.whole([]string{key}, "mine"), &acquireRound{}, "NOSCRIPT No", false},
		{"one that failed", giveBack, &releaseRound{}, luaReenter.whole([]string{key}, "mine"), &acquireRound{}, "WRONGTYPE", true},
		{"a longer extension", luaExtend.whole([]string{key}, "mine", int64(1)), &extendRound{}, luaAdd.whole([]string{key}, "mine"), &extendRound{}, "", true},
		{"a read", giveBack, &releaseRound{}, []any{"STRLEN", key, "mine"}, &askRound{}, "", false},
		{"of a read", luaLook.whole([]string{key}), &readRound{}, []any{"SET", key, "mine"}, &writeRound{}, "", false},
		{"a script with whatever token", giveBack, &releaseRound{}, []any{"EVAL", "…", int64(1), key}, &scriptRound{}, "", true},
		{"of such a script", []any{"EVALSHA", "…", int64(1), key}, &scriptRound{}, []any{"SET", key, "x"}, &writeRound{}, "", true},
		{"a message on a channel of the key's name", []any{"EVALSHA", "…", int64(1), "PUBLISH"}, &scriptRound{}, []any{"PUBLISH", "c", "x"}, &pollRound{}, "", false},
		{"what changes the queue of such a script", []any{"EVALSHA", "…", int64(1), key}, &scriptRound{}, luaLeave.whole([]string{key, "q", "t"}, "x"), &pollRound{changes: true}, "", true},
		{"another script", []any{"EVALSHA", "…", int64(1), "j", key}, &scriptRound{}, []any{"SET", key, "x"}, &writeRound{}, "", false},
		{"a release of what an EXEC has put", luaEdit.whole([]string{key}, "none", "", "put", "mine", int64(1)), &execRound{}, giveBack, &releaseRound{}, "", true},
		{"a take with what an EXEC has replaced", luaEdit.whole([]string{key}, "string", "mine", "put", "other", int64(1)), &execRound{}, []any{"SET", &name, &token, "NX"}, &acquireRound{}, "", true},
		{"an EXEC", giveBack, &releaseRound{}, luaEdit.whole([]string{key}, "string", "mine", "put", "other", int64(1)), &execRound{}, "", true},
	}
	for _, test := range tests {
		first := &entry{Call: masters.Call{Args: test.first}, round: &round{operation: test.firstOwner}}
		later := &entry{Call: masters.Call{Args: test.later}, round: &round{operation: test.laterOwner}}
		if test.err != "" {
			later.Err = errors.New(test.err)
		}
		if got := first.overtakenBy(later); got != test.isOvertaken {
			t.Errorf("%s: %v", test.what, got)
		}
	}
}
