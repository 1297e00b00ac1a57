package main

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// A vigil tells the log whether a quorum can vote: when one can for the first time and, if that takes longer than connecting
// may, what each master lacks; and when none can any more, and one can again.
type vigil struct {
	log      *slog.Logger
	patience time.Duration // before it is said that none can
	begun    bool          // one could
	lost     time.Time     // since then none can, or zero
	told     bool          // of that
}

const (
	lookFirst = 20 * time.Millisecond  // how often it looks until a quorum can vote for the first time
	lookLater = 200 * time.Millisecond // and from then on
	lostAfter = time.Second            // how long no quorum must have been able to vote, later, before the log says so
)

func (p *process) watchForQuorum() {
	ctx, cancel := context.WithCancel(context.Background())
	p.onStop(func(context.Context) { cancel() })
	v := &vigil{log: p.log, patience: p.cfg.DialTimeout + p.cfg.InstanceTimeout}
	p.serves.Go(func() {
		tick := time.NewTicker(lookFirst)
		defer tick.Stop()
		for ctx.Err() == nil {
			if v.look(time.Now(), p.engine.Ready()) {
				tick.Reset(lookLater)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
}

// look takes why no quorum can vote now, nil if one can. It returns true when one can for the first time.
func (v *vigil) look(now time.Time, lack error) bool {
	switch {
	case lack == nil && !v.begun:
		v.log.Info("ready for clients: a quorum can vote")
		*v = vigil{log: v.log, patience: lostAfter, begun: true}
		return true
	case lack == nil && v.told:
		v.log.Info("a quorum can vote again", "after", now.Sub(v.lost).Round(time.Millisecond))
		v.told = false
	}
	switch {
	case lack == nil:
		v.lost = time.Time{}
	case v.lost.IsZero():
		v.lost = now
	case !v.told && now.Sub(v.lost) >= v.patience:
		v.told = true
		text := "no quorum can vote: clients get NOQUORUM"
		if !v.begun {
			text = "listening, but no quorum can vote yet"
		}
		v.log.Warn(text, "cause", strings.TrimPrefix(lack.Error(), "NOQUORUM "))
	}
	return false
}
