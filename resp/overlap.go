package resp

import (
	"slices"

	"lockproxy/quorum"
)

// An overlap says which operations of the client on the same key may be in flight together with one; see conflict.
type overlap uint8

const (
	overlapAny   overlap = iota // any, unless those do not allow it
	overlapLater                // only those sent after it: it changes an expiry, by which the undo of an earlier attempt knows its lock
	overlapNone                 // none: it reads first and compares then, or asks again
)

// conflict returns the youngest command in flight that sl must wait for, or nil:
//   - any that went upstream: a client that writes data and gives the lock back in one go relies on their order;
//   - on the same key, one that nothing may overlap;
//   - on the same key any, if sl may overlap nothing sent before it. Then sl waits even for an attempt that is over, if it took a lock
//     and its reply is not written: until that is, the lock may be undone.
//
// mu is held.
func (r *replies) conflict(sl *slot) *slot {
	if sl.overlap == overlapAny && r.alone == 0 && r.owed == 0 {
		return nil // the common case costs nothing
	}
	var found *slot
	others := indexed(sl.others)
	shared := func(name string) bool { return name == sl.key.Name || others.index(name) >= 0 }
	for _, first := range [...]*slot{r.batch, r.head} {
		for other := first; other != nil; other = other.next {
			excludes := sl.overlap != overlapAny && (other.left > 0 || other.takes) || other.overlap == overlapNone && other.left > 0
			if other.owedThere() ||
				excludes && other.key.DB == sl.key.DB && (shared(other.key.Name) || slices.ContainsFunc(other.others, shared)) {
				//mutant: commands overtake each other
				found = other
			}
		}
	}
	return found
}

func (sl *slot) touches(key quorum.Key) bool {
	return sl.key == key || sl.key.DB == key.DB && slices.Contains(sl.others, key.Name)
}

// owedThere says whether replies to the slot's commands are still to come from the upstream.
func (sl *slot) owedThere() bool { return sl.from != proxy && sl.left > 0 }

// repliesDone says whether the upstream owes the client no reply. If it owes some, the reader waits for them.
func (r *replies) repliesDone() bool { return r.done((*slot).owedThere) }

// locksDone says whether no command waits for the engine: a command that goes upstream must not overtake one. If some do, the
// reader waits for them.
func (r *replies) locksDone() bool {
	return r.done(func(sl *slot) bool { return sl.left > 0 && !sl.owedThere() })
}

// done says whether no slot in the queue is pending. If some are, the reader waits for the youngest of them.
func (r *replies) done(pending func(*slot) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waker.waitFor = nil
	for sl := r.head; sl != nil; sl = sl.next {
		if pending(sl) {
			r.waker.waitFor = sl
		}
	}
	return r.waker.waitFor == nil
}

// changing says that a command of the client is under way on the key, and only its outcome will tell whether the client has given a lock
// back, or replaced it.
func (r *replies) changing(key quorum.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for sl := r.head; sl != nil; sl = sl.next {
		if sl.left > 0 && sl.overlap != overlapAny && !sl.waits && sl.touches(key) {
			return true
		}
	}
	return false
}

// reads bound how much the masters are asked for at once by one client that reads large values: while they send that, all others wait.
// replies.mu guards them.
type reads struct {
	under int // way
	size  int // about how long a reply is
}

// greedyBytes is how much the reads of one client that are under way may bring.
const greedyBytes = 1 << 20

// firstReadSize is taken for the length of what a client reads that has read nothing yet.
const firstReadSize = 64 << 10

// note notes how long the reply to a read was. A long one counts for some time: half as long with each that follows. Errors tell
// nothing: one may be due to what was too long.
func (r *reads) note(size int, err error) {
	r.under--
	if err == nil {
		r.size = max(size, r.size/2)
	}
}

// greedy says whether what the client's reads under way bring may come to more than greedyBytes.
func (r *reads) greedy() bool { return r.under*r.size > greedyBytes }

// oldestRead returns the first read under way from the slot first on. replies.mu is held.
func oldestRead(first *slot) *slot {
	for sl := first; sl != nil; sl = sl.next {
		if sl.reads && sl.left > 0 {
			return sl
		}
	}
	return nil
}
