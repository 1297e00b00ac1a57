package vouch

import "time"

// A floor is a lower bound: a master's clock was ahead of ours by at least so much whenever a lock was set there that
// may still live. Suppose that a key is gone, and the clock shows no more than the floor allows by now. Then the key
// was not dropped early: its client was promised no more time.
//
// An answer to TIME bounds the clock from below by the time that the answer took to come back, and from above by the
// time that the question took. The floor needs only the first bound. So a master far away is known as well as a near
// one: only the difference between slow and fast answers matters, not how long they take.
//
// A look that is much slower than usual says little, and does not lower the floor. If looks are slow for slowLooks,
// slow is usual from then on.
//
// A clock may step back after it has dropped keys too early. Then the clock shows less than at the drop. So the lead
// over the floor at the look before is waited for, too.
type floor struct {
	known bool
	low   time.Duration // the floor at the latest look; it rises at the drift's rate, as locks allow for
	at    time.Duration // of the latest look, on our clock
	usual time.Duration // the usual width of looks: the least since looks were slow
	last  time.Duration // the offset by the latest look that counts
	due   time.Duration // on our clock: when keys that were gone before the latest look would be gone without a step
	stale bool          // the clock has jumped back: the next look counts, however slow

	slow  bool          // since then, looks have been slow
	since time.Duration // on our clock
	best  look          // the narrowest look since then
}

// A look is one answer's bound of the offset: at least low, at most low + width.
type look struct{ low, width time.Duration }

// slowLooks is how long looks must be slow until slow is usual.
const slowLooks = time.Second

// see takes a look at a moment of our clock. Looks that are wider than usual by at most slack count. Looks wider than
// most never count.
func (f *floor) see(at time.Duration, l look, rate float64, slack, most time.Duration) {
	//mutant: what a clock may have stepped is never forgiven
	f.low += time.Duration(rate * float64(max(at-f.at, 0)))
	f.at = max(f.at, at)
	//mutant: what a clock has dropped is known when it is set back
	f.due = max(f.due, f.at+f.last-f.low)
	switch {
	case l.width > most:
	case !f.known:
		f.known, f.low, f.last, f.due = true, l.low, l.low, f.at
		if f.usual == 0 { // otherwise the clock has jumped, and its answers are no slower for that
			f.usual = l.width
		}
	//mutant: a slow look counts at once
	case l.width <= f.usual+slack || f.stale:
		f.last, f.stale = l.low, false
		//mutant: what was known of a clock is what the latest look tells
		f.slow, f.low, f.usual = false, min(f.low, l.low), min(f.usual, l.width)
	case !f.slow:
		f.slow, f.since, f.best = true, at, l
	case l.width < f.best.width:
		f.best = l
		fallthrough
	default:
		//mutant: looks that stay slow never count
		if at-f.since >= slowLooks {
			f.slow, f.low, f.usual, f.last = false, min(f.low, f.best.low), f.best.width, l.low
		}
	}
}

// jump takes a jump of the clock into account. After a jump forwards the next look is the first, because no key that
// the clock has dropped counts. After a jump back, the former floor still counts: keys may be gone since an earlier
// step forwards.
func (f *floor) jump(by time.Duration) {
	//mutant: a jump back hides what was dropped before
	f.known, f.stale, f.slow = f.known && by < 0, by < 0, false
}

// move takes into account that our clock was put right.
func (f *floor) move(offset, clock time.Duration) {
	f.low, f.last, f.best.low = f.low+offset, f.last+offset, f.best.low+offset
	f.at, f.due, f.since = f.at+clock, f.due+clock, f.since+clock
}
