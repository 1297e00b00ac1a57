package resp

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Where memory is spent, the client that asks for more is seldom the cause: a publisher's message is refused because subscribers do not
// read. So others are ended for that client, as Redis does with slow readers.

// Why a client was ended in favour of others.
const (
	evictedReader   = "max_memory is spent: of all clients it held most that it had not read"
	evictedSender   = "max_memory is spent: of all clients it held most that it had sent ahead, or not whole"
	evictedStranger = "memory for clients that have not logged in is spent, and it held some for longest"
	evictedForPlace = "there are max_clients, and of those that have not logged in it connected first"
)

// A relief ends clients in favour of others where memory, or the places for clients, are spent.
type relief struct {
	memory    budget // of clients that have logged in, or need not
	strangers strangers
	sessions  *sessions
	evicted   atomic.Uint64 // clients so far

	mu     sync.Mutex // guards inVain; one goroutine at a time looks for clients to end
	inVain time.Time  // when the last look at all clients was in vain

	scarceSince int64 // the last tick, if memory was scarce then; server clock, ms; 0: memory was not scarce. For the janitor alone
}

// relieve ends clients, so that n bytes more may fit into the budget of the account. If only the asking client itself could go, relieve
// returns false, and the client is refused. replies.mu may be held.
func (r *relief) relieve(a *account, n int, most share) bool {
	b := a.of()
	switch {
	case b == &r.strangers.budget:
		if eldest := r.strangers.eldestHolding(); eldest != nil && eldest != a.session {
			r.evict(eldest, evictedStranger)
			return true
		}
	case b != nil:
		return r.evictHolders(a.session, b.lacks(n, most))
	}
	return false
}

// A holder is a client holding memory that only the client itself can free, by reading or sending on.
type holder struct {
	session *session
	cause   string
	size    int64
}

// reliefPause is the pause after a look at all clients in vain, because the look is expensive.
const reliefPause = 10 * time.Millisecond

// evictHolders ends clients until as much is given back as lacks, and a sixteenth of the budget more, so as not to run for each message.
// Clients with most unread replies and messages go first, then clients with most of an incomplete command. If all together would not
// suffice, or if the asking client would be the first to go, evictHolders ends none, and returns false.
func (r *relief) evictHolders(asks *session, lacks int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if lacks <= 0 {
		return true
	}
	if time.Since(r.inVain) < reliefPause {
		r.memory.refused.Add(1)
		return false
	}
	holders := r.holders(func(*session) bool { return true })
	var all int64
	for _, h := range holders {
		all += h.size
	}
	switch {
	case all < lacks:
		r.inVain = time.Now()
		fallthrough
	case holders[0].session == asks && holders[0].cause == evictedSender:
		r.memory.refused.Add(1)
		return false
	case holders[0].session == asks:
		r.evicted.Add(1)
		return false
	}
	r.evictUntil(holders, asks, lacks, r.memory.max/16)
	return true
}

// evictUntil ends holders, except asks, until as much is given back as lacks. From then on, until spare is given back, too, only holders of
// flushSize or more are ended.
func (r *relief) evictUntil(holders []holder, asks *session, lacks, spare int64) {
	for _, h := range holders {
		switch {
		case h.session == asks:
		case lacks > 0, lacks+spare > 0 && h.size >= flushSize:
			lacks -= h.session.memory.totalOf(&r.memory)
			r.evict(h.session, h.cause)
		}
	}
}

// holders returns the holders among the clients chosen by which, in the order in which they are to go.
func (r *relief) holders(which func(*session) bool) []holder {
	var readers, senders []holder
	r.sessions.each(func(sess *session) {
		all := sess.memory.totalOf(&r.memory)
		unread, unsent := min(sess.replies.backlog.outBytes.Load(), all), min(sess.reader.in.counted.Load(), all)
		switch {
		case !which(sess):
		case unread >= countedFrom:
			readers = append(readers, holder{sess, evictedReader, unread})
		case unsent >= countedFrom:
			senders = append(senders, holder{sess, evictedSender, unsent})
		}
	})
	largest := func(a, b holder) int { return cmp.Compare(b.size, a.size) }
	slices.SortFunc(readers, largest)
	slices.SortFunc(senders, largest)
	return append(readers, senders...)
}

// relieveScarce ends clients that have read nothing for a tick, or sent nothing more, if memory has been scarce for as long: scarcity makes
// others wait with their pipelines. Only the janitor calls relieveScarce.
func (r *relief) relieveScarce(now int64) {
	before := r.scarceSince
	if r.scarceSince = 0; !r.memory.scarce() {
		return
	}
	if r.scarceSince = now; before == 0 {
		return
	}
	stuck := r.holders(func(sess *session) bool {
		w := sess.replies.writing.Load()
		return w != 0 && w <= before || sess.replies.backlog.depth.Load() == 0 && sess.active.Load() <= before
	})
	r.evictUntil(stuck, nil, 0, r.memory.used()-r.memory.plenty()+r.memory.max/16)
}

// makePlace ends the stranger that connected first, and says whether there was a stranger.
func (r *relief) makePlace() bool {
	eldest := r.strangers.eldest()
	if eldest == nil {
		return false
	}
	r.evict(eldest, evictedForPlace)
	return true
}

// evict ends a client in favour of others, unless the client is ending by itself. The client's memory is uncounted at once; its goroutines
// end soon.
func (r *relief) evict(sess *session, cause string) {
	sess.memory.move(nil)
	r.strangers.left(sess)
	end := func() { sess.kill(cause) }
	if cause == evictedSender {
		end = func() { sess.expel(cause) }
	}
	if r.sessions.evict(sess, end) {
		r.evicted.Add(1)
	}
}
