package quorum

import (
	"context"
	"sync/atomic"
	"time"

	"lockproxy/quorum/vouch"
)

// A warden is what looks after the masters beside the rounds: it sends heartbeats, finds out whose clock it was that
// jumped, and sees quarantines through. It only asks; lanes carry its questions and act on the answers.
type warden struct {
	engine  *Engine
	wake    chan struct{}
	alarmed atomic.Int64 // when a jump was seen that nobody has judged; 0 if none
	beat    instant      // when the next heartbeat is due
	names   instant      // when names are to be compared next
	tender  tender
}

const (
	// heartbeatEvery bounds how long a broken idle connection, or a setting that costs a master its vote, stays unnoticed.
	heartbeatEvery = 500 * time.Millisecond
	wardenEvery    = 100 * time.Millisecond
	// alarmedEvery is how often it looks whether the masters have been heard, while a jump awaits judgement.
	alarmedEvery = 10 * time.Millisecond
)

func newWarden(e *Engine) *warden {
	return &warden{engine: e, wake: make(chan struct{}, 1), beat: heartbeatEvery, names: heartbeatEvery, tender: tender{engine: e}}
}

// alarm tells the warden that a clock jumped.
func (w *warden) alarm() {
	if !w.alarmed.CompareAndSwap(0, int64(max(w.engine.now(), 1))) {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *warden) run(ctx context.Context) {
	next := time.NewTimer(wardenEvery)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-w.wake:
			w.engine.eachLane((*lane).heartbeat)
		case <-ctx.Done():
			return
		}
		w.tick()
		if w.alarmed.Load() != 0 {
			next.Reset(alarmedEvery)
		} else {
			next.Reset(wardenEvery)
		}
	}
}

func (w *warden) tick() {
	now := w.engine.now()
	if now >= w.beat {
		w.beat = now + heartbeatEvery
		w.engine.eachLane(func(l *lane) { l.nudge(w.engine.waited()) })
	}
	if now >= w.names && w.engine.cfg.Names != (Names{}) {
		w.names = now + namesEvery/2 + w.engine.cfg.Pause(namesEvery)
		w.engine.compareNames()
	}
	w.judge(now)
	w.engine.eachLane(func(l *lane) { l.recovery.seeThrough(now) })
	w.tender.look()
}

// judge finds out, when all masters that are there have been heard since the alarm, whether their clocks jumped or this
// process stood still (rule 8).
func (w *warden) judge(now instant) {
	at := instant(w.alarmed.Load())
	if at == 0 {
		return
	}
	e := w.engine
	bounds := e.bounds.Load()
	jumps := make([]*vouch.Span, len(e.masters))
	missing := false
	for i, m := range e.masters {
		jumps[i] = m.watch.jumpSince(at, e.uncertainty())
		missing = missing || jumps[i] == nil && m.isConnected()
	}
	if missing && now-at < e.cfg.InstanceTimeout {
		return // until it looks again
	}
	//mutant: jumps that differ are a standstill
	by, own, sure := vouch.Standstill(jumps, bounds.DriftFactor, tolerance(bounds.Grace))
	if !sure { // look again later; until then no vote of the masters that jumped counts
		return
	}
	w.alarmed.Store(0)
	//mutant: a proxy that slept quarantines all masters
	if own {
		w.putRight(at, by)
		return
	}
	for _, m := range e.masters {
		switch by, ahead := m.watch.convict(); {
		case ahead > 0:
			//mutant: a clock that was judged is marked at the next heartbeat
			e.askMaster(m) // so that it is marked before a proxy that knows nothing of its clock meets it
		case by < 0: // its keys live longer now, which costs nobody a lock
			e.cfg.Logger.Warn("a clock jumped backwards", "master", m.Addr(), "by", -by)
		}
	}
}

// putRight adds to the engine's clock the time for which this process stood still. Compared with that clock, the masters' clocks
// have not jumped, except one that has jumped by itself besides. The engine's clock is changed before the watches are: whoever sees
// that a watch goes by the new clock must not read the old one.
func (w *warden) putRight(at instant, by time.Duration) {
	e := w.engine
	e.cfg.Logger.Warn("this process stood still: attempts that were under way have failed", "for", by)
	for _, m := range e.masters {
		m.watch.ignore()
	}
	put := max(by, 0)
	//mutant: the clock is put right after the masters' are known by it
	e.slept.Add(int64(put))
	now := e.now()
	for _, m := range e.masters {
		if ahead := m.watch.acquit(at, by, put, now); ahead > 0 {
			e.askMaster(m) // as in judge
		}
	}
}

// askMaster makes a master say something on all its lanes.
func (e *Engine) askMaster(m *master) {
	e.eachLane(func(l *lane) {
		if l.master == m {
			l.heartbeat()
		}
	})
}
