package vouch

import "time"

// A Quarantine is the time in which a master's grants do not count, because the master may have forgotten locks.
//
// A quarantine ends when no forgotten lock can still be held. A lock has a quorum, so at least one of any N−q+1 other
// masters granted the lock. Each of these carries a horizon, the longest time for which any lock granted there may
// still live. So the largest horizon of N−q+1 other masters, which have forgotten nothing themselves, bounds the
// forgotten locks. While their horizons are read, the others are told that earlier grants of this master are void. So
// an attempt that counts on such a grant can win afterwards only if its other votes were given before, and are in the
// horizons.
//
// If fewer masters remember, the only bound is the longest lock that any proxy grants.
type Quarantine struct {
	Reason string
	Since  time.Duration // when this proxy learnt of the quarantine
	Until  time.Duration // the end, as far as known
	Known  bool          // Until is from horizons, not from the longest TTL
}

// NewQuarantine begins a quarantine. longest is the longest time for which masters keep a lock; rate is how far clocks
// may come apart.
func NewQuarantine(reason string, now, longest time.Duration, rate float64) *Quarantine {
	q := &Quarantine{Reason: reason, Since: now}
	q.Outlast(longest, rate)
	return q
}

// Outlast makes a quarantine last as long as any lock that was granted when the quarantine began. Outlast is for a
// quarantine of which no more is known.
func (q *Quarantine) Outlast(longest time.Duration, rate float64) {
	q.Until = q.Since + stretch(longest, rate)
}

// A Report is the statement of one other master, in a batch that was vouched for.
type Report struct {
	Epoch   int64 // of the other master's own canary
	Horizon time.Duration
	Clean   bool  // the other master is not in quarantine itself
	Fence   int64 // the largest fence seen there, if that master is known to have missed none; else 0
}

// Hear takes the statements of other masters, in answer to questions sent after the quarantine began, and heard by now.
// n is the number of all masters. Hear returns whether the statements were enough.
func (q *Quarantine) Hear(said []Report, n int, now time.Duration, rate float64) bool {
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

// Fence returns the largest fence that the quarantined master can have forgotten, or more; 0 if too few other masters
// have told. A fence that was given out was kept by a quorum, so at least one of any N−q+1 other masters that have
// missed none knows it. If that master was asked before it kept the fence, the vote of the quarantined master for the
// fence is void, as for a horizon.
func Fence(said []Report, n int) int64 {
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

// stretch returns how long to wait by our clock until d has passed by another clock: both may drift, and Redis expires
// to 1 ms.
func stretch(d time.Duration, rate float64) time.Duration {
	return d + time.Duration(2*rate*float64(d)) + 2*time.Millisecond
}
