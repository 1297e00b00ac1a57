package quorum

// A key is set to expire at an instant of its master's clock (PXAT), not after a time (PX). So a command that is late on its way
// does not make the key live longer, and the instant is a mark: an undo takes the key only if it holds the attempt's token and
// expires in that millisecond, and so leaves other attempts' keys alone.

// An expiries chooses the instants for one lane: attempts with the same token get different instants, so that no undo takes another
// attempt's key. It belongs to the lane's loop.
type expiries struct {
	last   [1024]int64    // the instant that was chosen last, by place
	later  [1024]int64    // by how much later than asked the instant is
	unsure [1024]int64    // by how much the master's clock may have been behind its supposed time, ms
	undone map[ending]int // how many undos of a key are under way
}

// An ending is a signature, by its hash, and the expiry of a key with the signature.
type ending struct {
	hash uint64
	at   int64
}

// apart is how many attempts with one token may ask for the same millisecond before two of them share an instant.
const apart = 64

// hash is the number by which choose tells signatures apart.
func (sig signature) hash() uint64 {
	return uint64(hash(sig.name))<<32 | uint64(hash(sig.token+sig.dump))
}

// choose returns at, or an instant a few milliseconds later: at least gap after the instant that was chosen before for the same
// signature, and not within gap of an instant that is being undone, nor of an instant that no attempt gets. Every four gaps have two
// instants for no attempt: one for extensions, and one that is guarded.
//
// An undo may be repeated while its client has the lock again, through any proxy. After any extension of the lock, the undo
// does not find its own instant there: luaProlong moves the key's end to an instant for extensions.
//
// luaReenter needs guarded instants. If it counts on a key that an earlier attempt of its client has set, and does not extend
// the key, it moves the key's end to a guarded instant. If the earlier attempt fails, its undo does not find its own instant
// there, and leaves the key alone. Nor does the late release of an extension.
func (e *expiries) choose(hash uint64, at, gap int64) int64 {
	asked, last := at, &e.last[place(hash)]
	if at < *last+gap && at > *last-apart*gap {
		//mutant: two keys with one token expire alike
		at = *last + gap
	}
	//mutant: an attempt gets the instant of one that is being undone
	for at%(4*gap) > gap || e.isUndone(hash, at, gap) { // extensions have the instant at 2 gaps, the guarded one is at 3
		at += gap
	}
	*last, e.later[place(hash)] = at, at-asked
	return at
}

// place is a signature's place in the tables.
func place(hash uint64) int { return int((hash>>32*31 + hash) % 1024) }

// surplus returns by how much later than asked a key may expire, at least and at most, that ends within slack of an instant. Of the
// instant that was chosen last for the key's signature, the surplus is known. Of any other instant, the surplus is less than the
// way to the next instant for extensions, plus width: the uncertainty of the master's clock.
func (e *expiries) surplus(hash uint64, ends, slack, width int64) (least, most int64) {
	i := place(hash)
	if at := e.last[i]; at != 0 && max(at-ends, ends-at) <= slack {
		return e.later[i], e.later[i] + e.unsure[i] + slack
	}
	return 0, 4*(2*slack+1) - 1 + width
}

// avoid keeps choose away from the instant of a key that an undo is to remove, until free. The instant that was chosen last is
// not enough for this purpose: another signature may have had the same place meanwhile.
func (e *expiries) avoid(x ending) {
	if e.undone == nil {
		e.undone = make(map[ending]int)
	}
	e.undone[x]++
}

func (e *expiries) free(x ending) {
	if e.undone[x]--; e.undone[x] == 0 {
		delete(e.undone, x)
	}
}

// isUndone says that an undo is under way of a key that expires within less than gap of at.
func (e *expiries) isUndone(hash uint64, at, gap int64) bool {
	for near := at - gap + 1; near < at+gap && len(e.undone) > 0; near++ {
		if e.undone[ending{hash, near}] > 0 {
			return true
		}
	}
	return false
}

// expirySlack is how far luaExpires may be wrong, in ms, on a master that does not tell when a key expires.
const expirySlack = 2
