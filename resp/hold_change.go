package resp

import (
	"time"

	"lockproxy/quorum"
)

// How a client's own commands change the locks held by the client. A command that deletes a lock, or gives the lock to another token, ends
// the hold. A command that sets the lock's TTL sets the hold's TTL.

// extendBy makes an extension asked for by the client. From then on the hold has the TTL of the request or, if the request adds, the sum.
// If the TTL leaves no validity, the hold ends; see setTTL.
func (h *hold) extendBy(req quorum.ExtendRequest, done func(quorum.Extended)) {
	hs := h.of
	h.order.Lock()
	defer h.order.Unlock()
	hs.mu.Lock()
	ttl := req.TTL
	if req.Add && h.valid != nil {
		ttl += h.left()
	}
	switch {
	case ttl < hs.server.cfg.TTLMin && !req.Add:
		h.stop()
	case ttl >= hs.server.cfg.TTLMin && ttl <= hs.server.cfg.TTLMax: // else the request is refused, or adds to a lock as good as over
		h.req.TTL = ttl
		if h.valid != nil {
			h.cutShort()
		}
	}
	hs.mu.Unlock()
	req.Fenced = !req.Add // the hold goes on, and needs the validity
	hs.server.engine.Extend(req, func(e quorum.Extended) {
		if req.Add && e.Lock != nil {
			h.added(ttl, e.Lock)
		}
		h.extended(e)
		done(e)
	})
}

// added makes the sum that masters told the hold's TTL, in place of the estimate ttl. The estimate is shorter, because masters keep a lock for
// longer than the validity. A TTL that the client has set since stays.
func (h *hold) added(ttl time.Duration, l *quorum.Lock) {
	hs := h.of
	hs.mu.Lock()
	defer hs.mu.Unlock()
	//mutant: a hold shortens what its client has added
	if h.req.TTL == ttl {
		h.req.TTL = max(ttl, time.Until(hs.server.lockOf(l).Until()))
	}
}

// setTTL notes that the client has set the TTL of a key. From then on the TTL is also the TTL of each hold of the key, begun or about to
// begin; a hold that has begun is extended at once. If the TTL leaves no validity, the client gives the lock up, as ShedLock does: the hold
// ends, and an extension that came behind the change is taken back.
func (hs *holds) setTTL(key quorum.Key, ttl time.Duration) {
	if ttl <= 0 { // the key is gone
		return
	}
	var ended []*hold
	hs.mu.Lock()
	for _, h := range hs.all(key) {
		switch {
		case ttl < hs.server.cfg.TTLMin:
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
	hs.mu.Unlock()
	hs.giveBack(ended)
}

// all returns the holds of the key, holds about to begin first. holds.mu is held.
func (hs *holds) all(key quorum.Key) (all []*hold) {
	for _, h := range hs.coming {
		if h.req.Key == key && !h.over {
			all = append(all, h)
		}
	}
	if h := hs.kept[key]; h != nil {
		all = append(all, h)
	}
	return all
}

// end ends the hold of the token, if there is a hold.
func (hs *holds) end(key quorum.Key, token string) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h := hs.held(key, token); h != nil {
		h.stop()
	}
}

// endUnless ends the hold of the key, unless the token is the hold's, and says whether a hold stays. No hold has the token "".
func (hs *holds) endUnless(key quorum.Key, token string) (held bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, h := range hs.all(key) {
		if h.req.Token != token {
			h.stop()
		}
	}
	return hs.held(key, token) != nil
}

// heed adapts the holds to a plan that has taken place: holds whose keys were deleted, or given to another token, end. Other holds take
// over the TTLs set by the plan.
func (hs *holds) heed(db int, p *plan) {
	for i := range p.keys {
		switch k, key := &p.keys[i], (quorum.Key{DB: db, Name: p.names.all[i]}); {
		case k.first == "":
		case !k.holds(k.first):
			hs.end(key, k.first)
		case k.edit.TTL > 0:
			hs.setTTL(key, k.edit.TTL)
		}
	}
}

// find returns the hold of the token, or nil.
func (hs *holds) find(key quorum.Key, token string) *hold {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.held(key, token)
}

// held returns the hold of the token, or nil. holds.mu is held.
func (hs *holds) held(key quorum.Key, token string) *hold {
	for _, h := range hs.all(key) {
		if h.req.Token == token {
			return h
		}
	}
	return nil
}
