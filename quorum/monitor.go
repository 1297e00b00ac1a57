package quorum

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"lockproxy/quorum/vouch"
)

// A monitor looks after the masters beside the rounds: it sends heartbeats, finds out whose clock jumped, and sees quarantines
// through. The monitor only asks; lanes carry its questions and act on the answers.
type monitor struct {
	engine    *Engine
	wake      chan struct{}
	suspected atomic.Int64 // when a jump was seen that is not explained yet; 0 if none was
	beat      instant      // when the next heartbeat is due
	names     instant      // when names are to be compared next
	tender    tender
}

const (
	// heartbeatEvery bounds how long a broken idle connection, or a setting that costs a master its vote, stays unnoticed.
	heartbeatEvery = 500 * time.Millisecond
	monitorEvery   = 100 * time.Millisecond
	// suspectEvery is how often the monitor looks whether the masters have been heard, while a jump is not explained.
	suspectEvery = 10 * time.Millisecond
)

func newMonitor(e *Engine) *monitor {
	return &monitor{engine: e, wake: make(chan struct{}, 1), beat: heartbeatEvery, names: heartbeatEvery, tender: tender{engine: e}}
}

// suspectClock tells the monitor that a clock jumped: a master's, or ours.
func (m *monitor) suspectClock() {
	if !m.suspected.CompareAndSwap(0, int64(max(m.engine.now(), 1))) {
		return
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *monitor) run(ctx context.Context) {
	next := time.NewTimer(monitorEvery)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-m.wake:
			m.engine.databases.each((*lane).heartbeat)
		case <-ctx.Done():
			return
		}
		m.tick()
		if m.suspected.Load() != 0 {
			next.Reset(suspectEvery)
		} else {
			next.Reset(monitorEvery)
		}
	}
}

func (m *monitor) tick() {
	now := m.engine.now()
	if now >= m.beat {
		m.beat = now + heartbeatEvery
		m.engine.databases.each(func(l *lane) { l.nudge(m.engine.waited()) })
	}
	if now >= m.names && m.engine.cfg.Names != (Names{}) {
		m.names = now + namesEvery/2 + m.engine.cfg.Pause(namesEvery)
		m.engine.names.compare(m.engine)
	}
	m.explain(now)
	m.engine.databases.each(func(l *lane) { l.recovery.seeThrough(now) })
	m.tender.look()
}

// explain finds out, when all connected masters have been heard since a jump was seen, whether their clocks jumped or this
// process stood still (rule 8).
func (m *monitor) explain(now instant) {
	at := instant(m.suspected.Load())
	if at == 0 {
		return
	}
	e := m.engine
	bounds := e.bounds.Load()
	jumps := make([]*vouch.Span, len(e.masters))
	missing := false
	for i, master := range e.masters {
		jumps[i] = master.watch.jumpSince(at, e.uncertainty())
		missing = missing || jumps[i] == nil && master.isConnected()
	}
	if missing && now-at < e.cfg.InstanceTimeout {
		return // until the next look
	}
	//mutant: jumps that differ are a standstill
	by, own, sure := vouch.Standstill(jumps, bounds.DriftFactor, tolerance(bounds.Grace))
	if !sure { // until a later look, no vote of the masters that jumped counts
		return
	}
	m.suspected.Store(0)
	//mutant: a proxy that slept quarantines all masters
	if own {
		m.putRight(at, by)
		return
	}
	for _, master := range e.masters {
		switch by, ahead := master.watch.confirm(); {
		case ahead > 0:
			//mutant: a clock that was judged is marked at the next heartbeat
			m.ask(master) // so that the master is marked before a proxy that knows nothing of the clock meets the master
		case by < 0: // the master's keys live longer now, which costs nobody a lock
			e.cfg.Logger.Warn("a clock jumped backwards", "master", master.Addr(), "by", -by)
		}
	}
}

// putRight adds to the engine's clock the time for which this process stood still. Compared with the new clock, the masters' clocks
// have not jumped, except a clock that has jumped by itself besides. The engine's clock is changed before the watches are: a
// goroutine that sees a watch go by the new clock must not read the old one.
func (m *monitor) putRight(at instant, by time.Duration) {
	e := m.engine
	e.cfg.Logger.Warn("this process stood still: attempts that were under way have failed", "for", by)
	for _, master := range e.masters {
		master.watch.ignore()
	}
	put := max(by, 0)
	//mutant: the clock is put right after the masters' are known by it
	e.slept.Add(int64(put))
	now := e.now()
	for _, master := range e.masters {
		if ahead := master.watch.clear(at, by, put, now); ahead > 0 {
			m.ask(master) // as in explain
		}
	}
}

// ask makes a master say something on all its lanes.
func (m *monitor) ask(of *master) {
	m.engine.databases.each(func(l *lane) {
		if l.master == of {
			l.heartbeat()
		}
	})
}

// Proxies that serve the same clients must agree on the names of locks: a lock that a proxy sends to another server has two holders.
// The engine does not know the names. The engine writes Config.Names into each master, in place of the names that any proxy has
// written there last, and compares the two, at random times, so that each proxy meets each other proxy at some time.
// Masters before Redis 6.2 refuse the command: there nothing is compared.

const (
	namesEvery = 10 * time.Second // on average
	namesLast  = 3 * namesEvery   // then a proxy that is gone is forgotten
	namesWarn  = time.Minute      // between two lines of the log
)

// Names says which names are names of locks. Proxies with the same For must have the same Are.
type Names struct{ For, Are string }

func (n Names) String() string { return n.For + "\n" + n.Are }

// differ returns the Are of another proxy with the same For, if the two differ; else "".
func (n Names) differ(last any) string {
	text, _ := last.(string)
	other, there, _ := strings.Cut(text, "\n")
	if other != n.For || there == n.Are {
		return ""
	}
	return there
}

// A namesCheck compares the names of locks between proxies.
type namesCheck struct {
	warned atomic.Int64 // when the log had last that another proxy takes other names for locks; 0 is never
}

// compare tells every master the names of locks here, and hears the names told last.
func (c *namesCheck) compare(e *Engine) {
	command := []any{"SET", namesKey, e.cfg.Names.String(), "PX", namesLast.Milliseconds(), "GET"}
	e.databases.each(func(l *lane) {
		if l.db == 0 {
			l.ask(command, func(last any) { c.hear(e, last, l.master.Addr()) })
		}
	})
}

func (c *namesCheck) hear(e *Engine, last any, master string) {
	there := e.cfg.Names.differ(last)
	if there == "" {
		return
	}
	e.stats.otherNames.Add(1)
	now, warned := e.now(), c.warned.Load()
	if (warned == 0 || now-instant(warned) >= namesWarn) && c.warned.CompareAndSwap(warned, int64(now)) {
		e.cfg.Logger.Warn("another proxy of this upstream takes other names for locks: one that only one of them takes for a lock can have two "+
			"holders; give both the same lock_keys", "upstream", e.cfg.Names.For, "here", e.cfg.Names.Are, "there", there, "master", master)
	}
}
