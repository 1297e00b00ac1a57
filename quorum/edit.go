package quorum

import (
	"slices"
	"time"
)

// An editing is the second round of an Exec: it changes keys where all of them are as the first round saw them.
type editing struct {
	round
	exec    *exec
	looked  *looking
	views   []View
	edits   []Edit
	puts    []int     // the keys that are put
	sums    []sum     // by key
	argv    []any     // of luaEdit, with ms in place of instants
	ends    [][]int64 // by master and key: when what was put expires. Guarded by round.mu
	undone  [][]*undo // by master: what puts back what it did. Guarded by round.mu
	known   uint64    // of pasts, when this had won. Guarded by round.mu
	repairs []*repair // guarded by round.mu
	checked bool      // there is to be a checkup, or was. Guarded by round.mu
}

func (e *Engine) edit(x *exec, l *looking, edits []Edit) {
	d := &editing{exec: x, looked: l, views: l.views, edits: edits, sums: make([]sum, len(edits))}
	argv := make([]any, 0, 5*len(edits))
	for i := range edits {
		d.expireByPut(i)
		d.sums[i].hash = d.hold(i).hash()
		kind, value, ms := "keep", "", int64(0)
		switch ed := &edits[i]; ed.Kind {
		case Put:
			d.puts = append(d.puts, i)
			kind, value = "put", ed.Value
			d.sums[i].digest = digestOf(ed.Value)
			ms = e.cfg.kept(ed.TTL).Milliseconds()
			if ed.KeepTTL {
				left := l.latest(i) - l.start - e.uncertainty() // which is not to make it longer each time
				kind, ms, ed.TTL = "replace", left.Milliseconds(), e.cfg.shown(left)
			}
			d.keeps = max(d.keeps, e.cfg.kept(ed.TTL))
		case Expire:
			kind, ms = "expire", e.cfg.kept(ed.TTL).Milliseconds()
		case Delete, Claim:
			kind = "delete"
		}
		d.keeps = max(d.keeps, time.Duration(ms)*time.Millisecond)
		argv = append(argv, d.views[i].Type, d.views[i].content(), kind, value, ms)
	}
	d.lasting = d.keeps > 0 || len(d.puts) > 0
	if len(edits) == 1 && edits[0].Kind == Delete {
		d.releases = &hold{x.req.Keys[0], d.views[0].content()}
	}
	d.program = luaEdit
	d.argv, d.ends, d.undone = argv, make([][]int64, len(e.masters)), make([][]*undo, len(e.masters))
	e.beginAll(&d.round, d, x.req.DB, x.req.Keys, nil) // see compose
}

// compose makes the command for one master; see composer.
func (d *editing) compose(en *entry, now int64) {
	keys := d.exec.req.Keys
	argv, ends := slices.Clone(d.argv), make([]int64, len(keys))
	for i := range keys {
		switch ms, _ := argv[5*i+4].(int64); {
		case d.edits[i].KeepTTL:
			ends[i] = now + ms - (en.lane.gathered - d.looked.start).Milliseconds()
			argv[5*i+4] = ends[i]
		case ms > 0:
			ends[i] = en.lane.expiry(d.sums[i].hash, now+ms)
			argv[5*i+4] = ends[i]
		}
	}
	d.ends[en.master] = ends
	en.Args = luaEdit.bySHA(keys, argv...)
}

// expireByPut makes a new TTL of a string a put of the value that is there, so that it can be put back like one.
func (d *editing) expireByPut(i int) {
	if ed := &d.edits[i]; ed.Kind == Expire && d.views[i].Type == "string" {
		ed.Kind, ed.Value = Put, d.views[i].Value
	}
}

// read takes 0 for refused, and an array of 1 and the TTLs that the keys had for granted. In quarantine a master may have an
// older copy of the keys, which somebody else has replaced since: there only a deletion counts.
func (d *editing) read(en *entry) (Vote, string) {
	if en.Err != nil {
		return ballot(en.Err)
	}
	if list, ok := en.Reply.([]any); ok && len(list) == 1+len(d.edits) {
		en.took = len(d.puts) > 0
		d.grants(en)
		en.blank = d.releases == nil
		return Granted, ""
	}
	if en.Reply == int64(other) {
		return Refused, ""
	}
	return unexpected()
}

