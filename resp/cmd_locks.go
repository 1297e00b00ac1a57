package resp

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"lockproxy/quorum"
)

// Bounds of LOCKS.
const (
	locksDefault = 100
	locksMax     = 1000
	// locksBatch is about how many locks the masters are asked at one time.
	locksBatch = 64
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
	return c.beginKeyless(made, func(sl *slot) {
		l := &listing{server: c.server, slot: sl, most: most, watched: slices.Clone(c.transaction.watched)}
		l.rest = c.server.taken.list(func(name string) bool { return matchGlob(pattern, name) })
		l.next()
	})
}

func parseLocksOptions(args []string) (most int, pattern string, refused Reply) {
	most, pattern = locksDefault, "*"
	for i := 0; i < len(args); i += 2 {
		switch more := i+1 < len(args); {
		case more && equalFold(args[i], "match"):
			if pattern = args[i+1]; len(pattern) > patternMax {
				return 0, "", errPattern
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
	errLocksOff   = Error("ERR this lockproxy does not note the locks it grants; set locks_listed to how many LOCKS is to know of")
	errLocksCount = Error(fmt.Sprintf("ERR COUNT is a number of locks from 1 to %d; use MATCH to see others", locksMax))
)

// A listing is a LOCKS under way. It asks the masters for one batch of locks after another, because some may have been
// released in a way that the proxy does not see: by a script, or through another one.
type listing struct {
	server  *Server
	slot    *slot
	watched []*watched // by the client, when it asked
	most    int
	rest    []listed // about which the masters have not been asked yet
	valid   []listed

	mu    sync.Mutex // guards what follows
	batch []listed   // about which the masters are being asked; until becomes 0 for a lock that is gone
	left  int        // answers still to come
}

// next asks for the next batch, or replies.
func (l *listing) next() {
	if len(l.rest) == 0 || len(l.valid) >= l.most {
		l.slot.resolve(outcome{done: 1, reply: l.reply()})
		return
	}
	batch := l.rest[:min(len(l.rest), locksBatch)]
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
		for _, w := range l.watched {
			if w.key == is.key {
				w.finds()
			}
		}
		all = append(all, Map{
			Bulk("resource"), Bulk(is.key.Name),
			Bulk("db"), Int(is.key.DB),
			Bulk("client"), Bulk(is.client),
			Bulk("age"), Int((now - is.since).Milliseconds()),
			Bulk("validity"), Int(max(is.until-now, 0).Milliseconds()),
			Bulk("held"), Int(count(is.held)),
		})
	}
	return all
}
