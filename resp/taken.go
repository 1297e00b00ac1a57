package resp

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lockproxy/quorum"
)

// taken is what LOCKS lists: the locks that this proxy's clients were granted, or extended, by whatever command, until their
// validity is over or they are released through this proxy. It does not know what becomes of them elsewhere; LOCKS asks the
// masters. Nothing is forgotten in favour of what comes later: a lock that is stuck is what one looks for.
//
// By itself it costs a lock and its release together 0.2 µs, and 0.7 µs if there are many others (BenchmarkTaken); of what
// 50 clients get from one machine it took 5 %. So it is off, and nil, unless Config.LocksListed asks for it.
type taken struct {
	epoch  time.Time
	max    int64
	count  atomic.Int64
	swept  atomic.Int64 // when, in ns since the epoch
	seed   maphash.Seed
	shards [takenShards]takenShard
}

// takenShards is how many parts have a mutex each: a sweep holds up only what is in one of them.
const takenShards = 16

type takenShard struct {
	mu    sync.Mutex // guards all below
	locks map[quorum.Key]takenLock
}

// A takenLock is one lock. Times are since the epoch.
type takenLock struct {
	client string
	token  string // "" where no one string holds it
	since  time.Duration
	until  time.Duration
	held   bool // HOLD
}

// sweepEvery is the shortest time between two searches of all shards for expired locks, which are made when there is no room.
const sweepEvery = time.Second

// keepMax is the largest command whose text is kept alive for the name and the token in it. From a larger one these are copied.
// If they alone are larger, the lock is not listed.
const keepMax = 512

func newTaken(listed int) *taken {
	if listed == 0 {
		return nil
	}
	t := &taken{epoch: time.Now(), max: int64(listed), seed: maphash.MakeSeed()}
	for i := range t.shards {
		t.shards[i].locks = map[quorum.Key]takenLock{}
	}
	return t
}

func (t *taken) shard(key quorum.Key) *takenShard {
	return &t.shards[maphash.String(t.seed, key.Name)%takenShards]
}

// note keeps what a client was granted by a command of so many bytes, valid until then.
func (t *taken) note(what quorum.Taken, size int, l takenLock, until time.Time) {
	now := time.Since(t.epoch)
	l.token, l.since, l.until = what.Token, now, until.Sub(t.epoch)
	if t.count.Load() >= t.max {
		t.sweep(now)
	}
	s := t.shard(what.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.locks[what.Key]
	switch {
	case known && !what.Fresh && old.token == l.token && old.until > now: // the same lock, longer
		old.until = l.until
		s.locks[what.Key] = old
		return
	case !known && t.count.Load() >= t.max:
		return
	}
	if size > keepMax {
		if len(what.Key.Name)+len(l.token) > keepMax {
			return
		}
		what.Key.Name, l.token = strings.Clone(what.Key.Name), strings.Clone(l.token)
	}
	if !known {
		t.count.Add(1)
	}
	s.locks[what.Key] = l
}

// sweep removes what has expired, of one shard after the other. It is called with none of them locked.
func (t *taken) sweep(now time.Duration) {
	last := t.swept.Load()
	if now-time.Duration(last) < sweepEvery || !t.swept.CompareAndSwap(last, int64(now)) {
		return
	}
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for key, l := range s.locks {
			if l.until <= now {
				delete(s.locks, key)
				t.count.Add(-1)
			}
		}
		s.mu.Unlock()
	}
}

// drop forgets the lock of that token.
func (t *taken) drop(key quorum.Key, token string) {
	t.forget(key, func(l *takenLock) bool { return l.token == token })
}

// deleting wraps the done of a command that deletes a key, whoever holds it. If the key was deleted, a lock that was listed
// when the command began is forgotten.
func (t *taken) deleting(key quorum.Key, done func(quorum.Changed)) func(quorum.Changed) {
	if t == nil {
		return done
	}
	begun := time.Since(t.epoch)
	return func(c quorum.Changed) {
		if c.Applied {
			t.forget(key, func(l *takenLock) bool { return l.since <= begun })
		}
		done(c)
	}
}

func (t *taken) forget(key quorum.Key, is func(*takenLock) bool) {
	if t == nil {
		return
	}
	s := t.shard(key)
	s.mu.Lock()
	if l, ok := s.locks[key]; ok && is(&l) {
		delete(s.locks, key)
		t.count.Add(-1)
	}
	s.mu.Unlock()
}

// prolong takes a new validity.
func (t *taken) prolong(key quorum.Key, until time.Time) {
	t.change(key, func(l *takenLock) { l.until = until.Sub(t.epoch) })
}

// replace takes a new token, unless it is too long, and a new validity.
func (t *taken) replace(key quorum.Key, token string, until time.Time) {
	if len(token) > keepMax {
		return
	}
	t.change(key, func(l *takenLock) { l.token, l.until = strings.Clone(token), until.Sub(t.epoch) })
}

func (t *taken) change(key quorum.Key, change func(*takenLock)) {
	if t == nil {
		return
	}
	s := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.locks[key]; ok {
		change(&l)
		s.locks[key] = l
	}
}

// A listed is a lock of the list.
type listed struct {
	key quorum.Key
	takenLock
}

// list returns the locks that may be valid and whose names match, those first that were taken first.
func (t *taken) list(matches func(name string) bool) []listed {
	now := time.Since(t.epoch)
	var all []listed
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for key, l := range s.locks {
			if l.until > now {
				all = append(all, listed{key, l})
			}
		}
		s.mu.Unlock()
	}
	all = slices.DeleteFunc(all, func(l listed) bool { return !matches(l.key.Name) })
	slices.SortFunc(all, func(a, b listed) int { return cmp.Compare(a.since, b.since) })
	return all
}

// noteTaken keeps the locks that a reply about to be written grants. If it cannot be written, they are undone, and LOCKS, which
// asks the masters, leaves them out. Only the writer calls it.
func (s *session) noteTaken(p *page, sl *slot) {
	t := s.server.taken
	if t == nil {
		return
	}
	if s.remote == "" {
		s.remote = s.addr()
	}
	p.taken = sl.out.lock.AppendTaken(p.taken[:0])
	for _, what := range p.taken {
		t.note(what, sl.size, takenLock{client: s.remote, held: sl.hold != nil}, sl.out.until)
	}
	clear(p.taken)
}
