package quorum

import (
	"maps"
	"slices"
)

// A hold is a resource and the token that holds it.
type hold struct{ name, token string }

// A debt is a release that has not reached a master.
type debt struct {
	place  int64 // of its round
	pushed int   // of the lane, then
}

// oweRelease notes that the master was not told of a release, or may not have been, if the entry is one.
func (en *entry) oweRelease() {
	if h := en.round.releases; h != nil {
		en.lane.owe(*h, en.round.place.Load())
	}
}

// owe notes a release, by the place of its round, that has not reached this master. An earlier attempt with the same token may yet
// take the lock there, or may have: one in the batch that is in flight, as when a stalled master runs it after it wakes, or in the
// queue, is undone when it is answered (see owes); one whose connection broke before its answer is undone at once.
func (l *lane) owe(h hold, place int64) {
	l.mu.Lock()
	if (l.busy != idle || len(l.queue) > 0) && len(l.owed) < l.engine.cfg.QueueMax {
		if l.owed == nil {
			l.owed = make(map[hold]debt)
		}
		l.owed[h] = debt{max(l.owed[h].place, place), l.pushed}
	}
	broken := slices.Clone(l.broken[h])
	l.mu.Unlock()
	for _, en := range broken {
		if en.round.place.Load() > place {
			continue
		}
		en.round.mu.Lock()
		u := en.round.owner.(taker).owed(en, h)
		en.round.mu.Unlock()
		if u != nil {
			l.pushUndo(u)
		}
	}
}

// owes says whether a release of h by a round after this place was not sent while the running batch was in flight, or waited.
func (l *lane) owes(h hold, place int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owed[h].place > place
}

// forgetOwed is called when a batch is over, with mu held: what was queued when a release was owed may have been in it.
func (l *lane) forgetOwed() {
	maps.DeleteFunc(l.owed, func(_ hold, d debt) bool { return d.pushed <= l.pushed-len(l.queue) })
	if len(l.owed) == 0 {
		l.owed = nil
	}
}

// remember keeps, for owe, the entry of an attempt whose connection broke before its answer, until there is a new connection.
func (l *lane) remember(h hold, en *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = make(map[hold][]*entry)
	}
	l.broken[h] = append(l.broken[h], en)
}
