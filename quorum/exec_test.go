package quorum

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/quorum/rules"
)

func (w *world) exec(req ExecRequest) Executed {
	c := make(chan Executed, 1)
	w.Exec(req, func(x Executed) { c <- x })
	return <-c
}

// getSet is GETSET: it returns what was there, or "-".
func (w *world) getSet(name, text string, ttl time.Duration) (string, Executed) {
	old := "-"
	x := w.exec(ExecRequest{Keys: []string{name}, Plan: func(now []View) []Edit {
		if old = "-"; now[0].Exists {
			old = now[0].Value
		}
		return []Edit{{Kind: Put, Value: text, TTL: ttl}}
	}})
	return old, x
}

func (w *world) marks(names ...string) []Mark {
	var marks []Mark
	w.exec(ExecRequest{Keys: names, Plan: func(now []View) []Edit {
		for _, v := range now {
			marks = append(marks, v.Mark())
		}
		return nil
	}})
	return marks
}

func always(edits ...Edit) Plan { return func([]View) []Edit { return edits } }

func TestExecReplacesWhatAQuorumHolds(t *testing.T) {
	inWorld(t, 5, func(w *world) {
		for i, text := range []string{"old", "old", "old", "xxx", ""} {
			if text != "" {
				w.fakes[i].set(key, text, minute)
			}
		}
		old, x := w.getSet(key, "new", minute)
		if old != "old" || !x.Done || x.Lock == nil {
			t.Fatalf("%q, %+v", old, x)
		}
		w.settle()
		w.expectHolders(key, "nnnx.")
		old, x = w.getSet("free", "new", minute)
		if old != "-" || !x.Done {
			t.Fatalf("%q, %+v", old, x)
		}
		w.settle()
		w.expectHolders("free", "nnnnn")
	})
}

func TestExecWithoutAnEditOnlyReads(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "mine", minute)
		var seen []View
		x := w.exec(ExecRequest{Keys: []string{key, "b"}, Plan: func(now []View) []Edit {
			seen = now
			return nil
		}})
		if !x.Done || x.Lock != nil || seen[0].Value != "mine" || seen[0].TTL < minute-time.Second || seen[1].Exists {
			t.Errorf("%+v, %+v", x, seen)
		}
		if n := w.fakes[0].ran("EVAL"); n != 1 {
			t.Errorf("%d scripts ran, want one", n)
		}
	})
}

func TestWatchedKeysDecide(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "mine", minute)
		marks := w.marks(key, "b")
		req := ExecRequest{Keys: []string{key, "b"}, Watched: marks, Plan: always(Edit{}, Edit{Kind: Put, Value: "x", TTL: minute})}
		if x := w.exec(req); !x.Done {
			t.Fatalf("unchanged, and yet %+v", x)
		}
		if x := w.exec(req); x.Done || x.Err != nil {
			t.Fatalf("b has changed, and yet %+v", x)
		}
		w.release(key, "mine")
		req.Watched = marks[:1]
		if x := w.exec(req); x.Done || x.Err != nil {
			t.Fatalf("k is gone, and yet %+v", x)
		}
		req.Watched = []Mark{{}}
		if x := w.exec(req); x.Done {
			t.Fatalf("no key has the zero mark, and yet %+v", x)
		}
		w.settle()
		w.expectHolders("b", "xxx")
	})
}

// As in Redis, where somebody has set a watched key again, or given it another TTL, that is a change.
func TestAWatchedKeyChangesWithItsExpiry(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"extended": func(w *world) { w.extend(ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: time.Hour}) },
		"released and taken": func(w *world) {
			w.release(key, "mine")
			w.acquire(key, "mine", minute)
		},
		"written":    func(w *world) { w.getSet(key, "mine", minute) },
		"not at all": func(*world) {},
		"not at all, and a clock is set back, and another master is away": func(w *world) {
			w.fakes[1].step(-10 * time.Second)
			w.fakes[2].setDelay(time.Millisecond)
			time.Sleep(time.Second)
			w.fakes[0].stall()
		},
		"not at all, and a master has an older copy": func(w *world) {
			w.fakes[1].die()
			w.fakes[1].comeBack()
			w.fakes[1].set(key, "mine", minute/2) // before it was extended
			time.Sleep(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.acquire(key, "mine", minute)
				w.fakes[2].setDelay(20 * time.Millisecond) // both looks are at the others
				req := ExecRequest{Keys: []string{key}, Watched: w.marks(key), Plan: always(Edit{Kind: Put, Value: "x", TTL: minute})}
				time.Sleep(time.Millisecond)
				change(w)
				w.settle()
				if x := w.exec(req); x.Done != strings.HasPrefix(name, "not at all") || x.Err != nil {
					t.Errorf("%+v", x)
				}
			})
		})
	}
}

