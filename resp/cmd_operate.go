package resp

import (
	"fmt"
	"sync"
	"time"

	"lockproxy/quorum"
)

// What operators ask about locks, and do to them.

// runLockInfo tells what every master has under a key, and what that comes to. It has an answer without a quorum, too.
func runLockInfo(c *call) Reply {
	name := c.args[1]
	key, gates := c.key(name), c.server.gates
	sl := c.claim(oneRound, name, func(o *outcome) Reply { return o.reply })
	if sl == nil {
		return wait
	}
	engine := c.engine()
	engine.Views(key, func(v quorum.Viewed) {
		if v.Err != nil {
			sl.resolve(outcome{err: v.Err})
			return
		}
		engine.Fence(key, func(f quorum.FenceView) {
			sl.resolve(outcome{done: 1, reply: lockInfo(&v, f.Fence, gates.Waiting(key))})
		})
	})
	return later
}

func lockInfo(v *quorum.Viewed, fence int64, waiters int) Reply {
	var newest Reply = Null{}
	if fence != 0 {
		newest = Int(fence)
	}
	masters := make(Array, 0, len(v.Masters))
	for i := range v.Masters {
		masters = append(masters, masterInfo(&v.Masters[i]))
	}
	var kind, validity Reply = Null{}, Null{}
	if v.State == quorum.LockHeld || v.State == quorum.LockFree { // else nobody knows
		kind, validity = Bulk(v.View.Type), Int(v.View.TTL.Milliseconds())
	}
	return Map{
		Bulk("state"), Bulk(v.State.String()),
		Bulk("type"), kind,
		Bulk("token"), tokenOf(v.View.Type, v.View.Value),
		Bulk("validity"), validity,
		Bulk("fence"), newest,
		Bulk("waiters"), Int(waiters),
		Bulk("masters"), masters,
	}
}

func masterInfo(m *quorum.MasterView) Reply {
	var kind Reply = Null{}
	if m.Answered {
		kind = Bulk(m.Type)
	}
	return Map{
		Bulk("addr"), Bulk(m.Addr),
		Bulk("state"), Bulk(m.State.String()),
		Bulk("left"), Int(m.Left.Milliseconds()),
		Bulk("counts"), Int(count(m.Counts)),
		Bulk("reason"), Bulk(m.Reason),
		Bulk("type"), kind,
		Bulk("token"), tokenOf(m.Type, m.Value),
		Bulk("ttl"), Int(m.TTL.Milliseconds()),
	}
}

// tokenOf returns what holds a lock. One that is a hash, as Redisson's are, has no token.
func tokenOf(kind, value string) Reply {
	if kind != "string" {
		return Null{}
	}
	return Bulk(value)
}

// runForceUnlock takes a lock from whoever holds it.
func runForceUnlock(c *call) Reply {
	if !c.server.mayForceUnlock(c.user) {
		return Error("NOPERM this user has no permissions to run the 'forceunlock' command")
	}
	name := c.args[1]
	sl := c.claim(oneRound, name, counted)
	if sl == nil {
		return wait
	}
	s, key, by := c.session, sl.key, c.user
	c.engine().Break(key, c.server.taken.deleting(key, func(b quorum.Changed) {
		outcome := "nothing was there"
		switch {
		case b.Err != nil:
			outcome = b.Err.Error()
		case b.Applied:
			outcome = "deleted"
		}
		s.server.log.Warn("FORCEUNLOCK", "key", clip(key.Name, echoMax), "db", key.DB, "outcome", outcome,
			"client", s.addr(), "id", s.id, "user", by)
		if b.Applied {
			s.server.hurryHolds(key)
		}
		sl.changed(b)
	}))
	return later
}

// mayForceUnlock says whether a user has that right. Without users, everybody is the default one, and may.
func (s *Server) mayForceUnlock(user string) bool {
	for _, u := range s.cfg.Users {
		if u.Name == user {
			return u.ForceUnlock
		}
	}
	return len(s.cfg.Users) == 0
}

// hurryHolds lets those who hold the lock by a connection find out at once that they have lost it.
func (s *Server) hurryHolds(key quorum.Key) {
	for _, sess := range s.clients() {
		sess.mu.Lock()
		if h := sess.kept[key]; h != nil {
			h.timer.Reset(0)
		}
		sess.mu.Unlock()
	}
}

