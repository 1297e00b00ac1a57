package quorum

import (
	"time"

	"lockproxy/quorum/vouch"
)

// Proxies of one deployment may have different settings. Each promises validity by its own, and watches the masters' clocks by the
// strictest settings of all, which the marks on the masters tell.

// bounds returns what the locks of a proxy with these settings rest on.
func (c *Config) bounds() vouch.Bounds {
	return vouch.Bounds{Kept: c.kept(c.TTLMax), Grace: c.Grace, DriftFactor: c.DriftFactor, Patience: c.InstanceTimeout}
}

// keepTo makes the engine keep to the bounds that a mark tells, besides those it keeps to already. They never become less strict
// again: a lock of a proxy that is gone may still be held.
func (e *Engine) keepTo(b vouch.Bounds) {
	was := e.bounds.Load()
	//mutant: a quarantine lasts as long as the locks of its proxy
	next := was.And(b)
	switch {
	case next == *was:
		return
	case !e.bounds.CompareAndSwap(was, &next): // another lane was faster
		e.keepTo(b)
		return
	case next.Grace == was.Grace && next.DriftFactor == was.DriftFactor:
		return
	}
	for _, m := range e.masters {
		m.watch.restrict(next.DriftFactor, tolerance(next.Grace))
	}
	e.cfg.Logger.Warn("another proxy has stricter settings: clocks are watched by them until all proxies are stopped and lockproxy init is run",
		"grace", next.Grace, "drift_factor", next.DriftFactor)
}

// A lock's key is kept for 2 × drift + grace longer than the lock is promised. One drift is for clocks that run differently, one
// for what is forgiven of steps over time (vouch.Clock). What is left covers what may go unnoticed of steps:
//
//	tolerance + 2 × uncertainty = (1/5 + 2 × 2/5) × (grace + clock floor)
//
// That is one uncertainty for what the batch that set the key cannot tell, one for what the batch that does not find it cannot tell, and
// a reserve.

// Uncertainty is by how much a key may end too early, as far as one batch can tell, so that the batch still has a vote at once.
func Uncertainty(grace time.Duration) time.Duration { return (grace + clockFloor) * 2 / 5 }

func (e *Engine) uncertainty() time.Duration { return Uncertainty(e.bounds.Load().Grace) }

// tolerance is how far a master's clock may step, in either direction, before that counts as a jump.
func tolerance(grace time.Duration) time.Duration { return (grace + clockFloor) / 5 }
