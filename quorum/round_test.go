package quorum

import (
	"runtime"
	"sync"
	"testing"

	"lockproxy/quorum/admission"
)

// Another round on one of its keys comes before it in all lanes, or after it: the last lane keeps it waiting while it is being pushed.
func TestARoundIsPushedWithTheMutexOfEachKeyHeld(t *testing.T) {
	e := &Engine{cfg: Config{}.withDefaults()}
	e.engineClock.start(e.cfg.Slept)
	e.databases.init(e)
	e.sweeper, e.load = newSweeper(e), admission.New(e.cfg.InstanceTimeout)
	set := make(laneSet, 3)
	for i := range set {
		e.masters = append(e.masters, &master{Master: newFake(i)})
		set[i] = newLane(e, e.masters[i], 0, nil)
	}
	e.databases.all[0].open.Store(&set)
	pushed := func(l *lane) int {
		l.queue.mu.Lock()
		defer l.queue.mu.Unlock()
		return len(l.queue.requests)
	}
	for n, names := range [][]string{{"k"}, {"j", "k"}} {
		set[2].queue.mu.Lock()
		var begun sync.WaitGroup
		begun.Go(func() {
			p := &pollRound{}
			beginAll(e, p, 0, names, nil)
		})
		for pushed(set[1]) == n {
			runtime.Gosched()
		}
		for _, name := range names {
			if mu := &e.order[hash(name)%uint32(len(e.order))]; mu.TryLock() {
				t.Errorf("of %q: another round on %q would come between", names, name)
				mu.Unlock()
			}
		}
		set[2].queue.mu.Unlock()
		begun.Wait()
	}
}
