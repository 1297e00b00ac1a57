package main

import (
	"context"
	"os"
	"runtime"
	"sync"
	"time"
)

// A proxy mostly waits for the kernel, and its goroutines hand work on to each other. On one processor that costs no
// wake-ups of threads, and what is ready gathers into larger batches; more processors make the same work dearer. So it
// begins with one, and takes another when those it has do not suffice.
const (
	lookEvery = 250 * time.Millisecond
	muchUsed  = 0.85 // of the processors there are: one more
	fewUsed   = 0.6  // of one fewer: that would do
	fewLooks  = 20   // in a row that find so; every change stops all goroutines for a moment
)

// processors is how many processors the proxy has, and what the looks at its use of them have found.
type processors struct {
	now, most int
	few       int // looks in a row that found one fewer to be enough

	at   time.Time // of the latest look
	used time.Duration
}

// look is told how much processor time the process has used until then, and returns how many processors it is to have.
func (p *processors) look(at time.Time, used time.Duration) int {
	busy := float64(used-p.used) / float64(max(at.Sub(p.at), 1)) // processors
	p.at, p.used = at, used
	if p.now > 1 && busy < fewUsed*float64(p.now-1) {
		p.few++
	} else {
		p.few = 0
	}
	switch {
	case busy > muchUsed*float64(p.now):
		p.now = min(p.now+1, p.most)
	case p.few == fewLooks:
		p.now, p.few = p.now-1, 0
	}
	return p.now
}

// startProcessors has the number of processors follow the load, up to what Go would have taken. Who sets GOMAXPROCS has
// chosen it.
func (p *process) startProcessors() error {
	most := runtime.GOMAXPROCS(0)
	used, ok := processorTime()
	if os.Getenv("GOMAXPROCS") != "" || !ok || most == 1 {
		return nil
	}
	ps := processors{now: 1, most: most, at: time.Now(), used: used}
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
		used, _ := processorTime()
		if n := p.look(time.Now(), used); n != had {
			runtime.GOMAXPROCS(n)
		}
	}
}
