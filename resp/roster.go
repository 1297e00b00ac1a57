package resp

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"lockproxy/quorum"
	"lockproxy/quorum/gate"
)

// A roster has the sessions of this moment.
type roster struct {
	running *sync.WaitGroup

	mu   sync.Mutex // guards byID; behind replies.mu, before account.mu
	byID map[int64]*session
}

// add enters a session. The caller sees to it that leave is called when the session has ended.
func (r *roster) add(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = map[int64]*session{}
	}
	r.byID[s.id] = s
}

// leave takes a session out, and says whether it was there.
func (r *roster) leave(s *session) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[s.id] != s {
		return false
	}
	delete(r.byID, s.id)
	return true
}

// evict takes a session out that somebody else ends by calling end, on a goroutine of its own. It does nothing if the session is ending by
// itself, and says so.
func (r *roster) evict(s *session, end func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[s.id] != s {
		return false
	}
	delete(r.byID, s.id)
	r.running.Go(end) // the session is still among those that run
	return true
}

// all returns the sessions, the eldest first.
func (r *roster) all() []*session {
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.byID))
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b *session) int { return cmp.Compare(a.id, b.id) })
	return all
}

// each calls f with each session, in no order.
func (r *roster) each(f func(*session)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.byID {
		f(s)
	}
}

// there returns the sessions whose clients are not gone, the eldest first.
func (r *roster) there() []*session {
	return slices.DeleteFunc(r.all(), func(of *session) bool { return of.replies.isGone() })
}

// find returns the session of that id, or nil.
func (r *roster) find(id int64) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

func (r *roster) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}

// keepers returns the address of each client that keeps a lock with HOLD.
func (r *roster) keepers() map[quorum.Key]string {
	all := map[quorum.Key]string{}
	for _, s := range r.all() {
		for _, key := range s.holds.keys() {
			all[key] = s.addr()
		}
	}
	return all
}

// hurry has sessions that hold the lock extend it at once, by which they find out that they have lost it.
func (r *roster) hurry(key quorum.Key) {
	for _, s := range r.all() {
		s.holds.hurry(key)
	}
}

// waitsOf returns what the client with this id waits for, by the first command in its queue: w if that is a lock; if it is
// something at the upstream, there is the id of its link at the upstream. It returns nothing for the client that asks.
func (r *roster) waitsOf(id int64, asks *session) (w *gate.Waiter, there int64) {
	of := r.find(id)
	if of == nil || of == asks {
		return nil, 0
	}
	if there = of.uplink.waitsThere(); there != 0 {
		return nil, there
	}
	of.replies.mu.Lock()
	defer of.replies.mu.Unlock()
	return of.waits.of(of.replies.head), 0
}
