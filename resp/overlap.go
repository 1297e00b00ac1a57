package resp

import (
	"slices"

	"lockproxy/quorum"
)

// An overlap says which other operations of the client on the same key may be in flight together with this operation; see conflict.
type overlap uint8

const (
	overlapAny   overlap = iota // any, if the others allow the overlap
	overlapLater                // only later ones: the operation changes an expiry, by which an earlier attempt's undo knows its lock
	overlapNone                 // none: the operation reads first and compares then, or asks again
)

// conflict returns the youngest command in flight for which sl must wait, or nil:
//
//   - Any command sent upstream: a client that writes data and gives the lock back in one go relies on their order.
//   - On the same key, a command with overlapNone.
//   - On the same key any command, if sl may not overlap earlier commands. Then sl waits even for a finished attempt that took a lock, until
//     the reply is written: before the write, the lock may be undone.
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

// repliesDone says whether the upstream owes the client no reply. If not, the reader waits for the owed replies.
func (r *replies) repliesDone() bool { return r.done((*slot).owedThere) }

// locksDone says whether no command waits for the engine: a command for the upstream must not overtake such a command. If some
// wait, the reader waits for the youngest of them.
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

// changing says that a command of the client is under way on the key, and may turn out to give a lock back, or to replace a lock.
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

// reads bound the values that one client reads from the masters at once: while masters send large values, all other clients wait.
// replies.mu guards the fields.
type reads struct {
	under int // how many reads are under way
	size  int // the likely size of a reply
}

// greedyBytes is how many bytes one client's reads under way may bring.
const greedyBytes = 1 << 20

// firstReadSize is the assumed size of a client's first reply.
const firstReadSize = 64 << 10

// note notes the size of a read's reply. A long reply counts for some time: half as long with each later reply. Errors tell nothing: a too
// long reply may be the cause of an error.
func (r *reads) note(size int, err error) {
	r.under--
	if err == nil {
		r.size = max(size, r.size/2)
	}
}

// greedy says whether the client's reads under way may bring more than greedyBytes.
func (r *reads) greedy() bool { return r.under*r.size > greedyBytes }

// oldestRead returns the oldest read under way from the slot first on. replies.mu is held.
func oldestRead(first *slot) *slot {
	for sl := first; sl != nil; sl = sl.next {
		if sl.reads && sl.left > 0 {
			return sl
		}
	}
	return nil
}
