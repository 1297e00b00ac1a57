package quorum

import (
	"time"

	"lockproxy/quorum/rules"
	"lockproxy/quorum/vouch"
)

// Proxies of one deployment may have different settings. Each promises validity by its own, and watches the masters' clocks by the
// strictest settings of all, which the marks on the masters tell.

// bounds returns the bounds on which the locks of a proxy with these settings rest.
func (c *Config) bounds() vouch.Bounds {
	return vouch.Bounds{Kept: c.kept(c.TTLMax), Grace: c.Grace, DriftFactor: c.DriftFactor, Patience: c.InstanceTimeout}
}

// keepTo makes the engine keep to the bounds of a mark, besides its present bounds. Bounds never become less strict again: a lock of a
// proxy that is gone may still be held.
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
// for steps that are forgiven over time (vouch.Clock). The rest covers steps that may go unnoticed:
//
//	tolerance + 2 × uncertainty = (1/5 + 2 × 2/5) × (grace + clock floor)
//
// One uncertainty is for steps that the batch which set the key cannot tell, one for steps that the batch which does not find the key
// cannot tell. The rest is a reserve.

// Uncertainty is by how much a key may end too early, as far as one batch can tell, if the batch is to have a vote at once.
func Uncertainty(grace time.Duration) time.Duration { return (grace + rules.ClockFloor) * 2 / 5 }

func (e *Engine) uncertainty() time.Duration { return Uncertainty(e.bounds.Load().Grace) }

// tolerance is how far a master's clock may step, in either direction, before that counts as a jump.
func tolerance(grace time.Duration) time.Duration { return (grace + rules.ClockFloor) / 5 }
