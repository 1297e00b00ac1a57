package quorum

import "slices"

// A tender sees to it that a master which may have forgotten locks is healed in all databases together. A database that no client of
// this proxy uses has no lanes. Were the master healed there only when a client first comes, another master might have forgotten by
// then, and too few would remember: that client would wait for TTLMax. So those databases get lanes until the quarantine is over.
type tender struct {
	engine *Engine
	seen   []*quarantine // by master: that in database 0 for which the lanes were opened last
	opened []int         // the databases that have lanes because of it
}

// look opens the lanes when a master comes into quarantine in database 0, of which what concerns the whole master is always known, and
// closes each database's when they have done what they were opened for.
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

// hasNews says that a master is in quarantine that was not when it was asked last, or in another one.
func (t *tender) hasNews(first laneSet) (news bool) {
	t.seen = slices.Grow(t.seen, len(first))[:len(first)]
	for i, l := range first {
		q := l.recovery.current()
		news = news || q != nil && q != t.seen[i]
		t.seen[i] = q
	}
	return news
}

// closeHealed ends the lanes of a database in which no master is in quarantine, unless a client uses them by now. It returns true if
// they need no tending any more.
func (e *Engine) closeHealed(db int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	set := e.databases[db].lanes.Load()
	if !e.databases[db].used.Load() && slices.ContainsFunc(*set, isHealing) {
		return false
	}
	e.databases[db].lanes.Store(nil)
	if e.databases[db].used.Load() { // whoever sets that afterwards finds no lanes, and makes new ones
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
