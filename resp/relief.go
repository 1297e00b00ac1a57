package resp

import (
	"cmp"
	"slices"
	"time"
)

// Where memory is spent, the client that asks for more is seldom the cause: a publisher is refused its message because subscribers do
// not read theirs. So others are ended for it, as Redis does with slow readers.

// Why a client was ended in favour of others.
const (
	evictedReader   = "max_memory is spent: of all clients it held most that it had not read"
	evictedSender   = "max_memory is spent: of all clients it held most that it had sent ahead, or not whole"
	evictedStranger = "memory for clients that have not logged in is spent, and it held some for longest"
	evictedForPlace = "there are max_clients, and of those that have not logged in it connected first"
)

// relieve ends clients, so that n bytes more may fit into the budget of the account. It returns false if nobody but the client itself
// is to go: then it is refused. replies.mu may be held.
func (s *Server) relieve(a *account, n int, most share) bool {
	b := a.of()
	switch {
	case b == &s.strangers.budget:
		if eldest := s.strangers.eldestHolding(); eldest != nil && eldest != a.session {
			s.evict(eldest, evictedStranger)
			return true
		}
	case b != nil:
		return s.evictHolders(a.session, b.lacks(n, most))
	}
	return false
}

// A holder is a client that has something which only the client itself can have done with, by reading or sending on.
type holder struct {
	session *session
	cause   string
	size    int64
}

// reliefPause is how long nobody is looked for after a look that was in vain: it is at all clients.
const reliefPause = 10 * time.Millisecond

// evictHolders ends clients until as much is given back as lacks, and a sixteenth of the budget more, so that it need not be done for
// each message: those that hold most unread replies and messages first, then those that hold most of a command not sent whole. It ends none,
// and returns false, if that would not suffice, or if the client that asks would be the first to go.
func (s *Server) evictHolders(asks *session, lacks int64) bool {
	s.reliefMu.Lock()
	defer s.reliefMu.Unlock()
	if lacks <= 0 {
		return true
	}
	if time.Since(s.relievedInVain) < reliefPause {
		s.memory.refused.Add(1)
		return false
	}
	holders := s.holders(func(*session) bool { return true })
	var all int64
	for _, h := range holders {
		all += h.size
	}
	switch {
	case all < lacks:
		s.relievedInVain = time.Now()
		fallthrough
	case holders[0].session == asks && holders[0].cause == evictedSender:
		s.memory.refused.Add(1)
		return false
	case holders[0].session == asks:
		s.counters.evicted.Add(1)
		return false
	}
	s.evictUntil(holders, asks, lacks, s.memory.max/16)
	return true
}

// evictUntil ends holders, except asks, until as much is given back as lacks; then, until spare is, those that hold flushSize at least.
func (s *Server) evictUntil(holders []holder, asks *session, lacks, spare int64) {
	for _, h := range holders {
		switch {
		case h.session == asks:
		case lacks > 0, lacks+spare > 0 && h.size >= flushSize:
			lacks -= h.session.memory.totalOf(&s.memory)
			s.evict(h.session, h.cause)
		}
	}
}

// holders returns those clients that hold something, in the order in which they are to go.
func (s *Server) holders(which func(*session) bool) []holder {
	var readers, senders []holder
	s.mu.Lock()
	for _, sess := range s.sessions {
		all := sess.memory.totalOf(&s.memory)
		unread, unsent := min(sess.replies.backlog.outBytes.Load(), all), min(sess.in.counted.Load(), all)
		switch {
		case !which(sess):
		case unread >= countedFrom:
			readers = append(readers, holder{sess, evictedReader, unread})
		case unsent >= countedFrom:
			senders = append(senders, holder{sess, evictedSender, unsent})
		}
	}
	s.mu.Unlock()
	largest := func(a, b holder) int { return cmp.Compare(b.size, a.size) }
	slices.SortFunc(readers, largest)
	slices.SortFunc(senders, largest)
	return append(readers, senders...)
}

// relieveScarce ends clients that have read nothing for a tick, or sent nothing more, if memory has been scarce for as long: while it is,
// others must wait with their pipelines. It is for the janitor alone.
func (s *Server) relieveScarce(now int64) {
	before := s.scarceSince
	if s.scarceSince = 0; !s.memory.scarce() {
		return
	}
	if s.scarceSince = now; before == 0 {
		return
	}
	stuck := s.holders(func(sess *session) bool {
		w := sess.replies.writing.Load()
		return w != 0 && w <= before || sess.replies.backlog.depth.Load() == 0 && sess.active.Load() <= before
	})
	s.evictUntil(stuck, nil, 0, s.memory.used()-s.memory.plenty()+s.memory.max/16)
}

// evict ends a client in favour of others. What it has counts no more at once; its goroutines end soon.
func (s *Server) evict(sess *session, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(sess, cause)
}

// makePlace ends the stranger that connected first, and says whether there was one. replies.mu is held.
func (s *Server) makePlace() bool {
	eldest := s.strangers.eldest()
	if eldest == nil {
		return false
	}
	s.end(eldest, evictedForPlace)
	return true
}

// end is evict where replies.mu is held.
func (s *Server) end(sess *session, cause string) {
	sess.memory.move(nil)
	s.strangers.left(sess)
	if s.sessions[sess.id] != sess {
		return // it is ending by itself
	}
	delete(s.sessions, sess.id)
	s.counters.evicted.Add(1)
	s.running.Go(func() {
		if cause == evictedSender {
			sess.expel(cause)
		} else {
			sess.kill(cause)
		}
	})
}
