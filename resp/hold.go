package resp

import (
	"cmp"
	"slices"
	"strings"
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
	session *session
	req     quorum.AcquireRequest // session.mu guards its TTL
	order   sync.Mutex            // held while an extension is chosen and submitted; before session.mu

	// session.mu guards what follows.
	valid lock          // tells until when the lock is valid, and counts a sleep of this machine, as a time would not. Nil while timer is nil
	cut   time.Duration // by how much sooner it may be over: see cutShort
	fence int64
	size  int         // bytes that the memory budget counts for it
	timer *time.Timer // nil: the reply to the LOCK is not written yet
	over  bool        // it must not be extended any more
}

// holds are the locks that a session holds. session.mu guards them.
type holds struct {
	kept   map[quorum.Key]*hold
	coming []*hold // of LOCKs under way: later commands of the client may change or end them
	lost   losses
}

// holdsMax bounds what a connection may hold: each is extended three times in a TTL.
const holdsMax = 1024

func (s *session) holdsFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept)+len(s.coming) >= holdsMax
}

// newHold makes the hold of a LOCK. It copies the key and the token, so as not to keep the whole command alive. It returns nil if
// there is no memory for it.
func newHold(s *session, req quorum.AcquireRequest) *hold {
	size := slotMemory + s.server.engagement + len(req.Key.Name) + len(req.Token)
	if !s.memory.keep(size) {
		return nil
	}
	req.Key.Name, req.Token = strings.Clone(req.Key.Name), strings.Clone(req.Token)
	h := &hold{session: s, req: req, size: size}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.coming = append(s.coming, h)
	return h
}

// arrived notes that the LOCK is over. s.mu is held.
func (h *hold) arrived() {
	s := h.session
	s.coming = slices.DeleteFunc(s.coming, func(other *hold) bool { return other == h })
}

// free gives back the memory that is counted for it. s.mu is held.
func (h *hold) free() {
	h.session.memory.drop(h.size)
	h.size = 0
}

// acquired takes the outcome of the LOCK before its slot does. If the lock is granted, beginHold is called when the reply is written.
func (h *hold) acquired(a quorum.Acquired) {
	h.session.mu.Lock()
	defer h.session.mu.Unlock()
	if h.fence = a.Fence; a.Lock == nil {
		h.arrived()
		h.free()
	}
}

// beginHold begins to extend the lock of a slot whose reply is about to be written, if the lock was granted and is to be held. If
// the write fails, the session ends, and releases the lock.
func (s *session) beginHold(sl *slot) {
	h := sl.hold
	if h == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.arrived()
	if sl.out.done == 0 || h.over { // it was refused, or given back meanwhile
		h.free()
		return
	}
	if s.kept == nil {
		s.kept = map[quorum.Key]*hold{}
	}
	if old := s.kept[h.req.Key]; old != nil {
		old.stop() // its lock has been lost, or this one could not have been taken
	}
	s.kept[h.req.Key] = h
	s.server.counters.held.Add(1)
	h.valid = sl.out.lock
	h.cutShort()
	//mutant: a held lock is not extended
	h.timer = time.AfterFunc(h.nextIn(), h.extend)
}

// left is for how long the lock is still valid. s.mu is held.
func (h *hold) left() time.Duration { return max(time.Until(h.until()), 0) }

func (h *hold) until() time.Time { return h.valid.Until().Add(-h.cut) }

// cutShort lets the lock be valid for no more than its TTL from now on. If its client has made that shorter, masters may keep the lock for
// no longer already, whatever they answer. s.mu is held.
func (h *hold) cutShort() { h.cut += max(h.left()-h.req.TTL, 0) }

// nextIn is how long to wait before the next extension: a third of the TTL, or of what is left of the validity if that is less, as
// after a late answer. s.mu is held.
func (h *hold) nextIn() time.Duration { return min(h.req.TTL, h.left()) / 3 }

// hurryOverdue extends at once each lock that is not valid any more, as after a sleep of this machine, which timers do not count.
// s.mu is held.
func (s *session) hurryOverdue() {
	for _, h := range s.kept {
		if h.left() == 0 {
			h.timer.Reset(0)
		}
	}
}

// stop ends the extensions. s.mu is held.
func (h *hold) stop() {
	h.over = true
	if h.timer == nil {
		return
	}
	h.timer.Stop()
	h.free()
	if h.session.kept[h.req.Key] == h {
		delete(h.session.kept, h.req.Key)
		h.session.server.counters.held.Add(-1)
	}
}

// extend asks a quorum for another TTL.
func (h *hold) extend() {
	s := h.session
	h.order.Lock()
	defer h.order.Unlock()
	s.mu.Lock()
	over, ttl := h.over, h.req.TTL
	s.mu.Unlock()
	if !over { // if a release overtakes the extension, that finds nothing to extend
		s.server.engine.Extend(quorum.ExtendRequest{Key: h.req.Key, Token: h.req.Token, TTL: ttl, Fenced: true}, h.extended)
	}
}

// extended takes the outcome.
func (h *hold) extended(e quorum.Extended) {
	s := h.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.over || h.timer == nil {
		return
	}
	switch left := h.left(); {
	case e.Held:
		was := h.until()
		h.valid, h.cut = s.server.lockOf(e.Lock), 0
		if h.cutShort(); h.cut > 0 { // it is an earlier extension, which was answered when the TTL had been made shorter
			h.cut += max(h.until().Sub(was), 0)
		}
		//mutant: a held lock is extended once
		h.timer.Reset(h.nextIn())
	//mutant: a held lock that its client is giving back is lost
	case left > 0 && (e.Err != nil || s.changing(h.req.Key)): // it is still valid: masters may come back in time, or its client has ended it
		h.timer.Reset(min(left, max(h.req.TTL/20, 10*time.Millisecond)))
	default:
		h.stop()
		s.lose(h.req.Key, h.fence)
	}
}

// releaseHolds releases all that the session holds. Shutdown waits for it.
func (s *session) releaseHolds() {
	s.mu.Lock()
	var all []*hold
	for _, h := range s.kept {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *hold) int { return cmp.Compare(a.fence, b.fence) }) // as they were taken
	for _, h := range all {
		h.stop()
	}
	for _, h := range s.coming { // their replies will not be written
		h.free()
	}
	s.lost.clear()
	s.mu.Unlock()
	s.giveBack(all)
}

// releaseComing releases the locks that LOCKs were granted, but whose replies are not written yet. No LOCK waits for the engine.
func (s *session) releaseComing() {
	s.mu.Lock()
	var all []*hold
	for _, h := range s.coming {
		if !h.over {
			h.stop()
			all = append(all, h)
		}
	}
	s.mu.Unlock()
	s.giveBack(all)
}

func (s *session) giveBack(all []*hold) {
	for _, h := range all {
		s.server.running.Add(1)
		s.server.engine.Release(h.req.Key, h.req.Token, func(quorum.Released) { s.server.running.Done() })
	}
}
