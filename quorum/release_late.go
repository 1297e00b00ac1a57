package quorum

import (
	"slices"
	"sync/atomic"
	"time"

	"lockproxy/quorum/masters"
)

// A master may miss a release: it owes an answer for too long, cannot be reached, or answers an error. Were the key left there to
// its TTL, the lock would lack that vote as long; and where another master has missed another release, nobody could take it.
//
// So the release is made late, by the undo of what this engine knows to have been granted or extended there for the same
// signature, in a round before the release (rule 4). However late it comes, it takes that very key and no other: who has taken the lock
// since by the same token, or has extended it, has a key that expires at another instant. And it goes before all that came after
// the release. What was granted through other proxies is not known here, and lasts until its TTL.

// grants are when the keys expire that a master has granted or extended, by the database and the key's hash: of each the latest,
// whoever holds it. A lock may be taken by its value, and given back by a script, which knows it by its DUMP. So whose release it is
// is not known before the master compares; but the holder's is one of the first. Where two hashes meet, the one before is forgotten,
// and the instant of the other takes no key of it.
type grants [1 << 14]grant

type grant struct {
	round   atomic.Int64 // the place of the round that it was for
	expires atomic.Int64
	undone  atomic.Uint64 // the hash of the signature for which it was undone last, less expires
	undos   atomic.Int32  // so many
}

// lateMax is how many undos a grant has at most: one is its holder's, and others may have tried to release the lock before him.
const lateMax = 4

// grantOf is the place of a signature's key in the master's grants.
func (l *lane) grantOf(hash uint64) *grant {
	g := &l.master.grants
	return &g[(hash>>32+uint64(l.db)*31)%uint64(len(g))]
}

// granted notes a grant.
func (l *lane) granted(hash uint64, round, expires int64) {
	g := l.grantOf(hash)
	g.round.Store(round) // first: who sees the new instant must not take it for an earlier round's
	g.expires.Store(expires)
	g.undos.Store(0)
}

// noteGrants notes what a master has put, but for what kept its expiry: that may be at a guarded instant.
func (d *editing) noteGrants(en *entry) {
	for _, i := range d.puts {
		if at := d.ends[en.master][i]; at > 0 && !d.edits[i].KeepTTL {
			en.lane.granted(d.sums[i].hash, d.place.Load(), at)
		}
	}
}

// releaseLate is called by who has the entry, when it has not reached the master, or may not have, and nothing that was pushed
// after it has been answered. It does nothing unless the entry is a release of what was granted there.
func (en *entry) releaseLate() {
	if sig := en.round.releases; sig != nil && !en.missed {
		en.missed = true
		en.lane.releaseLate(*sig, en.round.place.Load(), undoText)
	}
	if r, ok := en.round.owner.(*voting); ok {
		r.mu.Lock()
		r.missedBy(en)
		r.mu.Unlock()
	}
}

// releaseOwed takes back an extension that was answered late, and after whose sending a release was not sent.
func (en *entry) releaseOwed(sig signature, args func(signature, int64) []any) {
	if place := en.round.place.Load(); en.lane.owes(sig, place) {
		en.lane.releaseLate(sig, place, args)
	}
}

// releaseLate undoes what the master is known to have granted or extended, unless that was in a round after this one.
func (l *lane) releaseLate(sig signature, round int64, args func(signature, int64) []any) {
	hash := sig.hash()
	g := l.grantOf(hash)
	now, expires := l.engine.now(), g.expires.Load()
	of := hash - uint64(expires)
	if g.round.Load() > round || g.undone.Swap(of) == of || g.undos.Add(1) > lateMax { // one undo for a signature is enough
		return
	}
	left := time.Duration(expires-l.master.watch.latest(now, expires, now)) * time.Millisecond
	if left > 0 {
		l.pushUndo(&undo{Call: masters.Call{Args: args(sig, expires)}, lane: l, kept: left, once: true, of: ending{hash, expires}})
	}
}

// takeLate puts the undos of releases that have just been dropped before what came after these in the batch.
func (l *lane) takeLate(now instant) {
	l.mu.Lock()
	late := l.undos
	l.undos = nil
	l.mu.Unlock()
	var first []request
	for _, u := range late {
		if u.take(now) {
			first = append(first, u)
		}
	}
	l.batch = slices.Insert(l.batch, 0, first...)
}
