package quorum

import (
	"fmt"
	"time"

	"lockproxy/quorum/vouch"
)

// Proxies may have other settings than each other. Each promises what its own locks can bear, and watches the masters as
// strictly as any of them must, by what the marks on the masters tell.

// bounds returns what the locks of a proxy with these settings rest on.
func (c *Config) bounds() vouch.Bounds {
	return vouch.Bounds{Kept: c.kept(c.TTLMax), Grace: c.Grace, DriftFactor: c.DriftFactor, Patience: c.InstanceTimeout}
}

// keepTo makes the engine keep to what a mark tells, too. It never becomes less strict again: a lock of a proxy that is gone may
// still be held.
func (e *Engine) keepTo(b vouch.Bounds) {
	was := e.bounds.Load()
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

// A lock's key is kept for 2 × drift + grace longer than it is promised. The drifts are for clocks that drift and for steps
// that are tolerated again; what else may go unnoticed (vouch.Clock) is the tolerance once, and the uncertainty of two
// observations: together the grace and the clock floor.

// uncertainty is how exactly the offset of a master's clock must be known.
func (e *Engine) uncertainty() time.Duration { return (e.bounds.Load().Grace + clockFloor) * 2 / 5 }

// whoseGrace says what raising grace takes where it is another proxy's that counts.
func (e *Engine) whoseGrace() string {
	if grace := e.bounds.Load().Grace; grace < e.cfg.Grace {
		return fmt.Sprintf(" in every proxy (one has had %v), stop all, wait for the longest lock, run lockproxy init, and start them", grace)
	}
	return ""
}

// tolerance is how much of steps is tolerated.
func tolerance(grace time.Duration) time.Duration { return (grace + clockFloor) / 5 }
