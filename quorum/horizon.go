package quorum

import (
	"time"

	"lockproxy/quorum/masters"
)

// Each master carries a horizon: a key that lives as long as any lock granted there (rule 7). A batch that may set a key
// which would outlive the horizon begins by extending the horizon. Both keys live by the master's clock, so they are compared by it.

const (
	// So that extensions are rare, each goes beyond the lock's time: by one headRoom-th of that time, and at least by leastHeadRoom.
	// Quarantines are longer by as much.
	headRoom      = 4
	leastHeadRoom = time.Second
)

// A horizon is a lane's knowledge of its master's horizon. It belongs to the lane's loop.
type horizon struct {
	clock     *laneClock
	until     int64        // the horizon lasts at least so long, ms of the master's clock; 0 if nothing is known in this epoch
	ends      ends         // the knowledge over all connections
	extension masters.Call // at the head of the batch, if the batch needs it
}

// extend appends the extension to calls, which begin a batch, if the extension is needed. keeps is for how long the longest key lives
// that the batch may set.
func (h *horizon) extend(calls []*masters.Call, keeps time.Duration) []*masters.Call {
	h.extension = masters.Call{}
	if keeps == 0 {
		return calls
	}
	// The batch may take as long as a vote may take, and the clock may run fast.
	since := h.clock.now - h.clock.heard + h.clock.engine.cfg.InstanceTimeout.Milliseconds()
	need := keeps.Milliseconds() + since
	if h.clock.heard+need <= h.until {
		return calls
	}
	ms := need + max(need/headRoom, leastHeadRoom.Milliseconds())
	h.extension = masters.Call{Args: luaHorizon.whole([]string{horizonKey}, ms)}
	return append(calls, &h.extension)
}

// learn takes the answer to the extension: the horizon's remaining TTL, ms. The answer was true at some moment after the end of the
// batch before, and after this batch was sent. Of these two lower bounds, by the master's clock, the smaller one is used: the
// clock may have been set back since the batch before. shows is the clock at the end of this batch.
func (h *horizon) learn(p *proof, shows, epoch int64) {
	if h.extension.Args == nil {
		return
	}
	if ms, ok := h.extension.Reply.(int64); ok {
		sent := shows - (p.received - p.sent).Milliseconds() - 1
		//mutant: a horizon is known by a clock that was set back since
		h.until = min(h.clock.heard, sent) + ms
		h.ends.learn(h.until, epoch)
	}
}

// covers says that the horizon lasts as long as a key that the master keeps from now on.
func (h *horizon) covers(keeps time.Duration) bool {
	return h.clock.heard+keeps.Milliseconds() <= h.until
}
