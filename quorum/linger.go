package quorum

import (
	"runtime"
	"time"
)

// After a batch of fewRequests or fewer, a larger next batch is not worth a wait. lingerMost is the longest wait after larger batches.
const (
	fewRequests = 2
	lingerMost  = 300 * time.Microsecond
)

// linger waits a moment for the clients that have just been answered, because they may ask again: in a larger batch each request
// costs less, here and on the masters. linger expects as many requests as lately, and fewer each time that they do not come.
func (l *lane) linger() {
	l.expected = max(l.answered, l.expected*3/4)
	if l.answered <= fewRequests || l.isFar() { // who comes later goes in the next batch, at once
		return
	}
	runtime.Gosched()
	l.lingering.Reset(min(lingerMost, l.engine.cfg.InstanceTimeout/50))
	for !l.queue.await(l.expected) {
		select {
		case <-l.queue.wake:
			continue
		case <-l.lingering.C:
		}
		break
	}
	l.lingering.Stop()
	l.queue.await(1)
}
