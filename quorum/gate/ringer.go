package gate

import (
	"math/bits"
	"time"
)

// A ringer makes one ringing of the bells of N masters. Bells say nothing of what was released; but of each release a
// quorum rings, every master once, and a bell comes after its master has released. So whoever tries after a quorum rang
// finds the resource free.
//
// What has rung before a try, the try has seen. If a quorum had, and the try got the lock, then a master that has not rung
// yet is late, and its next bell belongs to that same release. It may belong to the next one, if the master never saw
// this one; but any quorum that rings for the next has a master among those that rang for this, so that it is heard.
// If the try did not get the lock, every bell counts.
type ringer struct {
	rang  uint64 // by master: since the last try
	first time.Time
	seen  uint64 // a quorum that rang before the last try, and those that were late
	late  uint64 // of seen, which were late
}

func (r *ringer) ring(master int, now time.Time) {
	bit := uint64(1) << master
	if r.seen != 0 && r.seen&bit == 0 {
		r.seen |= bit
		r.late |= bit
		return
	}
	r.add(bit, now)
}

func (r *ringer) add(masters uint64, now time.Time) {
	if r.rang == 0 {
		r.first = now
	}
	r.rang |= masters
}

// heed is called before a try.
func (r *ringer) heed(quorum int) {
	seen := r.rang
	if bits.OnesCount64(seen) < quorum {
		seen = 0
	}
	*r = ringer{seen: seen}
}

// missed is called after a try that did not get the lock.
func (r *ringer) missed(now time.Time) {
	if r.late != 0 {
		r.add(r.late, now)
	}
	r.seen, r.late = 0, 0
}

// at returns when the resource is to be tried because of the bells, if it is: at once if a quorum rang.
func (r *ringer) at(quorum int) (time.Time, bool) {
	if bits.OnesCount64(r.rang) >= quorum {
		return r.first, true
	}
	return r.first.Add(ringWait), r.rang != 0
}
