package resp

import (
	"time"

	"lockproxy/quorum"
)

// How a client's own commands change the locks that it holds. A command that deletes a lock, or gives it to another token,
// ends the hold. A command that sets its TTL sets the TTL with which the hold goes on.

// extendBy makes an extension that the client asks for. From then on the hold has the TTL of the request or, if the request adds,
// the sum. If no validity can be left of the TTL, the hold ends; see setHeldTTL.
func (h *hold) extendBy(req quorum.ExtendRequest, done func(quorum.Extended)) {
	s := h.session
	h.order.Lock()
	defer h.order.Unlock()
	s.mu.Lock()
	ttl := req.TTL
	if req.Add && h.valid != nil {
		ttl += h.left()
	}
	switch {
	case ttl < s.server.cfg.TTLMin && !req.Add:
		h.stop()
	case ttl >= s.server.cfg.TTLMin && ttl <= s.server.cfg.TTLMax: // else the request is refused, or what it adds to is as good as over
		h.req.TTL = ttl
		if h.valid != nil {
			h.cutShort()
		}
	}
	s.mu.Unlock()
	req.Fenced = !req.Add // the hold goes on, and is to know for how long it is valid
	s.server.engine.Extend(req, func(e quorum.Extended) {
		h.extended(e)
		done(e)
	})
}

// setHeldTTL notes that the client has set the TTL of a key. A hold of the key, or one that is about to begin, is extended by that
// TTL from then on; one that has begun is extended at once. If no validity can be left of the TTL, the client gives the lock up, as
// ShedLock does: the hold ends, and an extension that came behind the change is taken back.
func (s *session) setHeldTTL(key quorum.Key, ttl time.Duration) {
	if ttl <= 0 { // the key is gone
		return
	}
	var ended []*hold
	s.mu.Lock()
	for _, h := range s.holdsOf(key) {
		switch {
		case ttl < s.server.cfg.TTLMin:
			//mutant: a held lock that its client gives up by a short TTL is extended
			h.stop()
			ended = append(ended, h)
		case h.timer != nil:
			h.req.TTL = ttl
			h.cutShort()
			h.timer.Reset(0)
		default:
			h.req.TTL = ttl
		}
	}
	s.mu.Unlock()
	s.giveBack(ended)
}

// holdsOf returns the holds of the key, those that are about to begin first. s.mu is held.
func (s *session) holdsOf(key quorum.Key) (all []*hold) {
	for _, h := range s.coming {
		if h.req.Key == key && !h.over {
			all = append(all, h)
		}
	}
	if h := s.kept[key]; h != nil {
		all = append(all, h)
	}
	return all
}

// endHoldOf ends the hold of that token, if there is one.
func (s *session) endHoldOf(key quorum.Key, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held(key, token); h != nil {
		h.stop()
	}
}

// endHoldUnless ends the hold of the key, unless it is by that token, and says whether one stays. No hold has the token "".
func (s *session) endHoldUnless(key quorum.Key, token string) (held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.holdsOf(key) {
		if h.req.Token != token {
			h.stop()
		}
	}
	return s.held(key, token) != nil
}

// heedPlan ends the holds whose keys a plan that has taken place has deleted, or given to another token, and notes the TTLs that it
// has set.
func (s *session) heedPlan(db int, p *plan) {
	for i := range p.keys {
		switch k, key := &p.keys[i], (quorum.Key{DB: db, Name: p.names.all[i]}); {
		case k.first == "":
		case !k.holds(k.first):
			s.endHoldOf(key, k.first)
		case k.edit.TTL > 0:
			s.setHeldTTL(key, k.edit.TTL)
		}
	}
}

// changing says that a command of the client is under way on the key, and only its outcome will tell whether it has given a lock back, or
// replaced it. An extension that finds the lock gone may have come behind that. s.mu is held.
func (s *session) changing(key quorum.Key) bool {
	for sl := s.head; sl != nil; sl = sl.next {
		if sl.left > 0 && sl.overlap != overlapAny && !sl.waits && sl.touches(key) {
			return true
		}
	}
	return false
}

// held returns the hold of that token, or nil. s.mu is held.
func (s *session) held(key quorum.Key, token string) *hold {
	for _, h := range s.holdsOf(key) {
		if h.req.Token == token {
			return h
		}
	}
	return nil
}
