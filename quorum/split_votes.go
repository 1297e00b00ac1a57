package quorum

import "time"

// If several clients ask for a lock at the same moment, each may get some of the votes, and none a quorum. On one Redis one of
// them would get the lock. So an attempt that some masters granted is made again, a little later, when it is undone.

// An attempt is made askedMax times at most. The pauses are random, and at most askPause, doubled each time.
const (
	askedMax = 8
	askPause = 2 * time.Millisecond
)

// began returns the start of the first attempt: the client's time counts from then, however often the attempt is repeated.
func (a *acquireRound) began() instant {
	if a.asked > 1 {
		//mutant: the time of an attempt that is made anew begins anew
		return a.since
	}
	return a.start
}

// left returns for how long masters are to keep what the attempt is about to set. A repeated attempt sets it to expire when the
// first would have.
func (a *acquireRound) left(e *Engine) time.Duration {
	kept := e.cfg.kept(a.req.TTL)
	if a.asked > 1 {
		kept = max(kept-(e.now()-a.since), time.Millisecond)
	}
	return kept
}

// insists says whether to ask again. It is called once.
func (a *acquireRound) insists() bool {
	return a.req.Insist != nil && a.asked < askedMax && a.engine.now() < a.began()+2*a.engine.cfg.InstanceTimeout &&
		a.divided() && a.req.Insist()
}

// again makes the attempt once more, a little later.
func (a *acquireRound) again() {
	e := a.engine
	e.pause(min(askPause<<a.asked, e.cfg.InstanceTimeout), func() {
		e.acquire(&acquireRound{req: a.req, asked: a.asked + 1, since: a.began(), done: a.done})
	})
}

// divided says that the votes may be split: a master granted, and fewer than a quorum refused, so perhaps nobody holds the lock.
// If a quorum refused, it is worth asking once more, too: these masters may have granted the lock to several clients.
func (a *acquireRound) divided() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	took := false
	for en := range a.who(Granted) {
		took = took || en.took
	}
	return took && (a.tally.Refused < Quorum(len(a.entries)) || a.asked == 1)
}

// began returns the start of the first run, as for an attempt.
func (r *scriptRound) began() instant {
	if r.before != nil {
		//mutant: the time of a script that is asked again begins anew
		return r.before.began()
	}
	return r.start
}

// again runs the script once more, a little later.
func (r *scriptRound) again() {
	r.engine.pause(askPause<<r.asked, func() {
		r.engine.run(&scriptRound{req: r.req, asked: r.asked + 1, before: r, done: r.done})
	})
}

// pause calls then after a random time of at most most, or at once when the engine closes.
func (e *Engine) pause(most time.Duration, then func()) {
	later := func() {
		pause := time.NewTimer(e.cfg.Pause(most))
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-e.ctx.Done():
		}
		then()
	}
	if !e.spawn(later) {
		then()
	}
}
