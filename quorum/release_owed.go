package quorum

import (
	"maps"
	"slices"
)

// A signature is a resource and what signs its lock: a token or, of a lock that a script has made, its DUMP, as effect.digest has it.
// Attempts with one token have the same.
type signature struct{ name, token, dump string }

// A debt is a release that has not reached a master.
type debt struct {
	place  int64 // of its round
	pushed int   // of the lane, then
}

// oweRelease is owe for an entry that has not reached the master, or may not have. It does nothing if the entry is no release.
func (en *entry) oweRelease() {
	if sig := en.round.releases; sig != nil {
		en.lane.owe(*sig, en.round.place.Load())
	}
}

// owe notes that a release, the round of which has this place, has not reached the master. An earlier attempt with the same token
// may still take the lock there. If the attempt is in the queue, or in a batch that a stalled master has yet to run, it is undone
// when it is answered (see owes). If its connection broke before the answer, it is undone at once.
func (l *lane) owe(sig signature, place int64) {
	l.mu.Lock()
	if (l.busy != idle || len(l.queue) > 0) && len(l.owed) < l.engine.cfg.QueueMax {
		if l.owed == nil {
			l.owed = make(map[signature]debt)
		}
		//mutant: a release that was not sent is not owed
		l.owed[sig] = debt{max(l.owed[sig].place, place), l.pushed}
	}
	broken := slices.Clone(l.broken[sig])
	l.mu.Unlock()
	for _, en := range broken {
		if en.round.place.Load() > place {
			continue
		}
		en.round.mu.Lock()
		u := en.round.owner.takeBack(en, sig)
		en.round.mu.Unlock()
		if u != nil {
			l.pushUndo(u)
		}
	}
}

// owes says whether, while the running batch waited or was in flight, a release of sig was not sent that belongs to a later round
// than the one with this place.
func (l *lane) owes(sig signature, place int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	//mutant: a release that was not sent is owed by who came after it
	return l.owed[sig].place > place
}

// forgetOwed forgets each debt once all that was queued before it has been in a batch. It is called when a batch is over, with mu
// held.
func (l *lane) forgetOwed() {
	maps.DeleteFunc(l.owed, func(_ signature, d debt) bool { return d.pushed <= l.pushed-len(l.queue) })
	if len(l.owed) == 0 {
		l.owed = nil
	}
}

// remember keeps, for owe, the entry of an attempt whose connection broke before its answer, until there is a new connection.
func (l *lane) remember(sig signature, en *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = make(map[signature][]*entry)
	}
	//mutant: of attempts that are lost only the last is owed for
	l.broken[sig] = append(l.broken[sig], en)
}
