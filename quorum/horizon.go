package quorum

import (
	"time"

	"lockproxy/quorum/masters"
)

// Each master carries a horizon: a key that lives as long as any lock granted there (rule 7). A batch that may set a key
// which would outlive it begins by extending it. Both live by the master's clock, so they are compared by it.

const (
	// The horizon is extended beyond a lock's time by one headRoom-th of that, at least by leastHeadRoom, so that this is
	// rare. It lengthens quarantines as much.
	headRoom      = 4
	leastHeadRoom = time.Second
)

// extendHorizon puts the extension at the head of the batch, if it is needed.
func (l *lane) extendHorizon() {
	l.keeps = 0
	for _, r := range l.batch {
		switch r := r.(type) {
		case *entry:
			l.keeps = max(l.keeps, r.round.keeps)
		case *repair:
			l.keeps = max(l.keeps, r.edit.keeps)
		}
	}
	l.extension.Args = nil
	if l.keeps == 0 {
		return
	}
	// The batch may take as long as a vote may take, and the clock may run fast.
	since := l.clockNow - l.link.clock + l.engine.cfg.InstanceTimeout.Milliseconds()
	need := l.keeps.Milliseconds() + since
	if l.link.clock+need <= l.link.horizon {
		return
	}
	ms := need + max(need/headRoom, leastHeadRoom.Milliseconds())
	l.extension = masters.Call{Args: luaHorizon.whole([]string{horizonKey}, ms)}
	l.calls = append(l.calls, &l.extension)
}

// learnHorizon takes the answer: for how long the horizon lasted at a moment after the batch before this one, and after this
// one was sent. shows is the clock at the end of this batch. The earlier of the two moments counts: the clock may have been
// set back since the batch before.
func (l *lane) learnHorizon(shows int64) {
	if l.extension.Args == nil {
		return
	}
	if ms, ok := l.extension.Reply.(int64); ok && l.extension.Err == nil {
		sent := shows - (l.proof.received - l.proof.sent).Milliseconds() - 1
		l.link.horizon = min(l.link.clock, sent) + ms
	}
}
