package quorum

import (
	"runtime"
	"time"
)

// fewRequests are too few in a batch to be worth waiting for the next to be larger, and lingerMost is how long that is worth.
const (
	fewRequests = 2
	lingerMost  = 300 * time.Microsecond
)

// linger waits a moment for those who have just been answered, who may have more to ask: a larger batch costs each of them
// less, and the masters too. It expects as many as lately, and less each time that they do not come.
func (l *lane) linger() {
	l.expected = max(l.answered, l.expected*3/4)
	if l.answered <= fewRequests {
		return
	}
	runtime.Gosched()
	l.lingering.Reset(min(lingerMost, l.engine.cfg.InstanceTimeout/50))
	for !l.await(l.expected) {
		select {
		case <-l.wake:
			continue
		case <-l.lingering.C:
		}
		break
	}
	l.lingering.Stop()
	l.await(1)
}

// await says whether enough requests wait, or an undo, which waits for no others. If not, the loop is woken as soon as enough
// do.
func (l *lane) await(enough int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enough = enough
	return len(l.queue) >= enough || len(l.undos) > 0 || l.closed
}
