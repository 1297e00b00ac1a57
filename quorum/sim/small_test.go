package sim

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Small worlds: no seed decides here. Every sequence of so many actions of a small alphabet (small_actions_test.go) is tried, each in
// a world of its own with three masters, two proxies and two clients.
//
// Of sequences that are alike one is tried. Masters, proxies and clients have no names: those that are met first are called the first.
// Faults that strike different masters, one right after the other, come in the order of these. Two actions that only let time pass
// do not follow each other. What cannot be done, or would change nothing, is left out: each verb says when. So is a last action that
// is no client's.

var (
	depthFlag   = flag.Int("depth", 0, "of how many actions the sequences are that are all tried; 0 is as many as a test has time for")
	actionsFlag = flag.String("actions", "", "do these of an alphabet, with a trace")
)

func TestSmallWorlds(t *testing.T) {
	for i := range alphabets {
		a := &alphabets[i]
		t.Run(a.name, func(t *testing.T) {
			switch {
			case *actionsFlag != "":
				a.replay(t, strings.Split(*actionsFlag, ", "))
			case *depthFlag > 0:
				a.explore(t, *depthFlag)
			case raceEnabled: // it takes several times as long
				a.explore(t, a.depth-1)
			default:
				a.explore(t, a.depth)
			}
		})
	}
}

// explore tries all sequences of so many actions, until one has a finding.
func (a *alphabet) explore(t *testing.T, depth int) {
	all, began, n, sum := a.actions(), time.Now(), 0, Counts{}
	for chosen := make([]int, depth); chosen != nil; n++ {
		w := a.play(t, nil, func(w *smallWorld) { w.walk(all, chosen) })
		if len(w.checker.findings) > 0 {
			t.Fatalf("world %d: make sim-small ALPHABET=%s ACTIONS=%q: %v", n+1, a.name, w.told(), w.checker.findings[0])
		}
		sum.Add(w.checker.counts)
		chosen = w.next(depth)
	}
	t.Logf("%d worlds of %d actions, chosen of %d, in %v: %+v", n, depth, len(all), time.Since(began).Round(time.Millisecond), sum)
	if sum.Granted*4 < sum.Attempts {
		t.Errorf("only %d of %d attempts were granted: the worlds are too broken to show anything", sum.Granted, sum.Attempts)
	}
}

// replay tries one sequence, and prints all that happens.
func (a *alphabet) replay(t *testing.T, names []string) {
	all := a.actions()
	w := a.play(t, func(line string) { fmt.Println(line) }, func(w *smallWorld) {
		for _, name := range names {
			i := slices.IndexFunc(all, func(x action) bool { return x.String() == name })
			if i < 0 {
				t.Errorf("there is no action %q in the alphabet %s", name, a.name)
				return
			}
			w.act(all[i])
		}
	})
	for _, f := range w.checker.findings {
		t.Error(f)
	}
}

// A smallWorld is one in which only what is chosen happens.
type smallWorld struct {
	*World
	hands  []*hand
	done   []action
	chosen []int // by action: which of all it was
	others []int // by action: which of all may be chosen next in its place; -1 if none
	aged   bool  // a master has an older copy of its data
}

// play makes a world, lets f act in it, and waits until what was broken has come together.
func (a *alphabet) play(t *testing.T, trace func(string), f func(w *smallWorld)) *smallWorld {
	t.Helper()
	var w *smallWorld
	synctest.Test(t, func(*testing.T) {
		w = &smallWorld{World: newWorld(a.plan(), nil, trace)}
		over := make(chan struct{})
		var turning sync.WaitGroup
		turning.Go(func() { w.turn(over) })
		w.sleep(10 * time.Millisecond) // the first connections
		for i := range w.plan.Clients {
			w.hands = append(w.hands, a.newHand(w.World, i))
		}
		f(w)
		w.do(w.mendAll)
		w.clients.Wait()
		settle := beat
		if !a.forgets { // until all promises are over, or nothing may be left of what failed
			settle = min(a.ttl+50*ms, 2800*ms)
		}
		w.sleep(settle)
		w.do(w.checker.orphans)
		for _, p := range w.proxies {
			w.do(p.stop)
			w.sleep(time.Millisecond)
		}
		w.closing.Wait()
		close(over)
		turning.Wait()
	})
	return w
}

// walk does the actions that were chosen, or where one makes no sense the next that does, until there is none.
func (w *smallWorld) walk(all []action, chosen []int) {
	for _, i := range chosen {
		var can []int
		w.do(func() {
			for ; i < len(all) && len(can) < 2; i++ {
				if w.makesSense(all[i], len(chosen)) {
					can = append(can, i)
				}
			}
		})
		if len(can) == 0 {
			return
		}
		w.chosen, w.others = append(w.chosen, can[0]), append(w.others, append(can, -1)[1])
		w.act(all[can[0]])
	}
}

// next returns what is to be chosen after this world; nil if it was the last.
func (w *smallWorld) next(depth int) []int {
	for i := len(w.others) - 1; i >= 0; i-- {
		if w.others[i] >= 0 {
			return append(append(w.chosen[:i:i], w.others[i]), make([]int, depth-i-1)...)
		}
	}
	return nil
}

// beat is how long it takes until everybody has done what an action leads to, if nothing is held back.
const beat = 3 * time.Millisecond

func (w *smallWorld) act(x action) {
	w.done = append(w.done, x)
	w.do(func() {
		w.logf("ACTION", "%v", x)
		x.do(w, x)
	})
	w.sleep(max(beat, x.lasts))
}

// makesSense says that an action can be the next, and makes no sequence that is like another. It is called with mu held.
func (w *smallWorld) makesSense(x action, depth int) bool {
	last, met := action{}, [3]int{-1, -1, -1}
	for _, last = range w.done {
		met = [3]int{max(met[0], last.client), max(met[1], last.proxy), max(met[2], last.master)}
	}
	switch {
	case x.client > met[0]+1 || x.proxy > met[1]+1 || x.master > met[2]+1:
		return false
	case len(w.done) == depth-1 && x.client < 0:
		return false
	case x.lasts > 0 && (len(w.done) == 0 || last.lasts > 0):
		return false
	case len(w.done) > 0 && last.client < 0 && 0 <= x.master && x.master < last.master:
		return false
	}
	return x.can == nil || x.can(w, x)
}

// told names what was done, as it can be done again.
func (w *smallWorld) told() string {
	var names []string
	for _, x := range w.done {
		names = append(names, x.String())
	}
	return strings.Join(names, ", ")
}
