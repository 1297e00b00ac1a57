package quorum

import (
	"sync/atomic"
	"time"
)

// A master may miss a release: the master is late with its answer, cannot be reached, or answers an error. If its key stayed until
// the TTL, the lock would lack the master's vote until then. If other masters miss other releases, nobody can take the lock.
//
// So the release is made late: an undo (rule 4) is sent for the key that the master has granted or extended for the same signature
// before the release, as far as this engine knows. The undo names the instant at which the key expires. It cannot take a later key:
// a client that has taken or extended the lock since, even with the same token, has a key that expires at another instant. The undo
// goes before all commands that came after the release. A grant through another proxy is not known here, and lasts until its TTL.

// grants has the latest grant of each key that a master has granted or extended, to any client. The place is the hash of the
// database and the key. Where two keys have one place, the earlier grant is forgotten; an undo with the instant of the other finds
// no key to take.
//
// The client of a grant is not known here: a lock may be taken by its value and released by a script, which knows the lock by its
// DUMP. The master compares. So each of the first few clients that release the key gets an undo, and the holder is among them.
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

// releaseLate undoes the latest grant or extension of sig's key that is known of the master, unless its round came after the given
// round.
func (l *ledger) releaseLate(sig signature, round int64) {
	hash := sig.hash()
	g := l.grantOf(hash)
	now, expires := l.lane.engine.now(), g.expires.Load()
	of := hash - uint64(expires)
	//mutant: a release is made late over and over
	//mutant: everybody's release of a grant is made late
	//mutant: a late release by vote takes what was granted after it
	if g.round.Load() > round || g.undone.Swap(of) == of || g.undos.Add(1) > lateMax { // one undo for a signature is enough
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