// That is found, too, where no master is heard by all three: WATCH, the change and EXEC.
func TestAWatchedKeyIsExtendedWhereWatchHasNotLooked(t *testing.T) {
	for name, longer := range map[string]time.Duration{"extended": minute, "not at all": 0} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.acquire(key, "mine", minute)
				w.settle()
				w.fakes[2].setDelay(20 * time.Millisecond)
				marks := w.marks(key) // of 0 and 1
				w.settle()
				w.fakes[2].setDelay(time.Millisecond)
				if longer > 0 {
					w.fakes[1].stall()
					w.extend(ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: minute + longer})
					time.Sleep(5 * time.Millisecond)
					w.fakes[1].cut() // it has missed that
					w.fakes[1].resume()
					w.settle()
				}
				w.fakes[0].stall()
				x := w.exec(ExecRequest{Keys: []string{key}, Watched: marks, Plan: always(Edit{Kind: Put, Value: "x", TTL: minute})})
				if x.Done != (longer == 0) || x.Err != nil {
					t.Errorf("%+v", x)
				}
			})
		})
	}
}

// A master that ran an extension late keeps the key for longer than the others. It was heard by WATCH, and is slower than others
// at EXEC, so that it would not be heard if EXEC did not wait for it.
func TestExecWaitsForTheMastersThatWatchHeard(t *testing.T) {
	for _, plan := range []bool{false, true} { // what the plan compares is waited for, too
		inWorld(t, 3, func(w *world) {
			w.acquire(key, "mine", minute)
			w.fakes[2].set(key, "mine", minute+5*time.Second)
			w.fakes[0].setDelay(10 * time.Millisecond)
			req := ExecRequest{Keys: []string{key}, Watched: w.marks(key), Plan: always(Edit{Kind: Put, Value: "x", TTL: minute})}
			w.settle()
			w.fakes[0].setDelay(time.Millisecond)
			w.fakes[2].setDelay(10 * time.Millisecond)
			same := true
			if plan {
				mark := req.Watched[0]
				req.Watched, req.Shown = nil, req.Watched
				req.Plan = func(now []View) []Edit {
					same = mark.Same(now[0])
					return []Edit{{}}
				}
			}
			if x := w.exec(req); !x.Done || x.Err != nil || !same {
				t.Errorf("%+v, same %v", x, same)
			}
		})
	}
}

// One that tells when a key expires only to within 2 ms, or that never drops it, tells no change where there is none.
func TestAMarkIsComparedOnMastersThatToldItBothTimes(t *testing.T) {
	view := func(told ...sighting) View {
		for i := range told {
			told[i].Opinion = rules.Opinion{Exists: true, Kind: "string", Value: "v"}
		}
		return View{Exists: true, Type: "string", Value: "v", seen: rules.Opinion{Exists: true, Kind: "string", Value: "v"}, told: told}
	}
	at := func(master int, ends, slack int64) sighting {
		return sighting{master: master, left: time.Second, ends: ends, slack: slack}
	}
	forever := sighting{master: 1, left: -1, ends: 7}
	mark := view(at(0, 1000, 0), at(1, 5000, 2)).Mark()
	for _, c := range []struct {
		now  View
		same bool
	}{
		{view(at(0, 1000, 0), at(1, 5004, 2)), true},
		{view(at(0, 1001, 0), at(1, 5000, 2)), false},
		{view(at(0, 1000, 0), at(1, 4995, 2)), false},
		{view(at(1, 5000, 2), at(2, 9000, 0)), true},
		{view(at(2, 9000, 0), forever), true},
		{View{Exists: true, Type: "string", Value: "w"}, false},
		{View{Type: "none"}, false},
	} {
		if got := mark.Same(c.now); got != c.same {
			t.Errorf("%+v: %v", c.now.told, got)
		}
	}
	if (Mark{}).Same(View{Type: "none"}) {
		t.Error("the zero mark is a free key's")
	}
}

