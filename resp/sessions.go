package resp

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"lockproxy/quorum"
	"lockproxy/quorum/gate"
)

// sessions are the present sessions.
type sessions struct {
	running *sync.WaitGroup

	mu   sync.Mutex // guards byID; behind replies.mu, before account.mu
	byID map[int64]*session
}

// add enters a session. The caller sees to a call of leave when the session has ended.
func (ss *sessions) add(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID == nil {
		ss.byID = map[int64]*session{}
	}
	ss.byID[s.id] = s
}

// leave takes a session out, and says whether the session was there.
func (ss *sessions) leave(s *session) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID[s.id] != s {
		return false
	}
	delete(ss.byID, s.id)
	return true
}

// evict takes a session out, and has end called on a goroutine of its own. If the session is ending by itself, evict does nothing, and
// returns false.
func (ss *sessions) evict(s *session, end func()) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID[s.id] != s {
		return false
	}
	delete(ss.byID, s.id)
	ss.running.Go(end) // the session is still running
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

// find returns the session with the id, or nil.
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

// keepers returns the session of each lock held by LOCK … HOLD.
func (ss *sessions) keepers() map[quorum.Key]*session {
	all := map[quorum.Key]*session{}
	for _, s := range ss.all() {
		for _, key := range s.holds.keys() {
			all[key] = s
		}
	}
	return all
}

// hurry has each session that holds the lock extend the lock at once: a session that has lost the lock finds out.
func (ss *sessions) hurry(key quorum.Key) {
	for _, s := range ss.all() {
		s.holds.hurry(key)
	}
}

// waitsOf returns the thing that the client with this id waits for, by the first command in the client's queue. w is a lock's waiter. there
// is the id of the client's link, if the client waits at the upstream. Both are zero for the asking client itself.
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
