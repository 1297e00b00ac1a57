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
type floor struct {
	known bool
	low   time.Duration // the floor at the latest look; it rises at the drift's rate, as locks allow for
	at    time.Duration // of the latest look, on our clock
	usual time.Duration // how wide looks are, as a rule: the least since they were slow

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
	switch {
	case l.width > most:
	case !f.known:
		f.known, f.low = true, l.low
		if f.usual == 0 { // else it has jumped; that does not make its answers slower
			f.usual = l.width
		}
	//mutant: a slow look counts at once
	case l.width <= f.usual+slack:
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
			f.slow, f.low, f.usual = false, min(f.low, f.best.low), f.best.width
		}
	}
}

// forget makes the next look the first: a clock that jumped is another clock.
func (f *floor) forget() { f.known, f.slow = false, false }

// move takes into account that our clock was put right.
func (f *floor) move(offset, clock time.Duration) {
	f.low, f.at, f.since, f.best.low = f.low+offset, f.at+clock, f.since+clock, f.best.low+offset
}
