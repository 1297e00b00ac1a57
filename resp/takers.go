package resp

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"

	"lockproxy/quorum"
)

// takers remember which connection took a lock, or last extended a lock, so that LOCKS and LOCKINFO can name the client. The memory is
// fixed, and noting a lock takes no mutex and allocates nothing. Each lock has two places, found by a hash of key and token. A lock is not
// remembered while both places belong to other locks that still last.
type takers struct {
	seed   maphash.Seed
	epoch  time.Time // where times begin
	places [takersMax]taker
}

// takersMax is how many locks are remembered at most. It is a power of two.
const takersMax = 1 << 14

// A taker is one place: the connection that took a lock.
type taker struct {
	who   atomic.Uint64 // the id of the session in the lower takerIDBits, and above them the hash of the lock; 0: nobody
	until atomic.Int64  // when the validity of the lock ends, in ms since the epoch: until then the place is not given away
}

// takerIDBits is how many bits of who are a session's id: enough for 2000 connections a second for a year.
const takerIDBits = 36

func newTakers() *takers { return &takers{seed: maphash.MakeSeed(), epoch: time.Now()} }

// hash is the lock's in all memories of locks.
func (t *takers) hash(key quorum.Key, token string) uint64 {
	return maphash.String(t.seed, token) ^ bits.RotateLeft64(maphash.String(t.seed, key.Name), 1) ^ uint64(key.DB)<<takerIDBits
}

// find returns the two places of a lock, and the lock's hash as in who.
func (t *takers) find(key quorum.Key, token string) (first, second *taker, hash uint64) {
	h := t.hash(key, token)
	i := h % takersMax
	return &t.places[i], &t.places[i^1], h >> takerIDBits << takerIDBits
}

// noToken is the token of a lock that is a hash, such as Redisson's: the lock's holder is a field of the hash. Only the key tells such
// locks apart.
const noToken = ""

// given notes a lock whose reply is about to be written. If the write fails, the lock is undone, and nobody asks for its client.
func (t *takers) given(sl *slot, session int64) {
	switch {
	case sl.token != "":
		t.note(sl.key, sl.token, session, sl.out.until, sl.out.ttl)
	case sl.voted:
		until := sl.out.lock.Until()
		t.note(sl.key, noToken, session, until, time.Until(until))
	}
}

// note notes that the session has the lock, valid until the time until, which is left from now.
func (t *takers) note(key quorum.Key, token string, session int64, until time.Time, left time.Duration) {
	first, second, hash := t.find(key, token)
	end := until.Sub(t.epoch).Milliseconds()
	for _, p := range [...]*taker{first, second} {
		if was := p.who.Load(); was == 0 || was>>takerIDBits<<takerIDBits == hash || p.until.Load() < end-left.Milliseconds() {
			p.until.Store(end)
			p.who.Store(hash | uint64(session)&(1<<takerIDBits-1))
			return
		}
	}
}

// forget notes that the lock is being given back, and says whether the lock was remembered.
func (t *takers) forget(key quorum.Key, token string) (known bool) {
	first, second, hash := t.find(key, token)
	for _, p := range [...]*taker{first, second} {
		if was := p.who.Load(); was != 0 && was>>takerIDBits<<takerIDBits == hash {
			known = p.who.CompareAndSwap(was, 0) || known
		}
	}
	return known
}

// of returns the id of the session that took the lock; 0: not remembered. A lock without a token is remembered until its validity ends:
// after the end the lock may be another client's, taken through another proxy.
func (t *takers) of(key quorum.Key, token string) int64 {
	first, second, hash := t.find(key, token)
	for _, p := range [...]*taker{first, second} {
		who := p.who.Load()
		if token == noToken && p.until.Load() < time.Since(t.epoch).Milliseconds() {
			continue
		}
		if who != 0 && who>>takerIDBits<<takerIDBits == hash {
			return int64(who & (1<<takerIDBits - 1))
		}
	}
	return 0
}
