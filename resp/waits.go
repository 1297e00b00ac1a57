package resp

import (
	"maps"
	"slices"
	"sync"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/gate"
)

// waits are one connection's LOCK … WAITs under way. Once the client is gone, their places in the gates are given up.
type waits struct {
	mu     sync.Mutex             // guards bySlot; after replies.mu
	bySlot map[*slot]*gate.Waiter // nil: the LOCK is not in its gate yet
}

// begin notes that the slot's LOCK waits, and returns the function that takes its outcome.
func (w *waits) begin(sl *slot, done func(quorum.Acquired)) func(quorum.Acquired) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bySlot == nil {
		w.bySlot = map[*slot]*gate.Waiter{}
	}
	w.bySlot[sl] = nil
	began := time.Now()
	return func(a quorum.Acquired) {
		w.mu.Lock()
		delete(w.bySlot, sl)
		w.mu.Unlock()
		sl.replies.server.noteWait(sl.key, began, &a)
		done(a)
	}
}

// entered notes the waiter of a LOCK, unless the LOCK is over already.
func (w *waits) entered(sl *slot, waiter *gate.Waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, waits := w.bySlot[sl]; waits {
		w.bySlot[sl] = waiter
	}
}

// of returns the waiter of the slot's LOCK; nil if the LOCK does not wait.
func (w *waits) of(sl *slot) *gate.Waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bySlot[sl]
}

// any says whether a LOCK waits.
func (w *waits) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.bySlot) > 0
}

// cancel ends all waits: the client is gone. Only the reader calls it, and only the reader begins waits.
func (w *waits) cancel() {
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.bySlot))
	w.mu.Unlock()
	for _, waiter := range all {
		waiter.Cancel()
	}
}
