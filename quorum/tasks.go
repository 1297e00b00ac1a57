package quorum

import (
	"context"
	"sync"
	"sync/atomic"
)

// tasks are the goroutines of an engine: the lanes, the monitor, the sweepers, the answer clock, and what spawn runs. Close waits for all.
type tasks struct {
	ctx     context.Context // ends when the engine is closed, and has settled
	cancel  context.CancelFunc
	loops   sync.WaitGroup
	mu      sync.Mutex  // held to set closing, and while a goroutine is begun
	closing atomic.Bool // nothing new is begun
}

func (t *tasks) start() { t.ctx, t.cancel = context.WithCancel(context.Background()) }

// spawn runs f on a goroutine that Close waits for. If the engine is closing, spawn returns false, and does not run f.
func (t *tasks) spawn(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing.Load() {
		return false
	}
	t.loops.Go(f)
	return true
}

// refuse lets nothing new begin. It returns false if that has been called before.
func (t *tasks) refuse() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.closing.Swap(true)
}
