package quorum

import (
	"time"

	"lockproxy/quorum/masters"
)

// Each master carries a horizon: a key that lives as long as any lock granted there (rule 7). A batch that may set a key
// which would outlive it begins by extending it. Both live by the master's clock, so they are compared by it.

const (
	// So that extensions are rare, each goes beyond the lock's time: by one headRoom-th of that, and at least by leastHeadRoom.
	// Quarantines are longer by as much.
	headRoom      = 4
	leastHeadRoom = time.Second
)

// extendHorizon puts the extension at the head of the batch, if it is needed.
func (l *lane) extendHorizon() {
	l.keeps = 0
	for _, r := range l.batch {
		//mutant: the horizon is never extended
		l.keeps = max(l.keeps, r.keeps())
	}
	l.extension = masters.Call{}
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

// learnHorizon takes the answer to the extension: the horizon's remaining TTL, ms. It was true at some moment after the end of the
// batch before, and after this batch was sent. Of these two lower bounds, by the master's clock, the smaller one is used: the
// clock may have been set back since the batch before. shows is the clock at the end of this batch.
func (l *lane) learnHorizon(shows int64) {
	if l.extension.Args == nil {
		return
	}
	if ms, ok := l.extension.Reply.(int64); ok {
		sent := shows - (l.proof.received - l.proof.sent).Milliseconds() - 1
		//mutant: a horizon is known by a clock that was set back since
		l.link.horizon = min(l.link.clock, sent) + ms
		l.ends.learn(l.link.horizon, l.link.epoch)
	}
}
