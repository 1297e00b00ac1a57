package quorum

import (
	"fmt"
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
// for the steps that vouch.Clock forgives over time. What is left covers what a look at a clock may miss:
//
//	tolerance + 2 × uncertainty = (1/5 + 2 × 2/5) × (grace + clock floor)
//
// That is one step within the tolerance, and the inexactness of two observations.

// Uncertainty is how inexact what is known of a master's clock may be: how wide the span that its offset is in. A round trip must
// not take longer.
func Uncertainty(grace time.Duration) time.Duration { return (grace + clockFloor) * 2 / 5 }

func (e *Engine) uncertainty() time.Duration { return Uncertainty(e.bounds.Load().Grace) }

// whoseGrace ends the advice to raise grace: what else must be done, if another proxy's lower grace is the one that counts.
func (e *Engine) whoseGrace() string {
	if grace := e.bounds.Load().Grace; grace < e.cfg.Grace {
		return fmt.Sprintf(" in every proxy (one has had %v), stop all, wait for the longest lock, run lockproxy init, and start them", grace)
	}
	return ""
}

// tolerance is how far a master's clock may step, in either direction, before that counts as a jump.
func tolerance(grace time.Duration) time.Duration { return (grace + clockFloor) / 5 }
