package vouch

import "time"

// A Quarantine is the time in which a master's grants do not count, because it may have forgotten locks.
//
// It ends when no lock that it forgot can still be held. A lock has a quorum, so it was granted by one of any N−q+1 other
// masters at least; each of those carries a horizon, the longest time that any lock granted there may still live. So the
// largest horizon of N−q+1 other masters, which have forgotten nothing themselves, bounds what was forgotten. While their
// horizons are read they are told that grants which this master gave before are void. So an attempt that counts on such a grant can
// be won afterwards only if its other votes were given by then, and are in the horizons.
//
// If fewer masters remember, nothing bounds it but the longest lock that any proxy grants.
type Quarantine struct {
	Reason string
	Since  time.Duration // when this proxy learnt of it
	Until  time.Duration // when it ends, as far as is known
	Known  bool          // Until is from horizons, not from the longest TTL
}

// NewQuarantine begins one. Longest is the longest time that masters keep a lock, rate how far clocks may come apart.
func NewQuarantine(reason string, now, longest time.Duration, rate float64) *Quarantine {
	q := &Quarantine{Reason: reason, Since: now}
	q.Outlast(longest, rate)
	return q
}

// Outlast makes a quarantine of which no more is known last as long as any lock that was granted when it began.
func (q *Quarantine) Outlast(longest time.Duration, rate float64) {
	q.Until = q.Since + stretch(longest, rate)
}

// A Testimony is what one other master says, in a batch that was vouched for.
type Testimony struct {
	Epoch   int64 // of its own canary
	Horizon time.Duration
	Clean   bool  // it is not in quarantine itself
	Fence   int64 // the largest that it has seen, if it is known to have missed none; else 0
}

// Hear takes what other masters said in answer to questions sent after the quarantine began, and heard by now. N is the
// number of all masters. It returns whether they were enough.
func (q *Quarantine) Hear(said []Testimony, n int, now time.Duration, rate float64) bool {
	longest, clean := time.Duration(0), 0
	for _, t := range said {
		//mutant: the horizon of a quarantined master is believed
		if t.Clean {
			clean++
			longest = max(longest, t.Horizon)
		}
	}
	quorum := n/2 + 1
	//mutant: one other master's horizon is enough
	if clean < n-quorum+1 {
		return false
	}
	//mutant: a horizon is taken for over
	q.Until, q.Known = min(q.Until, now+stretch(longest, rate)), true
	return true
}

// Fence returns the largest fence that the quarantined master can have forgotten, or more; 0 if too few others have told. A fence
// that was given out was kept by a quorum, so one of any N−q+1 other masters that have missed none knows it. If they were asked
// before it was kept there, the vote of the quarantined master for it is void, as for a horizon.
func Fence(said []Testimony, n int) int64 {
	largest, known := int64(0), 0
	for _, t := range said {
		if t.Clean && t.Fence > 0 {
			known++
			largest = max(largest, t.Fence)
		}
	}
	//mutant: one other master's fence is enough
	if quorum := n/2 + 1; known < n-quorum+1 {
		return 0
	}
	return largest
}

// stretch returns how long to wait by our clock until so much has passed by another's: both may drift, and Redis expires
// to 1 ms.
func stretch(d time.Duration, rate float64) time.Duration {
	return d + time.Duration(2*rate*float64(d)) + 2*time.Millisecond
}
