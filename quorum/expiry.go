package quorum

import (
	"math"
	"time"
)

// A key is set to expire at an instant of its master's clock, not after a time. So a command that is late on its way does
// not make it live longer, and the instant is a mark: an undo takes the key that holds the token and expires then, and no
// other attempt's.

// A timed owner sets keys that expire. At is called once for each entry, when it is about to be written, with the round's
// mu held; now is not before what the master's clock shows. It fills in the command.
type timed interface {
	at(en *entry, now int64)
}

// An expiries chooses instants, so that of two attempts with the same token on one lane, of which one may be taken for
// the other, no two are alike. It belongs to the lane's loop.
type expiries struct {
	last [1024]int64 // by the hold's hash
}

// apart is how many attempts with the same token may be told to expire in the same millisecond before two are.
const apart = 64

// hash is what choose tells holds apart by.
func (h hold) hash() uint64 { return uint64(hash(h.name))<<32 | uint64(hash(h.token)) }

// choose returns at, or a few milliseconds more: no less than gap after the one before, and not within gap of a guarded
// instant, of which there is one in every four gaps.
//
// To a guarded one luaReenter moves the end of a key that it counts as its own and does not extend. So the undo of the
// attempt that had set that key, and failed, does not take it any more.
func (e *expiries) choose(hash uint64, at, gap int64) int64 {
	last := &e.last[(hash>>32*31+hash)%uint64(len(e.last))]
	if at < *last+gap && at > *last-apart*gap {
		at = *last + gap
	}
	if r := at % (4 * gap); r > 2*gap { // the guarded one is at 3 gaps
		at += 4*gap - r
	}
	*last = at
	return at
}

// expiry chooses an instant for a key that is set in the batch that is being written.
func (l *lane) expiry(hash uint64, at int64) int64 {
	gap := int64(1)
	if !l.link.info.TellsExpiry {
		gap = 2*expirySlack + 1
	}
	return l.expiries.choose(hash, at, gap)
}

// expirySlack is how far luaExpires may be wrong, in ms, on a master that does not tell when a key expires.
const expirySlack = 2

// latest returns what the master's clock shows at most, in ms. For when nothing is known of it, heard is what it showed
// when it was last heard, at some moment of ours.
func (w *watch) latest(now instant, heard int64, at instant) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.clock.Known() {
		return heard + (now - at).Milliseconds() + 1
	}
	return int64(math.Ceil(float64(w.clock.Latest(now)) / float64(time.Millisecond)))
}
