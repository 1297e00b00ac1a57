package quorum

import "slices"

// A tender has a master's quarantines end in all databases together. A database that no client of this proxy uses has no lanes. If
// the quarantine there began to end only when a client comes, another master might have forgotten its locks by then, and too few
// would remember: the client would wait for TTLMax. So unused databases get lanes until the quarantine is over.
type tender struct {
	engine *Engine
	seen   []*quarantine // by master: the quarantine in database 0 for which lanes were opened last
	opened []int         // the databases to which the tender gave lanes
}

// look opens lanes when a master comes into quarantine in database 0, where a loss of the whole master always shows, and closes a
// database's lanes when no master is in quarantine there.
func (t *tender) look() {
	e := t.engine
	if first := e.databases[0].lanes.Load(); first != nil && t.hasNews(*first) {
		for db := range e.cfg.Tended {
			if e.databases[db].lanes.Load() == nil {
				e.openDatabase(db)
				t.opened = append(t.opened, db)
			}
		}
	}
	t.opened = slices.DeleteFunc(t.opened, e.closeHealed)
}

// hasNews says that a master has come into quarantine, or into another one, since the last call.
func (t *tender) hasNews(first laneSet) (news bool) {
	t.seen = slices.Grow(t.seen, len(first))[:len(first)]
	for i, l := range first {
		q := l.recovery.current()
		news = news || q != nil && q != t.seen[i]
		t.seen[i] = q
	}
	return news
}

// closeHealed ends the lanes of a database in which no master is in quarantine, unless a client uses the lanes by now. It returns true
// if the lanes need no tending any more.
func (e *Engine) closeHealed(db int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	set := e.databases[db].lanes.Load()
	if !e.databases[db].used.Load() && slices.ContainsFunc(*set, isHealing) {
		return false
	}
	e.databases[db].lanes.Store(nil)
	if e.databases[db].used.Load() { // a client that sets used afterwards finds no lanes, and makes new lanes
		e.databases[db].lanes.Store(set)
		return true
	}
	e.databases[db].close()
	return true
}

// isHealing says that a lane's master can be reached, and is in quarantine or has yet to be assessed.
func isHealing(l *lane) bool {
	up, down := l.queue.connection()
	return down == "" && (!up || l.recovery.current() != nil)
}
