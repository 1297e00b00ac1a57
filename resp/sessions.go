package resp

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"lockproxy/quorum"
	"lockproxy/quorum/gate"
)

// sessions are those of this moment.
type sessions struct {
	running *sync.WaitGroup

	mu   sync.Mutex // guards byID; behind replies.mu, before account.mu
	byID map[int64]*session
}

// add enters a session. The caller sees to it that leave is called when the session has ended.
func (ss *sessions) add(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID == nil {
		ss.byID = map[int64]*session{}
	}
	ss.byID[s.id] = s
}

// leave takes a session out, and says whether it was there.
func (ss *sessions) leave(s *session) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID[s.id] != s {
		return false
	}
	delete(ss.byID, s.id)
	return true
}

// evict takes a session out that somebody else ends by calling end, on a goroutine of its own. It does nothing if the session is ending by
// itself, and says so.
func (ss *sessions) evict(s *session, end func()) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID[s.id] != s {
		return false
	}
	delete(ss.byID, s.id)
	ss.running.Go(end) // the session is still among those that run
	return true
}

// all returns the sessions, the eldest first.
func (ss *sessions) all() []*session {
	ss.mu.Lock()
	all := slices.Collect(maps.Values(ss.byID))
	ss.mu.Unlock()
	slices.SortFunc(all, func(a, b *session) int { return cmp.Compare(a.id, b.id) })
	return all
}

// each calls f with each session, in no order.
func (ss *sessions) each(f func(*session)) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.byID {
		f(s)
	}
}

// there returns the sessions whose clients are not gone, the eldest first.
func (ss *sessions) there() []*session {
	return slices.DeleteFunc(ss.all(), func(of *session) bool { return of.replies.isGone() })
}

// find returns the session of that id, or nil.
func (ss *sessions) find(id int64) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.byID[id]
}

func (ss *sessions) size() int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return len(ss.byID)
}

// keepers returns the session of each client that keeps a lock with HOLD.
func (ss *sessions) keepers() map[quorum.Key]*session {
	all := map[quorum.Key]*session{}
	for _, s := range ss.all() {
		for _, key := range s.holds.keys() {
			all[key] = s
		}
	}
	return all
}

// hurry has sessions that hold the lock extend it at once, by which they find out that they have lost it.
func (ss *sessions) hurry(key quorum.Key) {
	for _, s := range ss.all() {
		s.holds.hurry(key)
	}
}

// waitsOf returns what the client with this id waits for, by the first command in its queue: w if that is a lock; if it is
// something at the upstream, there is the id of its link at the upstream. It returns nothing for the client that asks.
func (ss *sessions) waitsOf(id int64, asks *session) (w *gate.Waiter, there int64) {
	of := ss.find(id)
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
