package quorum

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// A warden is what looks after the masters beside the rounds: it sends heartbeats, finds out whose clock it was that
// jumped, and sees quarantines through. It only asks; lanes carry its questions and act on the answers.
type warden struct {
	engine  *Engine
	wake    chan struct{}
	alarmed atomic.Int64 // when a jump was seen that nobody has judged; 0 if none
	beat    instant      // when the next heartbeat is due
}

const (
	// heartbeatEvery bounds how long a broken idle connection, or a setting that costs a master its vote, stays unnoticed.
	heartbeatEvery = 500 * time.Millisecond
	wardenEvery    = 100 * time.Millisecond
	// alarmedEvery is how often it looks whether the masters have been heard, while a jump awaits judgement.
	alarmedEvery = 10 * time.Millisecond
)

func newWarden(e *Engine) *warden {
	return &warden{engine: e, wake: make(chan struct{}, 1), beat: heartbeatEvery}
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
			w.engine.eachLane(func(l *lane) { l.ask(newHeartbeat(l)) })
		case <-ctx.Done():
			return
		}
		w.round()
		if w.alarmed.Load() != 0 {
			next.Reset(alarmedEvery)
		} else {
			next.Reset(wardenEvery)
		}
	}
}

func (w *warden) round() {
	now := w.engine.now()
	if now >= w.beat {
		w.beat = now + heartbeatEvery
		w.engine.eachLane(func(l *lane) { l.nudge(w.engine.waited()) })
	}
	w.judge(now)
	w.engine.eachLane(func(l *lane) { l.seeThrough(now) })
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
		jumps[i] = m.watch.since(at, e.uncertainty())
		missing = missing || jumps[i] == nil && m.isConnected()
	}
	if missing && now-at < e.cfg.InstanceTimeout {
		return // until it looks again
	}
	by, own, sure := vouch.Standstill(jumps, bounds.DriftFactor, tolerance(bounds.Grace))
	if !sure { // nobody can take a lock before it is
		return
	}
	w.alarmed.Store(0)
	if own {
		w.putRight(at, by)
		return
	}
	for _, m := range e.masters {
		switch by, ahead := m.watch.judge(); {
		case ahead > 0:
			e.askMaster(m) // so that it is marked before a proxy that knows nothing of its clock meets it
		case by < 0: // its keys live longer now, which costs nobody a lock
			e.cfg.Logger.Warn("a clock jumped backwards", "master", m.Addr(), "by", -by)
		}
	}
}

// putRight lets the engine's clock count what it stood still. By that clock the masters' have not jumped, but for what one of
// them did besides. The clock is put right first: who has seen that the masters' are known by the new one must read no other.
func (w *warden) putRight(at instant, by time.Duration) {
	e := w.engine
	e.cfg.Logger.Warn("this process stood still: attempts that were under way have failed", "for", by)
	for _, m := range e.masters {
		m.watch.suspend()
	}
	put := max(by, 0)
	e.slept.Add(int64(put))
	now := e.now()
	for _, m := range e.masters {
		if ahead := m.watch.acquit(at, by, put, now); ahead > 0 {
			e.askMaster(m) // as in judge
		}
	}
}

// setQuarantine takes what is written on the master: "" if it is clean.
func (l *lane) setQuarantine(text, canary string) {
	l.mu.Lock()
	was := l.quarantine
	switch {
	case text == "":
		l.quarantine = nil
	case was == nil || was.text != text || was.canary != canary:
		c, _ := vouch.ParseCanary(canary)
		l.quarantine = &quarantine{
			Quarantine: vouch.NewQuarantine(reasonOf(text), l.engine.now(), l.engine.bounds.Load().Kept, l.engine.cfg.DriftFactor),
			text:       text, canary: canary, epoch: c.Epoch,
		}
	}
	is := l.quarantine
	l.mu.Unlock()
	switch log := l.engine.cfg.Logger; {
	case is == nil && was != nil:
		log.Info("clean: grants count again", l.logArgs("after", (l.engine.now()-was.Since).Round(time.Millisecond))...)
	case is != nil && is != was:
		log.Warn("quarantined: grants do not count", l.logArgs("reason", is.Reason, "at_most", (is.Until-is.Since).Round(time.Second))...)
	}
}

// quarantineCause is what a vote is told that does not count because of the quarantine; "" if the master is clean.
func (l *lane) quarantineCause() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quarantine == nil {
		return ""
	}
	return l.quarantine.cause(l.engine.now())
}

// cause tells a client why the master's grant does not count, and for how long.
func (q *quarantine) cause(now instant) string {
	left := span(q.Until - now)
	switch {
	case q.Known:
		return "quarantined " + left + " more (" + q.Reason + ")"
	case now-q.Since < 2*surveyEvery:
		return "quarantined up to " + left + " more (" + q.Reason + "; asking the other masters), or until lockproxy init"
	}
	return "quarantined " + left + " more (" + q.Reason + "; too few other masters remember), or until lockproxy init"
}

