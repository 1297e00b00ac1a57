package main

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// A vigil tells the log when a quorum can vote for the first time, when no quorum can any more, and when a quorum can again. If no quorum
// can vote in the time that connecting may take, the vigil tells the log why.
type vigil struct {
	log      *slog.Logger
	patience time.Duration // how long a change must last before the log is told
	begun    bool          // a quorum could vote once
	told     bool          // the log has been told that no quorum can vote
	lost     time.Time     // since when no quorum can vote, if told
	since    time.Time     // since when the truth differs from told, or zero
}

const (
	lookFirst = 20 * time.Millisecond  // how often the vigil looks until a quorum can vote for the first time
	lookLater = 200 * time.Millisecond // and from then on
	lostAfter = time.Second            // patience from then on
)

func (p *process) watchForQuorum() {
	ctx, cancel := context.WithCancel(context.Background())
	p.onStop(func(context.Context) { cancel() })
	v := &vigil{log: p.log, patience: p.cfg.DialTimeout + p.cfg.InstanceTimeout}
	a := &attempting{log: p.log}
	p.serves.Go(func() {
		tick := time.NewTicker(lookFirst)
		defer tick.Stop()
		for ctx.Err() == nil {
			now := time.Now()
			if v.look(now, p.engine.Ready()) {
				tick.Reset(lookLater)
			}
			if p.started != nil && (v.begun || v.told) {
				p.started()
			}
			a.look(now, v.told, p.engine.Stats(), p.engine.Masters())
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
}

// look takes why no quorum can vote now; nil if a quorum can. look returns true when a quorum can vote for the first time.
func (v *vigil) look(now time.Time, lack error) bool {
	switch {
	case lack == nil && !v.begun:
		v.log.Info("ready for clients: a quorum can vote")
		*v = vigil{log: v.log, patience: lostAfter, begun: true}
		return true
	case v.told == (lack != nil):
		v.since = time.Time{}
	case v.since.IsZero():
		v.since = now
	case now.Sub(v.since) < v.patience:
	case v.told:
		v.log.Info("a quorum can vote again", "after", v.since.Sub(v.lost).Round(time.Millisecond))
		v.told, v.since = false, time.Time{}
	default:
		v.told, v.lost, v.since = true, v.since, time.Time{}
		text := "no quorum can vote: clients get NOQUORUM"
		if !v.begun {
			text = "listening, but no quorum can vote yet"
		}
		v.log.Warn(text, "cause", strings.TrimPrefix(lack.Error(), "NOQUORUM "))
	}
	return false
}
