package resp

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	valid lock // tells until when; not a time, which a sleep of this machine would make later. Nil as long as timer
	fence int64
	size  int         // bytes that the memory budget counts for it
	timer *time.Timer // nil: the reply to the LOCK is not written yet
	over  bool        // it must not be extended any more
}

// holds are the locks that a session holds. session.mu guards them, except lost.
type holds struct {
	kept     map[quorum.Key]*hold
	coming   []*hold                 // of LOCKs under way, for what the client sends behind them
	lostKeys map[quorum.Key]struct{} // whose loss the next command on them will be told
	lost     atomic.Int32            // how many there are
}

// holdsMax bounds what a connection may hold: each is extended three times in a TTL.
const holdsMax = 1024

// lostChannel begins the names of the channels on which losses are published; the rest is the key. The message is the fence
// of the lock, for others may listen who hold the key by now, or one of that name in another database.
const lostChannel = reservedPrefix + "lost:"

func (s *session) holdsFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept)+len(s.coming) >= holdsMax
}

// newHold keeps no more alive of the command than its words. It returns nil if there is no memory for it.
func newHold(s *session, req quorum.AcquireRequest) *hold {
	size := slotMemory + s.server.engagement + len(req.Key.Name) + len(req.Token)
	if !s.server.memory.keep(size) {
		return nil
	}
	req.Key.Name, req.Token = strings.Clone(req.Key.Name), strings.Clone(req.Token)
	h := &hold{session: s, req: req, size: size}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.coming = append(s.coming, h)
	return h
}

// came notes that the LOCK is over. s.mu is held.
func (h *hold) came() {
	s := h.session
	s.coming = slices.DeleteFunc(s.coming, func(other *hold) bool { return other == h })
}

// free gives back the memory that is counted for it. s.mu is held.
func (h *hold) free() {
	h.session.server.memory.sub(h.size)
	h.size = 0
}

// acquired takes the outcome of the LOCK on its way to its slot. If it is granted, keep is called when it is written.
func (h *hold) acquired(a quorum.Acquired, next func(quorum.Acquired)) {
	h.note(a)
	next(a)
}

func (h *hold) note(a quorum.Acquired) {
	h.session.mu.Lock()
	defer h.session.mu.Unlock()
	if h.fence = a.Fence; a.Lock == nil {
		h.came()
		h.free()
	}
}

// keep begins to extend the lock of a slot whose reply is about to be written, if it is to be held and was granted. If that
// fails, the session has ended.
func (s *session) keep(sl *slot) {
	h := sl.hold
	if h == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.came()
	if sl.out.done == 0 || h.over { // it was given back meanwhile
		h.free()
		return
	}
	if s.kept == nil {
		s.kept = map[quorum.Key]*hold{}
	}
	if old := s.kept[h.req.Key]; old != nil {
		old.stop() // it has been lost, or this one could not have been taken
	}
	s.kept[h.req.Key] = h
	s.server.counters.held.Add(1)
	h.valid = sl.out.lock
	h.timer = time.AfterFunc(h.rest(), h.extend)
}

// left is how long it is valid. s.mu is held.
func (h *hold) left() time.Duration { return max(time.Until(h.valid.Until()), 0) }

// rest is how long to wait before it is extended: a third of its TTL, or less where the reply came so late, or an answer, that
// little is left. s.mu is held.
func (h *hold) rest() time.Duration { return min(h.req.TTL, h.left()) / 3 }

// hurryOverdue extends at once what is not valid any more, as after a sleep of this machine, of which timers know nothing.
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
	if !over { // if a release overtakes it, it finds nothing to extend
		s.server.engine.Extend(quorum.ExtendRequest{Key: h.req.Key, Token: h.req.Token, TTL: ttl, Fenced: true}, h.extended)
	}
}

// extendBy does what its client asks for, and is that from then on: of an addition, what it comes to.
func (h *hold) extendBy(req quorum.ExtendRequest, done func(quorum.Extended)) {
	s := h.session
	h.order.Lock()
	defer h.order.Unlock()
	s.mu.Lock()
	ttl := req.TTL
	if req.Add && h.valid != nil {
		ttl += h.left()
	}
	if ttl <= s.server.cfg.TTLMax { // else it is refused
		h.req.TTL = ttl
	}
	s.mu.Unlock()
	s.server.engine.Extend(req, func(e quorum.Extended) {
		h.extended(e)
		done(e)
	})
}