// span puts a time that is left into words: 1h, 2m30s, 12s. It is never told to be over.
func span(d time.Duration) string {
	text := max(d+time.Second-1, time.Second).Truncate(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// A quarantine is what a lane knows of its master's: the lane's mu guards it.
type quarantine struct {
	*vouch.Quarantine
	text, canary string // as they are on the master
	epoch        int64
	asked        instant // when the latest survey began; 0 if none did
	said         map[int]vouch.Testimony
}

// fence returns the fence that the master is to be seeded with, or 0 if too few others have told. The lane's mu is held.
func (q *quarantine) fence(masters int) int64 {
	return vouch.Fence(q.testimony(), masters)
}

// testimony is what the others have said. The lane's mu is held.
func (q *quarantine) testimony() []vouch.Testimony { return slices.Collect(maps.Values(q.said)) }

// surveyEvery is how often the other masters are asked for their horizons until enough have answered.
const surveyEvery = time.Second

// seeThrough takes the next step that ends a quarantine (rule 7).
func (l *lane) seeThrough(now instant) {
	l.mu.Lock()
	q := l.quarantine
	if q == nil {
		l.mu.Unlock()
		return
	}
	if !q.Known { // a master that has been met since may have told of longer locks
		q.Outlast(l.engine.bounds.Load().Kept, l.engine.cfg.DriftFactor)
	}
	if !q.Known && len(q.said) > 0 {
		q.Hear(q.testimony(), len(l.engine.masters), now, l.engine.cfg.DriftFactor)
		if q.Known {
			l.engine.cfg.Logger.Info("quarantine: the other masters have said for how long", l.logArgs("at_most", (q.Until-now).Round(time.Millisecond))...)
		}
	}
	over := now >= q.Until
	fence := q.fence(len(l.engine.masters))
	survey := !over && !q.Known && (q.asked == 0 || now-q.asked >= surveyEvery)
	if survey {
		q.asked, q.said = now, make(map[int]vouch.Testimony)
	}
	l.mu.Unlock()
	switch {
	case over:
		l.ask(newAcquittal(l, q, fence))
	case survey:
		for _, other := range l.engine.lanesOf(l.db) {
			if other != l {
				other.ask(newSurvey(other, l, q))
			}
		}
	}
}

// A question is a command of the warden's. What it was for comes to nothing if it is not answered.
type question struct {
	masters.Call
	lane   *lane
	answer func(q *question) // in the lane's loop, if the batch was vouched for
}

func (q *question) command() *masters.Call { return &q.Call }
func (q *question) take(instant) bool      { return true }
func (q *question) lost(string)            {}
func (q *question) reply(instant) {
	if q.Err == nil && q.answer != nil && q.lane.doubt.none() {
		q.answer(q)
	}
}

// askMaster makes a master say something on all its lanes.
func (e *Engine) askMaster(m *master) {
	e.eachLane(func(l *lane) {
		if l.master == m {
			l.ask(newHeartbeat(l))
		}
	})
}

// ask queues a question, if the lane is connected.
func (l *lane) ask(q *question) { l.push(q, l.engine.waited()) }

// newSurvey asks a master for its horizon, on behalf of the lane of one that is quarantined, and tells it the epochs.
func newSurvey(l, of *lane, run *quarantine) *question {
	args := luaSurvey.all([]string{rosterKey, horizonKey, quarantineKey}, l.roster.args())
	return &question{Call: masters.Call{Args: args}, lane: l, answer: func(q *question) {
		reply, ok := q.Reply.([]any)
		if !ok || len(reply) != 5 {
			return
		}
		ms, ok1 := reply[0].(int64)
		quarantined, ok2 := reply[1].(int64)
		text, ok3 := reply[2].(string)
		fence, seeded, ok4 := fenceReply(reply, 3)
		if !ok1 || !ok2 || !ok3 || !ok4 {
			return
		}
		l.roster.learn(text)
		t := vouch.Testimony{
			Horizon: time.Duration(ms) * time.Millisecond,
			Clean:   quarantined == 0 && of.roster[of.slot].Load() == run.epoch,
		}
		if seeded {
			t.Fence = fence
		}
		of.hear(run, l.slot, t)
	}}
}

// hear takes what one other master said.
func (l *lane) hear(run *quarantine, slot int, t vouch.Testimony) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quarantine == run && run.said != nil {
		run.said[slot] = t
	}
}

// newAcquittal ends the master's quarantine for all proxies, if it is still the one that was seen. The master is seeded with
// the fence, if that is not 0.
func newAcquittal(l *lane, run *quarantine, fence int64) *question {
	args := luaAcquit.all([]string{rosterKey, canaryKey, quarantineKey}, append(l.roster.args(), fence, run.canary, run.text))
	return &question{Call: masters.Call{Args: args}, lane: l, answer: func(q *question) {
		if q.Reply == int64(1) {
			l.setQuarantine("", run.canary)
			return
		}
		l.again = true
	}}
}

// newHeartbeat makes the master say something: the proof of its batch says the rest.
func newHeartbeat(l *lane) *question {
	return &question{Call: masters.Call{Args: []any{"PING"}}, lane: l}
}

// newPatrol asks the master for what may cost it its vote.
func newPatrol(l *lane) *question {
	return &question{Call: masters.Call{Args: []any{"INFO"}}, lane: l, answer: (*question).patrol}
}

// newAppendPatrol asks a master with an append-only file when it is written: its canary may say that it forgets nothing.
func newAppendPatrol(l *lane) *question {
	return &question{Call: masters.Call{Args: []any{"CONFIG", "GET", masters.AppendSettings}}, lane: l, answer: func(q *question) {
		now := l.link.info
		now.ReadConfig(q.Reply)
		l.again = l.again || now.Durable() != l.link.info.Durable()
	}}
}

// patrol compares what the master says of itself with what it said in the handshake.
func (q *question) patrol() {
	text, _ := q.Reply.(string)
	l, now := q.lane, q.lane.link.info
	was := now
	now.ReadInfo(text)
	if l.evicted.more(&now) {
		l.master.watch.accuse("it evicted keys")
	}
	l.again = l.again || now.Role != was.Role || now.RunID != was.RunID || now.Lineage != was.Lineage ||
		now.Evicts() != was.Evicts() || now.Evicted != was.Evicted || now.AppendOnly != was.AppendOnly || now.Durable() != was.Durable()
}
