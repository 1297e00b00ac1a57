package main

import (
	"context"
	"os"
	"runtime"
	"sync"
	"time"
)

// A proxy mostly waits for the kernel, and its goroutines hand work on to each other. On one processor, handing on costs no wake-ups of
// threads; two processors need up to a quarter more processor time for the same work. So the proxy begins with one processor, and adds a
// processor when all have been too busy for a while. The proxy waits so long because a change stops all goroutines for a moment.
const (
	lookEvery = 250 * time.Millisecond
	inRow     = 5    // looks in a row that must agree
	tooBusy   = 0.9  // of all processors: if more is used, the proxy gets one more
	wouldDo   = 0.85 // of one processor fewer: if less is used, the proxy gets one fewer
)

// processors is how many processors the proxy has, and the findings of the latest looks at their use.
type processors struct {
	now, most int
	many, few int // looks in a row in which one more was needed, or one fewer was enough

	at   time.Time // of the latest look
	used time.Duration
}

// look takes the processor time used until at, and returns how many processors the process is to have.
func (p *processors) look(at time.Time, used time.Duration) int {
	busy := float64(used-p.used) / float64(max(at.Sub(p.at), 1)) // processors
	p.at, p.used = at, used
	if p.many++; busy <= tooBusy*float64(p.now) || p.now == p.most {
		p.many = 0
	}
	if p.few++; busy >= wouldDo*float64(p.now-1) {
		p.few = 0
	}
	switch inRow {
	case p.many:
		p.now, p.many = p.now+1, 0
	case p.few:
		p.now, p.few = p.now-1, 0
	}
	return p.now
}

// startProcessors lets the number of processors follow the load, up to Go's own choice, unless the environment sets GOMAXPROCS.
func (p *process) startProcessors() error {
	most := runtime.GOMAXPROCS(0)
	user, system := processorTime()
	if os.Getenv("GOMAXPROCS") != "" || user+system == 0 || most == 1 {
		return nil
	}
	ps := processors{now: 1, most: most, at: time.Now(), used: user + system}
	runtime.GOMAXPROCS(ps.now)
	done := make(chan struct{})
	var loop sync.WaitGroup
	loop.Go(func() { ps.follow(done) })
	p.onStop(func(context.Context) {
		close(done)
		loop.Wait()
		runtime.SetDefaultGOMAXPROCS()
	})
	return nil
}

// follow ends when done is closed.
func (p *processors) follow(done <-chan struct{}) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-done:
			return
		}
		had := p.now
		user, system := processorTime()
		if n := p.look(time.Now(), user+system); n != had {
			runtime.GOMAXPROCS(n)
		}
	}
}
