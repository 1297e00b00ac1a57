package quorum

import (
	"slices"
	"time"

	"lockproxy/quorum/rules"
)

// An acquireRound is one attempt to take a lock. The round is over when the client has its reply; the undo may live longer.
type acquireRound struct {
	round
	req   AcquireRequest
	asked int     // how often the attempt was made, with this round
	since instant // T1 of the first round, if this round is a later one
	hash  uint64  // of the signature
	lock  Lock    // if the round is won
	done  func(Acquired)

	fencing *fencing // if the lock is to have a fence
}

// ask makes the round; compose makes the command of each master.
func (a *acquireRound) ask(e *Engine) {
	a.hash = a.signature().hash()
	a.keeps, a.dates = e.cfg.kept(a.req.TTL), true
	if a.asked > 1 { // the key expires when the key of the first attempt would have expired
		a.keeps = max(a.keeps-(e.now()-a.since), time.Millisecond)
	}
	if a.req.Fenced {
		a.fencing = &fencing{attempt: a, record: recordPrefix + a.req.Key.Name, proposed: e.fences.next(e.now())}
		a.program = luaTakeFenced
	}
	begin(e, a, a.req.Key, nil)
}

func (a *acquireRound) compose(en *entry, now int64) {
	en.expires = en.lane.clock.expiry(a.hash, now+a.keeps.Milliseconds())
	en.lane.batch.grants = append(en.lane.batch.grants, en.lane.ledger.grantOf(a.hash))
	switch {
	case a.fencing != nil:
		en.Args = a.fencing.take(en)
	case a.req.Reentrant:
		en.Args = luaReenter.whole([]string{a.req.Key.Name}, a.req.Token, en.expires)
	case a.req.WantFree:
		en.Args = luaTakeOrLeft.whole([]string{a.req.Key.Name}, a.req.Token, en.expires)
	case a.req.WantHolder:
		en.Args = luaTakeOrHolder.whole([]string{a.req.Key.Name}, a.req.Token, en.expires)
	default:
		en.Args = en.lane.batch.lay("SET", &a.req.Key.Name, &a.req.Token, "NX", "PXAT", &en.expires)
	}
}

func (a *acquireRound) read(en *entry) ballot {
	if en.Err != nil {
		return readError(en.Err)
	}
	reply := en.Reply
	if list, _ := reply.([]any); len(list) > 0 {
		reply = list[0]
	}
	switch reply {
	case "OK", int64(1):
		en.took = true
		en.lane.ledger.granted(a.hash, a.place.Load(), en.expires)
		return grantedIfClean
	case int64(2): // the token held the lock already, and the master has extended the lock
		//mutant: a re-entrant extension is undone
		en.lane.ledger.granted(a.hash, a.place.Load(), en.expires)
		//mutant: an old vote joins new ones
		return grantedIfClean // an older copy of the data may have the key of an attempt that was undone since
	case nil, int64(0):
		return refused
	}
	return unexpected
}

func (a *acquireRound) decide(t rules.Tally) rules.Decision { return rules.DecideAcquire(t) }

func (a *acquireRound) ended(d rules.Decision) {
	e := a.engine
	switch d {
	case rules.Won:
		if a.fencing != nil {
			a.fencing.won()
			return
		}
		extended := func(en *entry) bool { return !en.took }
		a.won(Acquired{Held: a.req.Reentrant && a.number(rules.Granted, extended) >= rules.Quorum(len(a.entries))})
	case rules.Lost:
		insists := a.insists()
		a.undo(func() {
			if insists {
				a.again()
				return
			}
			e.stats.refused.Add(1)
			if a.wrongType() {
				a.done(Acquired{Err: ErrWrongType})
				return
			}
			a.refused()
		})
	default:
		e.stats.noQuorum.Add(1)
		err := a.failure() // of the votes before the undo
		a.undo(func() { a.done(Acquired{Err: err}) })
	}
}

// won promises the lock, if validity is left.
func (a *acquireRound) won(told Acquired) {
	e := a.engine
	//mutant: T1 read after the round
	until := a.began() + rules.Validity(a.req.TTL, 0, e.cfg.DriftFactor)
	//mutant: validity ignored
	//mutant: validity by the clock of patience
	if e.catchUp() < until {
		e.stats.acquired.Add(1)
		a.lock = Lock{engine: e, taken: a, until: until}
		told.Lock = &a.lock
		a.done(told)
		return
	}
	e.stats.expired.Add(1)
	a.undo(func() { a.done(Acquired{Refused: true}) })
}

// refused tells the client of a refusal. If no quorum agrees on the holder, masters are asked again: a single master's key may be left of
// an attempt of this very client, or be in an older copy of the master's data, and the client would take the lock for its own.
func (a *acquireRound) refused() {
	told := Acquired{Refused: true, Holder: a.holder(), FreeIn: a.freeIn()}
	if !a.req.WantHolder || told.Holder != "" {
		a.done(told)
		return
	}
	//mutant: an older copy of a lock tells who holds it, when masters are asked again
	(&readRound{every: true, done: func(l *readRound) {
		told.Holder = l.views[0].Value
		a.done(told)
	}}).ask(a.engine, a.req.Key.DB, []string{a.req.Key.Name})
}

