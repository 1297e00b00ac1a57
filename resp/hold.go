package resp

import (
	"slices"
	"sync"
	"time"

	"lockproxy/quorum"
)

// A hold is a lock that lives as long as its client's connection. It is extended each time a third of its TTL has passed,
// until the client gives it back or replaces it, or is gone: then it is released at once. If an attempt to extend it finds that the
// token does not hold it any more, or its validity ends before a quorum could be asked, it is lost, and the client is told.
//
// If its client itself extends it, the TTL that it asked for is the hold's from then on: an extension of ours must not
// make the lock end before the client was told it would, nor come after a shorter TTL is over.
type hold struct {
	of    *holds
	req   quorum.AcquireRequest // holds.mu guards its TTL
	order sync.Mutex            // held while an extension is chosen and submitted; before holds.mu

	// holds.mu guards what follows.
	valid lock          // tells until when the lock is valid, and counts a sleep of this machine, as a time would not. Nil while timer is nil
	cut   time.Duration // by how much sooner it may be over: see cutShort
	fence int64
	size  int         // bytes that the memory budget counts for it
	timer *time.Timer // nil: the reply to the LOCK is not written yet
	over  bool        // it must not be extended any more
}

// arrived notes that the LOCK is over. holds.mu is held.
func (h *hold) arrived() {
	hs := h.of
	hs.coming = slices.DeleteFunc(hs.coming, func(other *hold) bool { return other == h })
}

// free gives back the memory that is counted for it. holds.mu is held.
func (h *hold) free() {
	h.of.memory.drop(h.size)
	h.size = 0
}

// acquired takes the outcome of the LOCK before its slot does. If the lock is granted, begin is called when the reply is written.
func (h *hold) acquired(a quorum.Acquired) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if h.fence = a.Fence; a.Lock == nil {
		h.arrived()
		h.free()
	}
}

// left is for how long the lock is still valid. holds.mu is held.
func (h *hold) left() time.Duration { return max(time.Until(h.until()), 0) }

func (h *hold) until() time.Time { return h.valid.Until().Add(-h.cut) }

// cutShort lets the lock be valid for no more than its TTL from now on. If its client has made that shorter, masters may keep the lock for
// no longer already, whatever they answer. holds.mu is held.
func (h *hold) cutShort() { h.cut += max(h.left()-h.req.TTL, 0) }

// nextIn is how long to wait before the next extension: a third of the TTL, or of what is left of the validity if that is less, as
// after a late answer. holds.mu is held.
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
	if !over { // if a release overtakes the extension, that finds nothing to extend
		hs.server.engine.Extend(quorum.ExtendRequest{Key: h.req.Key, Token: h.req.Token, TTL: ttl, Fenced: true}, h.extended)
	}
}

// extended takes the outcome.
func (h *hold) extended(e quorum.Extended) {
	hs := h.of
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h.over || h.timer == nil {
		return
	}
	switch left := h.left(); {
	case e.Held:
		was := h.until()
		h.valid, h.cut = hs.server.lockOf(e.Lock), 0
		if h.cutShort(); h.cut > 0 { // it is an earlier extension, which was answered when the TTL had been made shorter
			h.cut += max(h.until().Sub(was), 0)
		}
		//mutant: a held lock is extended once
		h.timer.Reset(h.nextIn())
	//mutant: a held lock that its client is giving back is lost
	case left > 0 && (e.Err != nil || hs.replies.changing(h.req.Key)): // it is still valid: masters may come back in time, or its client has ended it
		h.timer.Reset(min(left, max(h.req.TTL/20, 10*time.Millisecond)))
	default:
		h.stop()
		hs.lose(h)
	}
}