// Somebody may be putting back what a quorum holds: to be told that the key is free would be to be told what is not so.
func TestExecDoesNotTakeForFreeWhatMastersDifferAbout(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for i, text := range []string{"a", "b", "c"} {
			w.fakes[i].set(key, text, minute)
		}
		x := w.exec(ExecRequest{Keys: []string{key}, Plan: func(now []View) []Edit {
			t.Errorf("saw %+v", now)
			return nil
		}})
		if x.Done || x.Err == nil || x.Err.Error() != "NOQUORUM 3 of 3 masters answered, 2 needed to agree" {
			t.Errorf("%+v", x)
		}
	})
}

// What is seen in the first round and changed before the second must not be overwritten.
func TestExecThatLosesPutsBackAndLooksAgain(t *testing.T) {
	inWorld(t, 5, func(w *world) {
		for _, f := range w.fakes {
			f.set(key, "old", minute)
			f.set("gone", "gone", minute)
		}
		before := w.fakes[0].keys[key].expires
		tries := 0
		x := w.exec(ExecRequest{Keys: []string{key, "gone", "free"}, Plan: func(now []View) []Edit {
			if tries++; tries == 1 {
				for _, f := range w.fakes[2:] {
					f.set(key, "theirs", minute)
				}
				return []Edit{{Kind: Put, Value: "mine", TTL: time.Second}, {Kind: Delete}, {Kind: Put, Value: "mine", TTL: minute}}
			}
			if now[0].Value != "theirs" || now[1].Value != "gone" || now[2].Exists {
				t.Errorf("saw %+v", now)
			}
			w.expectHolders(key, "oottt")
			w.expectHolders("gone", "ggggg")
			w.expectHolders("free", ".....")
			return nil
		}})
		if !x.Done || tries != 2 {
			t.Errorf("%+v after %d tries", x, tries)
		}
		if off := w.fakes[0].keys[key].expires.Sub(before).Abs(); off > time.Millisecond {
			t.Errorf("the TTL was put back wrong by %v", off)
		}
	})
}

func TestExecWithoutAQuorumIsPutBackOnEveryMasterThatComesBack(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, f := range w.fakes {
			f.set(key, "old", minute)
			f.set("gone", "gone", minute)
		}
		x := w.exec(ExecRequest{Keys: []string{key, "b", "gone"}, Plan: func([]View) []Edit {
			w.fakes[1].stall()
			w.fakes[2].stall()
			return []Edit{{Kind: Put, Value: "new", TTL: minute}, {Kind: Put, Value: "new", TTL: minute}, {Kind: Delete}}
		}})
		var no *NoQuorum
		if !errors.As(x.Err, &no) || x.Lock != nil {
			t.Fatalf("%+v", x)
		}
		w.fakes[1].resume()
		w.fakes[2].hangUp() // what it was sent runs when it wakes
		w.fakes[2].resume()
		w.settle()
		w.expectHolders(key, "ooo")
		w.expectHolders("b", "...")
		w.expectHolders("gone", "gg.") // for all that is known, its holder may have released it there
	})
}

// A refusal that comes after the end is still none of a change.
func TestALateRefusalIsNotPutBack(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "old", minute)
		w.fakes[2].set(key, "other", minute)
		x := w.exec(ExecRequest{Keys: []string{key}, Plan: func([]View) []Edit {
			w.fakes[1].stall()
			w.fakes[2].stall()
			return []Edit{{Kind: Put, Value: "new", TTL: minute}}
		}})
		if x.Err == nil {
			t.Fatalf("%+v", x)
		}
		w.fakes[1].resume()
		w.fakes[2].resume()
		w.settle()
		if got := w.fakes[0].has(key) + w.fakes[1].has(key) + w.fakes[2].has(key); got != "oldoldother" {
			t.Error(got)
		}
	})
}

func TestAbandonPutsBack(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "old", minute)
		_, x := w.getSet(key, "new", minute)
		x.Lock.Abandon()
		w.settle()
		w.expectHolders(key, "ooo")
		if r := w.release(key, "old"); !r.Held {
			t.Errorf("%+v", r)
		}
	})
}

func TestAnUndoOfAnExecSparesWhatWasPutLater(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		_, first := w.getSet(key, "1", minute)
		w.release(key, "1")
		time.Sleep(2 * time.Millisecond)
		if _, second := w.getSet(key, "1", minute); !second.Done {
			t.Fatal(second)
		}
		first.Lock.Abandon()
		w.settle()
		w.expectHolders(key, "111")
	})
}

