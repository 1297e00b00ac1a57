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
	if first := e.databases.all[0].open.Load(); first != nil && t.hasNews(*first) {
		for db := range e.cfg.Tended {
			if e.databases.all[db].open.Load() == nil {
				e.databases.open(db)
				t.opened = append(t.opened, db)
			}
		}
	}
	t.opened = slices.DeleteFunc(t.opened, e.databases.closeHealed)
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

// isHealing says that a lane's master can be reached, and is in quarantine or has yet to be assessed.
func isHealing(l *lane) bool {
	up, down := l.queue.connection()
	return down == "" && (!up || l.recovery.current() != nil)
}
