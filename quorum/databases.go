package quorum

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// databases are the logical databases of the masters, with the lanes of each.
type databases struct {
	engine *Engine
	mu     sync.Mutex // guards the making and closing of lanes
	all    []database
}

// A database has lanes while it is used or tended.
type database struct {
	open  atomic.Pointer[laneSet]
	used  atomic.Bool        // by a client, who sets this before lanes are read
	close context.CancelFunc // ends the lanes; guarded by databases.mu
}

// A laneSet holds the lanes of one database, one for each master.
type laneSet []*lane

func (d *databases) init(e *Engine) { d.engine, d.all = e, make([]database, e.cfg.Databases) }

// lanes returns the lanes of a database, one for each master, for a client.
func (d *databases) lanes(db int) laneSet {
	if !d.all[db].used.Load() {
		d.all[db].used.Store(true)
	}
	if set := d.all[db].open.Load(); set != nil {
		return *set
	}
	return d.open(db)
}

// together has the requests that f pushes to lanes of a database go to each master in one batch, if the master's lane is idle, else one
// behind the other.
func (d *databases) together(db int, f func()) {
	all := d.lanes(db)
	for _, l := range all {
		l.queue.hold()
	}
	f()
	for _, l := range all {
		l.queue.letGo()
	}
}

// open makes the lanes of a database when its first command comes.
func (d *databases) open(db int) laneSet {
	d.mu.Lock()
	defer d.mu.Unlock()
	if set := d.all[db].open.Load(); set != nil {
		return *set
	}
	e := d.engine
	set, r := make(laneSet, len(e.masters)), make(roster, len(e.masters))
	for i, m := range e.masters {
		l := newLane(e, m, db, r)
		l.epochs.peers, set[i] = set, l
	}
	ctx, cancel := context.WithCancel(e.ctx)
	d.all[db].close = cancel
	for _, l := range set {
		if !e.spawn(func() { l.run(ctx) }) {
			l.close()
		}
	}
	d.all[db].open.Store(&set)
	return set
}

// closeHealed ends the lanes of a database in which no master is in quarantine, unless a client uses them by now. closeHealed returns true
// if the lanes need no tending any more.
func (d *databases) closeHealed(db int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := &d.all[db]
	set := one.open.Load()
	if !one.used.Load() && slices.ContainsFunc(*set, isHealing) {
		return false
	}
	one.open.Store(nil)
	if one.used.Load() { // a client that sets used afterwards finds no lanes, and makes new lanes
		one.open.Store(set)
		return true
	}
	one.close()
	return true
}

// isUsed says that a client has used the database.
func (d *databases) isUsed(db int) bool { return d.all[db].used.Load() }

// each calls f for every lane.
func (d *databases) each(f func(*lane)) {
	for i := range d.all {
		if set := d.all[i].open.Load(); set != nil {
			for _, l := range *set {
				f(l)
			}
		}
	}
}

// areIdle says that all connected masters have answered, and have been sent all undos.
func (d *databases) areIdle() bool {
	all := true
	d.each(func(l *lane) { all = all && l.queue.isIdle() })
	return all
}

// status returns the status of a database, and makes its lanes if nobody has yet.
func (d *databases) status(db int) DatabaseStatus {
	set := d.all[db].open.Load()
	if set == nil {
		lanes := d.lanes(db)
		set = &lanes
	}
	return DatabaseStatus{db, set.status()}
}

// statuses returns the status of each database that has lanes.
func (d *databases) statuses() (all []DatabaseStatus) {
	for db := range d.all {
		if set := d.all[db].open.Load(); set != nil {
			all = append(all, DatabaseStatus{db, set.status()})
		}
	}
	return all
}