func TestExecTooLateToBeValidIsPutBack(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "old", 40*time.Millisecond)
		for _, f := range w.fakes {
			f.setDelay(20 * time.Millisecond)
		}
		if _, x := w.getSet(key, "new", 30*time.Millisecond); !errors.Is(x.Err, ErrLate) {
			t.Fatalf("%+v", x)
		}
		w.expectHolders(key, "ooo")
	})
}

// As a ShedLock unlocks a few ms before its lockAtLeastFor, over a slow network.
func TestWhatIsOnlyShortenedIsNotPutBackWhereThatIsLate(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "old", minute)
		for _, f := range w.fakes {
			f.setDelay(20 * time.Millisecond)
		}
		if old, x := w.getSet(key, "new", 30*time.Millisecond); old != "old" || !x.Done || x.Lock != nil {
			t.Fatalf("%+v", x)
		}
		w.expectHolders(key, "nnn")
		w.settle()
		w.expectHolders(key, "...")
	})
}

func TestWhatIsReplacedForTooShortToBeValidIsNotPutBack(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "old", minute)
		if old, x := w.getSet(key, "new", time.Millisecond); old != "old" || !x.Done || x.Lock != nil {
			t.Fatalf("%+v", x)
		}
		w.expectHolders(key, "nnn")
		w.settle()
		w.expectHolders(key, "...")                                                           // it is over
		if _, x := w.getSet(key, "new", 3*time.Millisecond); !errors.Is(x.Err, ErrTooShort) { // it would be a lock
			t.Fatalf("%+v", x)
		}
	})
}

func TestExecDeletesAndExpires(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "mine", minute)
		x := w.exec(ExecRequest{Keys: []string{key}, Plan: always(Edit{Kind: Expire, TTL: 10 * time.Second})})
		if v := w.read(key); !x.Done || v.TTL > 10*time.Second || v.TTL < 9*time.Second || v.Value != "mine" {
			t.Fatalf("%+v, %+v", x, v)
		}
		x = w.exec(ExecRequest{Keys: []string{key}, Plan: always(Edit{Kind: Put, Value: "more", KeepTTL: true})})
		if v := w.read(key); !x.Done || v.TTL > 10*time.Second || v.Value != "more" {
			t.Fatalf("%+v, %+v", x, v)
		}
		w.fakes[2].stall()
		x = w.exec(ExecRequest{Keys: []string{key}, Plan: always(Edit{Kind: Delete})})
		if !x.Done || x.Lock != nil {
			t.Fatalf("%+v", x)
		}
		w.fakes[2].resume()
		w.settle()
		w.expectHolders(key, "...")
	})
}

// A release that a stalled master never got must not leave there what an Exec put late.
func TestReleaseOfWhatAnExecPutReachesAStalledMaster(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		x := w.exec(ExecRequest{Keys: []string{key}, Plan: func([]View) []Edit {
			w.fakes[2].stall()
			return []Edit{{Kind: Put, Value: "mine", TTL: minute}}
		}})
		if !x.Done {
			t.Fatal(x)
		}
		time.Sleep(200 * time.Millisecond) // now it is known to be late, and the release is not sent to it
		if r := w.release(key, "mine"); !r.Held {
			t.Fatalf("%+v", r)
		}
		w.fakes[2].resume()
		w.settle()
		w.expectHolders(key, "...")
	})
}

