package resp

import (
	"slices"
	"sync"
	"time"

	"lockproxy/quorum"
)

// A hold is a lock that lives as long as its client's connection. The hold is extended each time a third of its TTL has passed. Three
// events end a hold:
//
//   - The client gives the lock back, or replaces the lock.
//   - The connection ends: the lock is released at once.
//   - The lock is lost, because the token does not hold the lock any more, or the validity ends before a quorum could be asked. The client is told.
//
// If the client itself extends the lock, the hold takes over the TTL asked for. An extension by the hold must not make the lock end earlier
// than the client was told, nor come after the end of a shorter TTL.
type hold struct {
	of    *holds
	req   quorum.AcquireRequest // holds.mu guards the TTL
	order sync.Mutex            // held while an extension is chosen and submitted; before holds.mu

	// holds.mu guards the fields from here on.
	valid lock          // has the end of the validity, and counts a sleep of this machine, unlike a time.Time; nil while timer is nil
	cut   time.Duration // how much earlier than valid the lock may be over: see cutShort
	fence int64
	size  int         // bytes counted by the memory budget for the hold
	timer *time.Timer // nil: the reply to the LOCK is not written yet
	over  bool        // the lock must not be extended any more
}

// arrived notes that the LOCK is over. holds.mu is held.
func (h *hold) arrived() {
	hs := h.of
	hs.coming = slices.DeleteFunc(hs.coming, func(other *hold) bool { return other == h })
}

// free gives back the hold's memory. holds.mu is held.
func (h *hold) free() {
	h.of.memory.drop(h.size)
	h.size = 0
}

// acquired takes the outcome of the LOCK before the slot does. If the lock is granted, begin is called when the reply is written.
func (h *hold) acquired(a quorum.Acquired) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if h.fence = a.Fence; a.Lock == nil {
		h.arrived()
		h.free()
	}
}

// left is the validity left to the lock. holds.mu is held.
func (h *hold) left() time.Duration { return max(time.Until(h.until()), 0) }

func (h *hold) until() time.Time { return h.valid.Until().Add(-h.cut) }

// cutShort cuts the validity to one TTL from now. After a client's shortening, masters may keep the lock no longer than that, whatever they
// answer. holds.mu is held.
func (h *hold) cutShort() { h.cut += max(h.left()-h.req.TTL, 0) }

// nextIn is the wait before the next extension: a third of the TTL, or of the validity left if that is less, as after a late answer.
// holds.mu is held.
func (h *hold) nextIn() time.Duration { return min(h.req.TTL, h.left()) / 3 }

// stop ends the extensions. holds.mu is held.
func (h *hold) stop() {
	h.over = true
	if h.timer == nil {
		return
	}
	h.timer.Stop()
	h.free()
	if h.of.kept[h.req.Key] == h {
		delete(h.of.kept, h.req.Key)
		h.of.server.counters.held.Add(-1)
	}
}

// extend asks a quorum for another TTL.
func (h *hold) extend() {
	hs := h.of
	h.order.Lock()
	defer h.order.Unlock()
	hs.mu.Lock()
	over, ttl := h.over, h.req.TTL
	hs.mu.Unlock()
	if !over { // an extension overtaken by a release finds nothing to extend
		hs.server.engine.Extend(quorum.ExtendRequest{Key: h.req.Key, Token: h.req.Token, TTL: ttl, Fenced: true}, h.extended)
	}
}

// extended takes the outcome of an extension.
func (h *hold) extended(e quorum.Extended) {
	hs := h.of
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h.over || h.timer == nil {
		return
	}
	switch left := h.left(); {
	case e.Held && e.Lock != nil: // nil: so little was added to a lock as good as over that nothing is promised
		was := h.until()
		h.valid, h.cut = hs.server.lockOf(e.Lock), 0
		if h.cutShort(); h.cut > 0 { // the answer is to an earlier extension, from before the TTL was shortened
			h.cut += max(h.until().Sub(was), 0)
		}
		//mutant: a held lock is extended once
		h.timer.Reset(h.nextIn())
	//mutant: a held lock that its client is giving back is lost
	case left > 0 && (e.Err != nil || hs.replies.changing(h.req.Key)): // still valid: masters may come back in time, or the client has ended the lock
		h.timer.Reset(min(left, max(h.req.TTL/20, 10*time.Millisecond)))
	default:
		h.stop()
		hs.lose(h)
	}
}