// holder returns the token for which a quorum of clean masters refused; "" if no quorum agrees on a token.
func (a *acquireRound) holder() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := make(map[string]int)
	for en := range a.who(rules.Refused) {
		//mutant: an older copy of a lock tells who holds it
		if list, _ := en.Reply.([]any); len(list) == 2 && en.clean {
			token, _ := list[1].(string)
			//mutant: who holds a lock is what one master says
			if seen[token]++; seen[token] >= rules.Quorum(len(a.entries)) {
				return token
			}
		}
	}
	return ""
}

// freeIn returns for how long each master that refused will hold another lock; see Acquired.
func (a *acquireRound) freeIn() []time.Duration {
	if !a.req.WantFree {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	free := slices.Repeat([]time.Duration{-1}, len(a.entries))
	for en := range a.who(rules.Granted) {
		free[en.master] = 0
	}
	for en := range a.who(rules.Refused) {
		free[en.master] = a.engine.cfg.kept(a.engine.cfg.TTLMax)
		if list, _ := en.Reply.([]any); len(list) == 2 {
			if ms, ok := list[1].(int64); ok && ms >= 0 {
				free[en.master] = time.Duration(ms+1) * time.Millisecond // PTTL rounds
			}
		}
	}
	return free
}

// undo removes the keys of the attempt, and calls after when the masters that granted have confirmed, or one InstanceTimeout has passed.
// Only the first undo of an attempt does anything.
func (a *acquireRound) undo(after func()) {
	a.mu.Lock()
	undos := a.revoke()
	a.mu.Unlock()
	//mutant: no undo
	pushUndos(a.engine, undos, after)
}

// settled undoes a grant that came after the attempt had failed, or after its lock was released.
func (a *acquireRound) settled(en *entry) {
	owed := en.lane.ledger.owes(a.signature(), a.place.Load())
	a.mu.Lock()
	if a.fencing != nil {
		if _, seeded, ok := en.fence(); ok && !seeded {
			//mutant: who missed the first fence is not seeded
			a.engine.fences.reseed()
		}
	}
	var late []*undo
	if owed {
		if u := a.takeBack(en, a.signature()); u != nil {
			late = append(late, u)
		}
		//mutant: no undo of a late grant
	} else if a.revoked {
		late = a.undoAt(nil, en)
	}
	a.mu.Unlock()
	switch {
	case len(late) > 0:
		late[0].lane.queue.pushUndo(late[0])
	//mutant: a release is not made late where a re-entry is late
	case owed: // the master has extended the lock
		en.lane.ledger.releaseLate(a.signature(), a.place.Load())
	}
}

func (a *acquireRound) signatures() []signature { return []signature{a.signature()} }
func (a *acquireRound) signature() signature {
	return signature{name: a.req.Key.Name, token: a.req.Token}
}

func (a *acquireRound) appendKeys(to []Key) []Key { return append(to, a.req.Key) }

// takeBack also takes back the extension by a re-entrant command of unknown fate, unlike appendUndos: the release was for the extended
// lock, too.
func (a *acquireRound) takeBack(en *entry, sig signature) *undo {
	if en.undoing || en.fate != unknown && !(en.fate == answered && en.took) {
		return nil
	}
	en.undoing = true
	return en.newUndo(sig, en.expires, a.keeps)
}

// appendUndos leaves the key of a re-entrant command of unknown fate: the command may have extended a lock that was granted before.
func (a *acquireRound) appendUndos(to []*undo, en *entry) []*undo {
	certain := en.fate == answered && en.took
	//mutant: no undo of what a broken connection may have set
	//mutant: a re-entrant attempt of unknown fate is undone
	possible := en.fate == unknown && !a.req.Reentrant
	if !certain && !possible {
		return to
	}
	return append(to, en.newUndo(a.signature(), en.expires, a.keeps))
}

// If several clients ask for a lock at the same moment, each client may get some votes, and no client a quorum. On a single Redis one
// client would get the lock. So an attempt that some masters granted is made again, a little later, when the attempt is undone.

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

// insists says whether the attempt is made again. insists is called once.
func (a *acquireRound) insists() bool {
	return a.req.Insist != nil && a.asked < askedMax && a.engine.now() < a.began()+2*a.engine.cfg.InstanceTimeout &&
		a.divided() && a.req.Insist()
}

// again makes the attempt once more, a little later.
func (a *acquireRound) again() {
	e := a.engine
	e.pause(min(askPause<<a.asked, e.cfg.InstanceTimeout), func() {
		(&acquireRound{req: a.req, asked: a.asked + 1, since: a.began(), done: a.done}).ask(e)
	})
}

// divided says that the votes may be split: a master granted, and fewer than a quorum refused, so perhaps nobody holds the lock. After a
// refusal by a quorum, a single repetition is worth the time, too: these masters may have granted the lock to several clients.
func (a *acquireRound) divided() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	took := false
	for en := range a.who(rules.Granted) {
		took = took || en.took
	}
	return took && (a.tally.Refused < rules.Quorum(len(a.entries)) || a.asked == 1)
}
