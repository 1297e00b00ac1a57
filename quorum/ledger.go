package quorum

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A signature is a resource and the text that signs its lock: a token or, of a lock that a script has made, the key's DUMP, as
// vote.Effect.Digest has it. Attempts with one token have the same signature.
type signature struct{ name, token, dump string }

// A ledger holds what one master owes, or is owed, in one database: keys that a release has missed, keys that a broken connection may
// have set, and locks that the master lacks. Of a release that a master has missed there are two cases:
//
//   - The master has granted the lock: the grant is undone at once; see releaseLate.
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
// than the round with this place.
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

// forgetBroken is called when there is a new connection: nothing of an earlier connection can run any more.
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

// A master may miss a release: the master is late with its answer, cannot be reached, or answers an error. If its key stayed until
// the TTL, the lock would lack the master's vote until then. If other masters miss other releases, nobody can take the lock.
//
// So the release is made late: an undo (rule 4) is sent for the key that the master has granted or extended for the same signature
// before the release, as far as this engine knows. The undo names the instant at which the key expires. A later key is safe:
// a client that has taken or extended the lock since, even with the same token, has a key with another expiry. The undo
// goes before all commands that came after the release. A grant through another proxy is not known here, and lasts until its TTL.

// grants has a master's latest grant or extension of each key, to any client. The place is the hash of the database and the
// key. Where two keys have the same place, the earlier grant is forgotten; an undo with the instant of the other finds
// no key to take.
//
// The client of a grant is not known here: a lock may be taken by its value and released by a script, by its DUMP. The master
// compares. So each of the first few clients to release the key gets an undo, and the holder is among these clients.
type grants [1 << 14]grant

type grant struct {
	round   atomic.Int64 // the place of the grant's round
	expires atomic.Int64
	undone  atomic.Uint64 // the hash of the signature of the latest undo, less expires
	undos   atomic.Int32  // how many undos this grant has had
}

// lateMax is how many undos a grant has at most: its holder's, and others for clients that tried to release a lock without holding
// the lock.
const lateMax = 4

// grantOf is the place of a signature's key in the master's grants.
func (l *ledger) grantOf(hash uint64) *grant {
	g := &l.lane.master.grants
	//mutant: of grants in several databases one is known
	//mutant: a late release knows a lock only in the way in which it was taken
	return &g[(hash>>32+uint64(l.lane.db)*31)%uint64(len(g))]
}

// granted notes a grant.
func (l *ledger) granted(hash uint64, round, expires int64) {
	g := l.grantOf(hash)
	g.round.Store(round) // first, so that nobody takes the new instant for an earlier round's
	g.expires.Store(expires)
	if g.undos.Load() > 0 { // most often not: a store costs more than a look
		g.undos.Store(0)
	}
}

// missed makes a release late on a master that has missed the release.
func (r *round) missed(en *entry) {
	//mutant: a release that a master missed is not made late
	if sig := r.releases; sig != nil && !en.missed {
		en.missed = true
		en.lane.ledger.releaseLate(*sig, r.place.Load())
	}
}

// releaseOwed takes back an extension that was answered late, if a release came after it and was not sent.
func (en *entry) releaseOwed(sig signature) {
	//mutant: a release is not made late where an extension is late
	if place := en.round.place.Load(); en.lane.ledger.owes(sig, place) {
		en.lane.ledger.releaseLate(sig, place)
	}
}

// releaseLate undoes the master's latest known grant or extension of sig's key, unless its round came after the given
// round.
func (l *ledger) releaseLate(sig signature, round int64) {
	hash := sig.hash()
	g := l.grantOf(hash)
	now, expires := l.lane.engine.now(), g.expires.Load()
	of := hash - uint64(expires)
	//mutant: a release is made late over and over
	//mutant: everybody's release of a grant is made late
	//mutant: a late release by vote takes what was granted after it
	if g.round.Load() > round || g.undone.Swap(of) == of || g.undos.Add(1) > lateMax { // a signature needs one undo
		return
	}
	clock := l.lane.master.watch.look()
	left := time.Duration(expires-latest(&clock, now)) * time.Millisecond
	if clock.Known() && left > 0 {
		//mutant: a late release goes by the token
		u := newUndo(l.lane, sig, expires, left)
		u.once = true
		l.lane.queue.pushUndo(u)
	}
}