// Bounds of LOCKS.
const (
	locksDefault    = 100
	locksMax        = 1000
	locksPatternMax = 256
	// locksBatch is how many locks the masters are asked for at least, at a time.
	locksBatch = 128
)

// runLocks lists what clients of this proxy have taken, and a quorum still holds.
func runLocks(c *call) Reply {
	most, pattern, refused := parseLocksOptions(c.args[1:])
	if refused != nil {
		return refused
	}
	if c.server.taken == nil {
		return errLocksOff
	}
	sl := c.claim(oneRound, "", func(o *outcome) Reply { return o.reply })
	if sl == nil {
		return wait
	}
	l := &listing{server: c.server, slot: sl, most: most}
	l.rest = c.server.taken.list(func(name string) bool { return matchGlob(pattern, name) })
	l.next()
	return later
}

func parseLocksOptions(args []string) (most int, pattern string, refused Reply) {
	most, pattern = locksDefault, "*"
	for i := 0; i < len(args); i += 2 {
		switch more := i+1 < len(args); {
		case more && equalFold(args[i], "match"):
			if pattern = args[i+1]; len(pattern) > locksPatternMax {
				return 0, "", errLocksPattern
			}
		case more && equalFold(args[i], "count"):
			n, ok := parseInt(args[i+1])
			if !ok {
				return 0, "", errNotInt
			}
			if n < 1 || n > locksMax {
				return 0, "", errLocksCount
			}
			most = int(n)
		default:
			return 0, "", errSyntax
		}
	}
	return most, pattern, nil
}

var (
	errLocksOff     = Error("ERR this lockproxy does not note the locks it grants; set locks_listed to how many LOCKS is to know of")
	errLocksCount   = Error(fmt.Sprintf("ERR COUNT is a number of locks from 1 to %d; use MATCH to see others", locksMax))
	errLocksPattern = Error(fmt.Sprintf("ERR the pattern of MATCH has more than %d bytes", locksPatternMax))
)

// A listing is a LOCKS under way. It asks the masters for one batch of locks after another, because some may have been
// released in a way that the proxy does not see: by a script, or through another one.
type listing struct {
	server *Server
	slot   *slot
	most   int
	rest   []listed // that have not been asked for
	valid  []listed

	mu    sync.Mutex // guards what follows
	batch []listed   // that is being asked for; of those that are gone, without validity
	left  int        // answers still to come
}

// next asks for the next batch, or replies.
func (l *listing) next() {
	if len(l.rest) == 0 || len(l.valid) >= l.most {
		l.slot.resolve(outcome{done: 1, reply: l.reply()})
		return
	}
	batch := l.rest[:min(len(l.rest), max(l.most-len(l.valid), locksBatch))]
	l.rest = l.rest[len(batch):]
	l.batch, l.left = batch, len(batch)
	for i := range batch {
		l.server.engine.Read(batch[i].key, func(v quorum.View) { l.take(i, v) })
	}
}

// take takes what the masters say of the i-th lock. Without a quorum, the lock is as it was noted.
func (l *listing) take(i int, v quorum.View) {
	l.mu.Lock()
	switch is := &l.batch[i]; {
	case v.Err != nil:
	case !v.Exists || v.Type == "string" && v.Value != is.token:
		l.server.taken.drop(is.key, is.token)
		is.until = 0
	default:
		is.until = time.Since(l.server.taken.epoch) + v.TTL
	}
	l.left--
	over := l.left == 0
	l.mu.Unlock()
	if !over {
		return
	}
	for _, is := range l.batch {
		if is.until > 0 {
			l.valid = append(l.valid, is)
		}
	}
	l.next()
}

func (l *listing) reply() Reply {
	t := l.server.taken
	now := time.Since(t.epoch)
	all := Array{}
	for _, is := range l.valid[:min(len(l.valid), l.most)] {
		all = append(all, Map{
			Bulk("resource"), Bulk(is.key.Name),
			Bulk("db"), Int(is.key.DB),
			Bulk("client"), Bulk(is.client),
			Bulk("age"), Int((now - is.since).Milliseconds()),
			Bulk("validity"), Remaining(t.epoch.Add(is.until)),
			Bulk("held"), Int(count(is.held)),
		})
	}
	return all
}