// decide gives deletions the benefit of the doubt, as a release. A try that has lost waits for the other masters that were told
// what to do all the same: what it has done is to be known before the next one begins.
func (d *editing) decide(t Tally) Decision {
	if d.releases != nil {
		return DecideRelease(t)
	}
	decision := Decide(t)
	if decision != Lost {
		return decision
	}
	for i := range d.entries {
		if en := &d.entries[i]; en.vote == Pending && en.fate == sent {
			return Undecided
		}
	}
	return Lost
}

func (d *editing) ended(decision Decision) {
	e := d.engine
	d.learnSeen()
	switch {
	case decision == Won:
		if len(d.puts) == 0 {
			d.repair()
			d.exec.done(Executed{Done: true})
			return
		}
		until := d.until()
		if e.catchUp() < until {
			d.repair()
			d.exec.done(Executed{Done: true, Lock: &Lock{engine: e, taken: d, until: until}})
			return
		}
		d.undo(func() { d.exec.done(Executed{Err: ErrLate}) })
	case decision == Lost && !d.mayBeDone():
		err := d.failure()
		d.undo(func() {
			if d.noteLeft() {
				d.exec.again(err)
			} else {
				d.exec.done(Executed{Err: err})
			}
		})
	default:
		err := d.failure()
		d.undo(func() { d.exec.done(Executed{Err: err}) })
	}
}

// mayBeDone says that as many masters as a quorum have done it, or may have, in this try or in one before that was not
// undone: somebody may have been told what was put.
func (d *editing) mayBeDone() bool {
	done := func(en *entry) bool { return d.exec.left[en.master] || d.mayHaveApplied(en) }
	return d.number(done) >= Quorum(len(d.entries))
}

func (d *editing) mayHaveApplied(en *entry) bool {
	return en.fate == unknown || en.fate == sent || d.applied(en)
}