// Many take an expired lock by GETSET, through three proxies: each value is seen by one only.
func TestOnlyOneGetsTheOldValue(t *testing.T) {
	for _, n := range []int{3, 5} {
		synctest.Test(t, func(t *testing.T) {
			var worlds []*world
			fakes, ms := newFakes(n)
			full := Config{}.withDefaults()
			for _, f := range fakes {
				f.set(key, "old", minute)
				f.initialise(Members(ms, ""), full.bounds())
			}
			for range 3 {
				e, err := New(Config{}, ms)
				if err != nil {
					t.Fatal(err)
				}
				worlds = append(worlds, &world{Engine: e, t: t, fakes: fakes})
			}
			worlds[0].settle()
			for i, f := range fakes {
				f.setDelay(time.Duration(1+i) * time.Millisecond)
			}
			var mu sync.Mutex
			seen := map[string]int{}
			failed := 0
			var wg sync.WaitGroup
			for i := range 30 {
				wg.Go(func() {
					time.Sleep(time.Duration(i%7) * 300 * time.Microsecond)
					old, x := worlds[i%3].getSet(key, "value "+string(rune('a'+i)), minute)
					mu.Lock()
					defer mu.Unlock()
					if x.Err != nil {
						failed++
						return
					}
					seen[old]++
				})
			}
			wg.Wait()
			for value, times := range seen {
				if times != 1 {
					t.Errorf("%d got %q", times, value)
				}
			}
			t.Logf("%d masters: %d of 30 had an answer", n, 30-failed)
			if len(seen) == 0 || seen["old"] != 1 {
				t.Errorf("%v: nobody, or too many, got the first value", seen)
			}
			worlds[0].settle()
			for _, w := range worlds {
				w.Close()
			}
			time.Sleep(time.Second)
		})
	}
}

func TestALookTellsWhenAMasterWasToDropWhatWasAgreedOn(t *testing.T) {
	agreed := rules.Opinion{Exists: true, Kind: "string", Value: "a"}
	l := &readRound{keys: []agreement{{}, {agreed: agreed, told: []sighting{
		{Told: rules.Told{Opinion: agreed}, master: 2, left: time.Second, ends: 1002},
		{Told: rules.Told{Opinion: agreed}, master: 0, left: -time.Millisecond, ends: 1000}, // never
		{Told: rules.Told{Opinion: rules.Opinion{Exists: true, Kind: "string", Value: "b"}}, master: 1, left: time.Second, ends: 1001},
	}}}}
	for master, want := range []int64{0, 0, 1002, 0} {
		if got := l.ends(master, 1); got != want {
			t.Errorf("master %d: %d, want %d", master, got, want)
		}
	}
}

// A pause at random may be short each time.
func TestAnExecPausesHoweverOftenMastersDiffer(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for i, text := range []string{"a", "b", "c"} {
			w.fakes[i].set(key, text, minute)
		}
		pauses := 0
		w.cfg.Pause = func(most time.Duration) time.Duration {
			if pauses++; most <= 0 {
				t.Errorf("pause %d is at most %v", pauses, most)
			}
			return 2 * time.Millisecond
		}
		var no *NoQuorum
		if _, x := w.getSet(key, "d", minute); !errors.As(x.Err, &no) || pauses < 100 {
			t.Errorf("%+v after %d pauses", x, pauses)
		}
	})
}

// What is left of a TTL counts from the look that has told it, not from the change that keeps it, which may come much later.
func TestATTLThatIsKeptCountsFromTheLook(t *testing.T) {
	e := &Engine{cfg: Config{}.withDefaults()}
	d := &execRound{
		round: round{engine: e, start: 2 * time.Second}, looked: &readRound{round: round{start: time.Second}},
		puts: []*edited{
			{Edit: Edit{KeepTTL: true, TTL: 10 * time.Second}, was: &View{}}, {Edit: Edit{TTL: 10 * time.Second}, was: &View{}},
		},
	}
	for want := time.Second; want <= 2*time.Second; want += time.Second {
		until, _ := d.until()
		if got := until - rules.Validity(10*time.Second, 0, e.cfg.DriftFactor); got != want {
			t.Errorf("it counts from %v, want %v", got, want)
		}
		d.puts = d.puts[1:]
	}
}

// The command names an instant of the master's clock by what that showed when the batch was gathered, which may be a while ago.
func TestATTLThatIsKeptCountsUntilTheBatchIsGathered(t *testing.T) {
	e := &Engine{cfg: Config{}.withDefaults(), engineClock: engineClock{started: time.Now().Add(-time.Hour)}}
	k := &edited{Edit: Edit{KeepTTL: true}, ms: 10_000, ends: make([]int64, 1)}
	d := &execRound{
		round: round{engine: e, program: luaEdit}, looked: &readRound{round: round{start: time.Second}}, exec: &exec{req: ExecRequest{Keys: []string{key}}},
		keys: []*edited{k},
	}
	d.compose(&entry{lane: &lane{clock: laneClock{reading: reading{gathered: 3 * time.Second}}}}, 1_000_000)
	if got := k.ends[0]; got != 1_008_000 {
		t.Errorf("it ends at %d", got)
	}
}
