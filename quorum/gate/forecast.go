package gate

import (
	"math/bits"
	"slices"
	"time"
)

// A forecast says when the resource is to be tried again.
//
// A refused try tells when each master is free. A master that granted is free at once, because the grant is undone. A
// master that refused is free when its key expires, or when its bell rings. A master that told nothing, or whose bell
// is not heard, may be free at any time. The resource is tried when a quorum is free by this reckoning.
//
//	nobody sleeps on   A free master has granted, has told nothing, is not heard, or has refused and then let its key
//	                   expire, or rung for its deletion. All of these count, so a free quorum is noticed.
//	nobody polls       While a client holds the resource on a quorum, the masters of the quorum refuse and do not
//	                   ring, and the others are too few. So an attempt's undo, which rings, wakes neither its own
//	                   waiter nor, by turns, the waiter of another proxy. Only for masters that told nothing, or are
//	                   not heard, the resource is tried again, more and more rarely, until a master that refused
//	                   becomes free.
//
// A try that gets the lock tells nothing of the masters. After such a try the next waiter sleeps until the lock
// expires, or bells ring. A bell does not name the release. But for each release a quorum rings, every master once,
// after the master has released. So a try after a quorum rang finds the resource free.
//
// If a quorum had rung before the try, a master that has not rung yet is late, and its next bell belongs to the same
// release. A late bell may belong to the next release, if the master never saw the first. That is safe: two quorums
// share a master, so one bell of the next release is heard.
type forecast struct {
	free    []time.Time // after a refused try, by master: when the master is free if it does not ring; else nil
	refused uint64      // by master: the master refused that try

	expires time.Time // after a try that got the lock: when the lock will be free
	rang    uint64    // by master: the master rang since the last try, or granted the last try in vain
	first   time.Time
	seen    uint64 // a quorum of masters that rang before the last try, and masters that rang late
	late    uint64 // the masters of seen that were late
}

func (f *forecast) ring(master int, now time.Time) {
	bit := uint64(1) << master
	if f.seen != 0 && f.seen&bit == 0 {
		f.seen |= bit
		f.late |= bit
		return
	}
	if f.rang == 0 {
		f.first = now
	}
	f.rang |= bit
}

// heed must be called before a try. If neither won nor lost is called after the try, the resource is to be tried at
// once.
func (f *forecast) heed(quorum int) {
	seen := f.rang
	if bits.OnesCount64(seen) < quorum {
		seen = 0
	}
	*f = forecast{seen: seen}
}

// renewed returns the forecast with which a handover begins, as heed does for a try: bells that are late stay late.
func (f forecast) renewed(quorum int) forecast {
	seen, late := f.seen, f.late
	if f.heed(quorum); f.seen == 0 {
		f.seen, f.late = seen, late
	}
	return f
}

// won must be called after a try that got the lock.
func (f *forecast) won(expires time.Time) { f.expires = expires }

// lost must be called after a try that did not get the lock. freeIn is Acquired.FreeIn: for how long each master is not
// free; nil if no master has told. heard has the masters whose bells are heard since before the try. A bell during the
// try counts, because the master may have rung after its refusal. Masters that granted count as free after soon.
// Masters that have told nothing, or are not heard, count as free after retry.
func (f *forecast) lost(now time.Time, freeIn []time.Duration, heard uint64, soon, retry time.Duration, masters int) {
	*f = forecast{free: make([]time.Time, masters), rang: f.rang | f.late}
	for m := range f.free {
		switch {
		case freeIn == nil || freeIn[m] < 0:
			f.free[m] = now.Add(retry)
		case freeIn[m] == 0:
			f.free[m] = now.Add(soon)
			f.rang |= 1 << m
		case heard>>m&1 == 0:
			f.free[m] = now.Add(min(freeIn[m], retry))
		default:
			f.free[m] = now.Add(freeIn[m])
			f.refused |= 1 << m
		}
	}
}

// freed returns the masters that had refused, and have become free since: by their bell, or by their time.
func (f *forecast) freed(now time.Time) (masters uint64) {
	for m, free := range f.free {
		if !free.After(now) {
			masters |= 1 << m
		}
	}
	return (masters | f.rang) & f.refused
}

// at returns when the resource is to be tried.
func (f *forecast) at(quorum int) time.Time {
	if f.free != nil {
		free := slices.Clone(f.free)
		for m := range free {
			if f.rang&f.refused>>m&1 == 1 {
				free[m] = time.Time{}
			}
		}
		slices.SortFunc(free, time.Time.Compare)
		//mutant: waiters wake each other by turns
		//mutant: a waiter waits for the bells of all masters
		return free[quorum-1]
	}
	at := f.expires
	switch {
	case bits.OnesCount64(f.rang) >= quorum:
		at = f.first
	case f.rang != 0:
		at = f.first.Add(ringWait)
	}
	if f.expires.Before(at) {
		at = f.expires
	}
	return at
}