// noteLeft notes on which masters something of this try may be left. It returns false if one may lack what was there: who
// looks again may find nothing because of it, on that master and on others that never had the key.
func (d *editing) noteLeft() (again bool) {
	puts, deletes := len(d.puts), 0
	for _, ed := range d.edits {
		if ed.Kind >= Delete {
			deletes++
		}
	}
	if d.releases != nil {
		deletes = 0 // which is not to come back
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	again = true
	for i := range d.entries {
		if !d.mayHaveApplied(&d.entries[i]) {
			continue
		}
		again = again && !d.displaces(&d.entries[i])
		if d.isUndone(i, puts+deletes) {
			continue
		}
		d.exec.left[i] = d.exec.left[i] || puts > 0
		again = again && deletes == 0
	}
	return again
}

// displaces says that what was put on a master took the place of something that cannot be put back: its undo leaves nothing.
func (d *editing) displaces(en *entry) bool {
	for i := range d.edits {
		if d.edits[i].Kind == Put && d.views[i].Exists && !d.restorable(en, i) {
			return true
		}
	}
	return false
}

// isUndone says that so many changes of a master were put back.
func (d *editing) isUndone(master, changes int) bool {
	for _, u := range d.undone[master] {
		if !u.clean.Load() {
			return false
		}
	}
	return len(d.undone[master]) == changes
}

// until returns when the first of the keys that were put may be gone. A TTL that is kept was left when the keys were looked at.
func (d *editing) until() instant {
	until := instant(1<<63 - 1)
	for _, i := range d.puts {
		since := d.start
		if d.edits[i].KeepTTL {
			since = d.looked.start
		}
		until = min(until, since+Validity(d.edits[i].TTL, 0, d.engine.cfg.DriftFactor))
	}
	return until
}

func (d *editing) key(i int) Key { return Key{d.exec.req.DB, d.exec.req.Keys[i]} }

func (d *editing) holds() (all []hold) {
	for _, i := range d.puts {
		all = append(all, d.hold(i))
	}
	return all
}

// hold is what a key that is put is held by.
func (d *editing) hold(i int) hold { return hold{d.exec.req.Keys[i], d.edits[i].Value} }

// appendTaken names what was put where nothing was, and what was put over a string: it may be the same client's lock.
func (d *editing) appendTaken(to []Taken) []Taken {
	for _, i := range d.puts {
		to = append(to, Taken{d.key(i), d.edits[i].Value, !d.views[i].Exists})
	}
	return to
}

// undo puts back what was there, on every master that made the change or may have made it, and calls after when those
// that did have confirmed, or one InstanceTimeout has passed. Only the first undo does anything.
func (d *editing) undo(after func()) {
	var undos []*undo
	d.mu.Lock()
	first := !d.revoked
	d.revoked = true
	if first {
		for i := range d.entries {
			undos = append(undos, d.undos(&d.entries[i])...)
		}
		for _, r := range d.repairs {
			undos = append(undos, r.undos()...)
		}
	}
	d.mu.Unlock()
	pushUndos(d.engine, undos, after)
}

// settled undoes what a late master did after this had failed, or after what it put was released.
func (d *editing) settled(en *entry) {
	var late []*undo
	d.mu.Lock()
	if d.revoked {
		late = d.undos(en)
	} else if d.decision == Won {
		d.learnPut(en)
		if en.fate == answered && en.Reply == int64(other) {
			d.checkUp()
		}
	}
	for _, i := range d.puts {
		if h := d.hold(i); en.lane.owes(h, d.place.Load()) {
			if u := d.owed(en, h); u != nil {
				late = append(late, u)
			}
		}
	}
	d.mu.Unlock()
	pushUndos(d.engine, late, func() {})
}

// undos returns what puts back all that one master changed, once. It is called with round.mu held.
func (d *editing) undos(en *entry) []*undo {
	if en.undoing || !d.applied(en) && en.fate != unknown {
		return nil
	}
	en.undoing = true
	var all []*undo
	for i := range d.edits {
		if u := d.putBack(en, i); u != nil {
			all = append(all, u)
		}
	}
	d.undone[en.master] = all
	return all
}

// applied says that a master answered that it made the changes, in time or not.
func (d *editing) applied(en *entry) bool {
	if en.fate != answered { // its reply may be being read just now
		return false
	}
	list, ok := en.Reply.([]any)
	return en.Err == nil && ok && len(list) == 1+len(d.edits)
}

// putBack returns what takes back one change on one master, or nil if that cannot be done.
func (d *editing) putBack(en *entry, i int) *undo {
	ed, old := &d.edits[i], &d.views[i]
	name, had, restorable := d.exec.req.Keys[i], d.had(en, i), d.restorable(en, i)
	switch {
	case ed.Kind == Put:
		ends, kept := d.lasts(en, i), d.engine.cfg.kept(ed.TTL)
		if ed.KeepTTL {
			kept = d.engine.cfg.kept(d.engine.cfg.TTLMax)
		}
		if ends == 0 {
			return nil
		}
		u := undoString(en, kept, d.hold(i), ends)
		if restorable {
			u.Args = luaPutBack.whole([]string{name}, ed.Value, ends, old.Value, had)
		}
		u.once = ed.KeepTTL // that instant is no mark: whoever puts the same value anew has it, too
		return u
	case ed.Kind >= Delete && restorable && d.releases == nil && en.fate == answered:
		e, kept := d.engine, d.engine.cfg.kept(old.TTL)
		u := newUndo(en, kept, luaRestore.whole([]string{name}, old.Value, had))
		u.once = true
		// When its time is over by our clock it stays gone: the master's may have been set back, and have forgotten the key.
		u.gone = e.waited() + kept + Drift(kept, e.cfg.DriftFactor) - (e.now() - d.start)
		return u
	}
	return nil
}

// restorable says that what was there is known, and for how long it was to be.
func (d *editing) restorable(en *entry, i int) bool {
	return d.views[i].Type == "string" && d.had(en, i) > 0
}

// had returns when the master would have dropped the key when it was changed, by its clock: what it answered or, where
// its answer was lost, what it said when it was looked at; 0 if that is not known, or never.
func (d *editing) had(en *entry, i int) int64 {
	if en.fate != answered {
		return d.looked.ends(en.master, i)
	}
	list, _ := en.Reply.([]any)
	at, _ := list[1+i].(int64)
	return at
}

// lasts returns when what was put on a master expires, where it was; 0 if that is not known, or never.
func (d *editing) lasts(en *entry, i int) int64 {
	if d.edits[i].KeepTTL {
		return max(d.had(en, i), d.ends[en.master][i])
	}
	return d.ends[en.master][i]
}

// owed returns what removes h where it was put: its release could not be sent. The other keys have releases of their own.
func (d *editing) owed(en *entry, h hold) *undo {
	done := en.fate == answered && en.took
	if en.undoing || !done && en.fate != unknown {
		return nil
	}
	for _, i := range d.puts {
		if !d.edits[i].KeepTTL && d.hold(i) == h {
			return undoString(en, d.engine.cfg.kept(d.edits[i].TTL), h, d.ends[en.master][i])
		}
	}
	return nil
}
