package quorum

import (
	"maps"
	"slices"
	"sync"
)

// A signature is a resource and the text that signs its lock: a token or, of a lock that a script has made, the key's DUMP, as
// vote.Effect.Digest has it. Attempts with one token have the same signature.
type signature struct{ name, token, dump string }

// A ledger holds what one master owes, or is owed, in one database: keys that a release has missed, keys that a broken connection may
// have set, and locks that the master lacks. Of a release that a master has missed there are two cases:
//
//   - The master has granted the lock: the grant is undone at once; see release_late.go.
//   - An attempt for the lock waits in the lane, or is in flight: the release is owed until the attempt is answered.
type ledger struct {
	lane *lane

	mu      sync.Mutex // guards all below; held while the lane's queue is asked
	owed    map[signature]debt
	broken  map[signature][]*entry // entries of attempts, of unknown fate, until the next connection
	filling map[signature]bool     // the locks that the master is to be given; see fill.go
}

// A debt is a release that has not reached a master.
type debt struct {
	place  int64 // of the release's round, among all rounds
	pushed int   // how many requests had been queued in the lane by then
}

// oweRelease is owe for an entry that may not have reached the master. An entry that is no release has no effect. oweRelease comes
// before missed: an attempt that is answered in between finds the debt, and an attempt that was answered before is found by missed.
func (en *entry) oweRelease() {
	if sig := en.round.releases; sig != nil {
		en.lane.ledger.owe(*sig, en.round.place.Load())
	}
}

// owe notes that a release, the round of which has this place, has not reached the master. An earlier attempt with the same token
// may still take the lock there. An attempt in the queue, or in a batch that a stalled master has yet to run, is undone when it is
// answered (see owes). An attempt whose connection broke before the answer is undone at once.
func (l *ledger) owe(sig signature, place int64) {
	l.mu.Lock()
	if pushed, some := l.lane.queue.progress(); some && len(l.owed) < l.lane.engine.cfg.QueueMax {
		if l.owed == nil {
			l.owed = make(map[signature]debt)
		}
		//mutant: a release that was not sent is not owed
		l.owed[sig] = debt{max(l.owed[sig].place, place), pushed}
	}
	broken := slices.Clone(l.broken[sig])
	l.mu.Unlock()
	for _, en := range broken {
		if en.round.place.Load() > place {
			continue
		}
		en.round.mu.Lock()
		u := en.round.operation.takeBack(en, sig)
		en.round.mu.Unlock()
		if u != nil {
			l.lane.queue.pushUndo(u)
		}
	}
}

// owes says whether a release of sig was not sent while the running batch waited or was in flight, and belongs to a later round
// than the one with this place.
func (l *ledger) owes(sig signature, place int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	//mutant: a release that was not sent is owed by who came after it
	return l.owed[sig].place > place
}

// settle forgets each debt once all requests that were queued before the debt are answered; done requests have been in a batch.
func (l *ledger) settle(done int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.owed, func(_ signature, d debt) bool { return d.pushed <= done })
	if len(l.owed) == 0 {
		l.owed = nil
	}
}

// remember keeps, for owe, the entry of an attempt whose connection broke before its answer, until there is a new connection.
func (l *ledger) remember(sig signature, en *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = make(map[signature][]*entry)
	}
	//mutant: of attempts that are lost only the last is owed for
	l.broken[sig] = append(l.broken[sig], en)
}

// forgetBroken is called when there is a new connection: nothing of an earlier one can run any more.
func (l *ledger) forgetBroken() {
	l.mu.Lock()
	defer l.mu.Unlock()
	//mutant: attempts of broken connections are never forgotten
	l.broken = nil
}

// beginFill notes that the master is to be given a lock, until endFill, and returns false if that was noted already: of a lock that is
// extended again and again while somebody else has a vote, each extension would begin another fill.
func (l *ledger) beginFill(sig signature) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	//mutant: each extension has a master filled that is being filled
	if l.filling[sig] {
		return false
	}
	if l.filling == nil {
		l.filling = make(map[signature]bool)
	}
	l.filling[sig] = true
	return true
}

func (l *ledger) endFill(sig signature) {
	l.mu.Lock()
	defer l.mu.Unlock()
	//mutant: a fill that has given up keeps others away
	delete(l.filling, sig)
}

// pending counts debts, and attempts of unknown fate.
func (l *ledger) pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.owed) + len(l.broken)
}
