package sim

import (
	"maps"
	"time"
)

// An item is the value of a key: a string, or a hash (hash.go).
type item struct {
	text    string
	hash    bool
	expires int64 // ms on the master's clock; 0 is never
	by      *life // whose command set the key; nil if none did
}

// A store is the data of a master, and its history: a restart forgets the end of the history.
type store struct {
	dbs     [databases]map[string]item
	journal []mutation
	command int // the number of the running command
}

// databases is how many a master has.
const databases = 2

// A mutation is a change of a key, or of a whole database.
type mutation struct {
	at   time.Duration // true time
	db   int
	kind mutationKind
	key  string
	item item
	part int // the number of its command
}

type mutationKind uint8

const (
	put mutationKind = iota
	removed
	flushed
	swapped // databases 0 and 1
)

func newStore() store {
	s := store{}
	for i := range s.dbs {
		s.dbs[i] = make(map[string]item)
	}
	return s
}

// do makes a change and remembers the change.
func (s *store) do(m mutation) {
	m.part = s.command
	s.journal = append(s.journal, m)
	s.apply(m)
}

func (s *store) apply(m mutation) {
	switch m.kind {
	case put:
		s.dbs[m.db][m.key] = m.item
	case removed:
		delete(s.dbs[m.db], m.key)
	case flushed:
		clear(s.dbs[m.db])
	case swapped:
		s.dbs[0], s.dbs[1] = s.dbs[1], s.dbs[0]
	}
}

// expired says that the key was to expire at this instant before: the key was put back, or kept its TTL. Or a few
// milliseconds earlier: a re-entrant attempt counts on such a key.
func (s *store) expired(key string, at int64) bool {
	const few = 20 // ms
	n := 0
	for _, m := range s.journal {
		if m.kind == put && m.key == key && m.item.expires <= at && m.item.expires > at-few {
			n++
		}
	}
	return n > 1 // one of these is the key that was just set
}

// lastPut returns when a key was set last, in true time.
func (s *store) lastPut(db int, key string) time.Duration {
	for i := len(s.journal) - 1; i >= 0; i-- {
		if m := &s.journal[i]; m.kind == put && m.db == db && m.key == key {
			return m.at
		}
	}
	return 0
}

// rewind forgets all changes after a true time.
func (s *store) rewind(to time.Duration) {
	kept := s.journal
	for i, m := range kept {
		if m.at > to {
			kept = kept[:i]
			break
		}
	}
	command := s.command
	*s = newStore()
	s.journal, s.command = kept, command
	for _, m := range kept {
		s.apply(m)
	}
}

// loseTransactions forgets the commands since a true time that changed more than one key each, because the append-only
// file has them as MULTI and EXEC. loseTransactions returns the number of lost changes. Earlier data was in the file's
// base.
func (s *store) loseTransactions(since time.Duration) (lost int64) {
	size := make(map[int]int)
	for _, m := range s.journal {
		size[m.part]++
	}
	written := s.journal
	command := s.command
	*s = newStore()
	s.command = command
	for _, m := range written {
		if m.at > since && size[m.part] > 1 {
			lost++
			continue
		}
		s.journal = append(s.journal, m)
		s.apply(m)
	}
	return lost
}

// all returns the keys of all databases.
func (s *store) all() map[string]item {
	all := maps.Clone(s.dbs[0])
	for _, db := range s.dbs[1:] {
		maps.Copy(all, db)
	}
	return all
}

// get returns a key that has not expired by the master's clock.
func (s *store) get(db int, key string, now int64) (item, bool) {
	it, ok := s.dbs[db][key]
	if ok && it.expires != 0 && now > it.expires {
		delete(s.dbs[db], key)
		return item{}, false
	}
	return it, ok
}