// holdBy notes that its client has set the TTL of a key: what is held, or about to be, is extended by that from then on, and what
// is held at once.
func (s *session) holdBy(key quorum.Key, ttl time.Duration) {
	if ttl <= 0 { // it is gone
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.coming {
		if h.req.Key == key {
			h.req.TTL = ttl
		}
	}
	if h := s.kept[key]; h != nil {
		h.req.TTL = ttl
		h.timer.Reset(0)
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
		h.valid = s.server.lockOf(e.Lock)
		s.server.taken.prolong(h.req.Key, e.Until)
		h.timer.Reset(h.rest())
	case e.Err != nil && left > 0: // as long as it is valid, masters may come back
		h.timer.Reset(min(left, max(h.req.TTL/20, 10*time.Millisecond)))
	default:
		h.stop()
		s.lose(h.req.Key, h.fence)
	}
}

// lose tells the client, by push if it speaks RESP3, and in place of its next command on the key; and everybody by a
// message. s.mu is held.
func (s *session) lose(key quorum.Key, fence int64) {
	if s.closing.Load() || s.gone {
		return
	}
	s.server.counters.heldLost.Add(1)
	s.server.log.Warn("a held lock was lost: it could not be extended", "key", clip(key.Name, echoMax), "db", key.DB,
		"client", s.addr(), "id", s.id)
	if s.lostKeys == nil {
		s.lostKeys = map[quorum.Key]struct{}{}
	}
	if _, told := s.lostKeys[key]; !told && len(s.lostKeys) < holdsMax {
		s.lostKeys[key] = struct{}{}
		s.lost.Add(1)
	}
	if s.resp3 {
		sl := newSlot(s)
		sl.reply, sl.resp3 = Push{Bulk("lost"), Bulk(key.Name), Int(fence)}, true
		s.insert(sl)
		s.ready.Signal()
	}
	s.server.running.Go(func() { // for s.mu is held; and as it is not gone, Shutdown waits for the session still
		s.server.engine.Publish(lostChannel+key.Name, strconv.FormatInt(fence, 10), func(quorum.Published) {})
	})
}

// tellLost refuses a command on a key whose loss the client has not been told, and so an EXEC of one that was queued before.
// s.mu is not held.
func (c *call) tellLost(cmd *command) Reply {
	var names []string
	switch {
	case cmd.name == "exec":
		names = c.transaction.keys()
	case cmd.group != "pubsub": // whose keys are channels
		names = cmd.keys.of(c.args)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		key := c.key(name)
		if _, lost := c.lostKeys[key]; lost {
			delete(c.lostKeys, key)
			c.lost.Add(-1)
			return errLost(name)
		}
	}
	return nil
}

// regain takes back the news of a loss where the reply about to be written is better: the client has a lock of the key again.
func (s *session) regain(sl *slot) {
	if !sl.out.taken || s.lost.Load() == 0 {
		return
	}
	taken := sl.out.lock.AppendTaken(nil) // not all keys of the command: an EXEC may only read some
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, what := range taken {
		if _, lost := s.lostKeys[what.Key]; lost {
			delete(s.lostKeys, what.Key)
			s.lost.Add(-1)
		}
	}
}

// letGo ends the hold of that token, if there is one.
func (s *session) letGo(key quorum.Key, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held(key, token); h != nil {
		h.stop()
	}
}

// letGoBut ends the hold of the key, unless it is by that token: its client deletes or replaces the lock, whatever comes of that.
// It says whether one stays.
func (s *session) letGoBut(key quorum.Key, token string) (held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.coming {
		if h.req.Key == key && h.req.Token != token {
			h.stop()
		}
	}
	if h := s.kept[key]; h != nil && h.req.Token != token {
		h.stop()
	}
	return s.held(key, token) != nil
}

// heedPlan ends the holds whose keys a plan that has taken place has deleted, or given to another token, and notes the TTLs that it
// has set.
func (s *session) heedPlan(db int, p *plan) {
	for i := range p.keys {
		switch k, key := &p.keys[i], (quorum.Key{DB: db, Name: p.names[i]}); {
		case k.first == "":
		case !k.holds(k.first):
			s.letGo(key, k.first)
		case k.edit.TTL > 0:
			s.holdBy(key, k.edit.TTL)
		}
	}
}

// held returns the hold of that token, or nil. s.mu is held.
func (s *session) held(key quorum.Key, token string) *hold {
	for _, h := range s.coming {
		if h.req.Key == key && h.req.Token == token && !h.over {
			return h
		}
	}
	if h := s.kept[key]; h != nil && h.req.Token == token {
		return h
	}
	return nil
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
	for _, h := range s.coming { // nobody will be told
		h.free()
	}
	clear(s.lostKeys)
	s.lost.Store(0)
	s.mu.Unlock()
	s.giveBack(all)
}

// releaseComing releases what LOCKs have just been granted, but have not been told. No LOCK is under way.
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
		s.server.engine.Release(h.req.Key, h.req.Token, func(r quorum.Released) {
			if r.Held {
				s.server.taken.drop(h.req.Key, h.req.Token)
			}
			s.server.running.Done()
		})
	}
}
