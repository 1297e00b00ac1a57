package quorum

import (
	"maps"
	"slices"
)

// A signature is a resource and the token that signs its lock. Attempts with one token have the same.
type signature struct{ name, token string }

// A debt is a release that has not reached a master.
type debt struct {
	place  int64 // of its round
	pushed int   // of the lane, then
}

// oweRelease notes that the master was not told of a release, or may not have been, if the entry is one.
func (en *entry) oweRelease() {
	if sig := en.round.releases; sig != nil {
		en.lane.owe(*sig, en.round.place.Load())
	}
}

// owe notes a release, by the place of its round, that has not reached this master. An earlier attempt with the same token may yet
// take the lock there, or may have: one in the batch that is in flight, as when a stalled master runs it after it wakes, or in the
// queue, is undone when it is answered (see owes); one whose connection broke before its answer is undone at once.
func (l *lane) owe(sig signature, place int64) {
	l.mu.Lock()
	if (l.busy != idle || len(l.queue) > 0) && len(l.owed) < l.engine.cfg.QueueMax {
		if l.owed == nil {
			l.owed = make(map[signature]debt)
		}
		l.owed[sig] = debt{max(l.owed[sig].place, place), l.pushed}
	}
	broken := slices.Clone(l.broken[sig])
	l.mu.Unlock()
	for _, en := range broken {
		if en.round.place.Load() > place {
			continue
		}
		en.round.mu.Lock()
		u := en.round.owner.(taker).owed(en, sig)
		en.round.mu.Unlock()
		if u != nil {
			l.pushUndo(u)
		}
	}
}

// owes says whether a release of sig by a round after this place was not sent while the running batch was in flight, or waited.
func (l *lane) owes(sig signature, place int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owed[sig].place > place
}

// forgetOwed is called when a batch is over, with mu held: what was queued when a release was owed may have been in it.
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
	l.broken[sig] = append(l.broken[sig], en)
}
