package vouch

import "time"

// A floor is the least by which a master's clock was ahead of ours whenever a lock was set there that may still live. If a key is gone
// although the clock shows no more than the floor allows by now, the key was not dropped early: whoever set it was promised no more.
//
// An answer to TIME bounds the clock from below by how long the answer took to come back, and from above by how long the question
// took. The floor needs only the first bound. So a master that is far away is known as well as one that is near: what counts is by how much
// some answers take longer to come back than others, not how long they take.
//
// A look that is much slower than usual says little, and does not lower the floor, unless looks are slow for slowLooks. Then that
// is what they are now.
//
// A clock may step back after it has dropped keys too early. Then it shows less than when it dropped them. So what was ahead of the floor
// at the look before is waited for, too.
type floor struct {
	known bool
	low   time.Duration // the floor at the latest look; it rises at the drift's rate, as locks allow for
	at    time.Duration // of the latest look, on our clock
	usual time.Duration // how wide looks are, as a rule: the least since they were slow
	last  time.Duration // what the latest look that counts told
	due   time.Duration // on our clock: then, what was gone before the latest look would be gone had the clock not stepped
	stale bool          // it has jumped back: the next look counts, however slow

	slow  bool          // since then, looks have been slow
	since time.Duration // on our clock
	best  look          // the least wide of these
}

// A look is what one answer tells of the offset: at least low, and no more than width above that.
type look struct{ low, width time.Duration }

// slowLooks is for how long looks must be slow until that is usual.
const slowLooks = time.Second

// see takes a look at a moment of ours. Looks that are no more than slack wider than usual count; those wider than most never do.
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
		if f.usual == 0 { // else it has jumped; that does not make its answers slower
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

// jump takes into account that the clock has jumped. After a jump forwards the next look is the first, as nothing counts that the
// clock has dropped. What it was before a jump back counts: keys may be gone since an earlier step forwards.
func (f *floor) jump(by time.Duration) {
	//mutant: a jump back hides what was dropped before
	f.known, f.stale, f.slow = f.known && by < 0, by < 0, false
}

// move takes into account that our clock was put right.
func (f *floor) move(offset, clock time.Duration) {
	f.low, f.last, f.best.low = f.low+offset, f.last+offset, f.best.low+offset
	f.at, f.due, f.since = f.at+clock, f.due+clock, f.since+clock
}
