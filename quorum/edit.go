package quorum

import (
	"slices"
	"time"
)

// An editing is the second round of an Exec: it changes the keys on each master on which all are as the first round saw them.
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
	undone  [][]*undo // by master: the undos of its changes. Guarded by round.mu
	known   uint64    // history.now when this had won. Guarded by round.mu
	repairs []*repair // guarded by round.mu
	checked bool      // a checkup is due, or was, or is not wanted. Guarded by round.mu
}

func (e *Engine) edit(x *exec, l *looking, edits []Edit) {
	d := &editing{exec: x, looked: l, views: l.views, edits: edits, sums: make([]sum, len(edits))}
	argv := make([]any, 0, 5*len(edits))
	for i := range edits {
		d.expireByPut(i)
		d.sums[i].hash = d.signature(i).hash()
		kind, value, ms := "keep", "", int64(0)
		switch ed := &edits[i]; ed.Kind {
		case Put:
			d.puts = append(d.puts, i)
			kind, value = "put", ed.Value
			d.sums[i].digest = digestOf(ed.Value)
			ms = e.cfg.kept(ed.TTL).Milliseconds()
			if ed.KeepTTL {
				left := l.latest(i) - l.start - e.uncertainty() // else each Exec could lengthen the TTL that it keeps
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
	d.dates, d.lasting = d.keeps > 0, d.keeps > 0 || len(d.puts) > 0
	if len(edits) == 1 && edits[0].Kind == Delete {
		d.releases = &signature{name: x.req.Keys[0], token: d.views[0].content()}
	}
	d.program = luaEdit
	d.argv, d.ends, d.undone = argv, make([][]int64, len(e.masters)), make([][]*undo, len(e.masters))
	e.beginAll(d, x.req.DB, x.req.Keys, nil) // see compose
}

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

// expireByPut turns an Expire of a string into a Put of the value that is there: unlike an Expire, a Put can be undone.
func (d *editing) expireByPut(i int) {
	if ed := &d.edits[i]; ed.Kind == Expire && d.views[i].Type == "string" {
		ed.Kind, ed.Value = Put, d.views[i].Value
	}
}

// read takes 0 for refused, and for granted an array of 1 and when each key was to expire. A master in quarantine may have an
// older copy of the keys, which another client has replaced since: there only a deletion counts.
func (d *editing) read(en *entry) (Vote, string) {
	if en.Err != nil {
		return ballot(en.Err)
	}
	if list, ok := en.Reply.([]any); ok && len(list) == 1+len(d.edits) {
		en.took = len(d.puts) > 0
		d.noteGrants(en)
		en.blank = d.releases == nil
		return Granted, ""
	}
	if en.Reply == int64(other) {
		return Refused, ""
	}
	return unexpected()
}

// decide gives a deletion the benefit of the doubt, like a release. A try that has lost still waits for the masters to which
// its command was sent: what they did must be known before the next try begins.
func (d *editing) decide(t tally) Decision {
	if d.releases != nil {
		return decideRelease(t)
	}
	decision := decideAcquire(t)
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
	d.learnSeen()
	switch {
	case decision == Won:
		d.won()
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

// won tells that all is done, and promises what was put. If no validity of that is left, it undoes all instead.
func (d *editing) won() {
	until, promised := d.until()
	done := Executed{Done: true}
	if promised {
		done.Lock = &Lock{engine: d.engine, taken: d, until: until}
		if d.engine.catchUp() >= until {
			d.undo(func() { d.exec.done(Executed{Err: ErrLate}) })
			return
		}
	}
	d.repair()
	d.exec.done(done)
}

// until returns until when all keys that were put are promised, and false if none is. A TTL that is kept counts from when the
// keys were looked at. A client that replaces what is there with a TTL too short for any validity gives the lock up, as
// ShedLock does: that is done, and nothing is promised.
func (d *editing) until() (until instant, promised bool) {
	until = instant(1<<63 - 1)
	for _, i := range d.puts {
		since, validity := d.start, Validity(d.edits[i].TTL, 0, d.engine.cfg.DriftFactor)
		switch {
		case d.edits[i].KeepTTL:
			since = d.looked.start
		case d.views[i].Exists && validity < time.Millisecond:
			continue
		}
		until, promised = min(until, since+validity), true
	}
	return until, promised
}

func (d *editing) key(i int) Key { return Key{d.exec.req.DB, d.exec.req.Keys[i]} }

func (d *editing) signatures() (all []signature) {
	for _, i := range d.puts {
		all = append(all, d.signature(i))
	}
	return all
}

// signature is that of a key that is put: its value signs it.
func (d *editing) signature(i int) signature {
	return signature{name: d.exec.req.Keys[i], token: d.edits[i].Value}
}

// appendTaken names all that was put. What was put over a string is not fresh: that may have been the same client's lock.
func (d *editing) appendTaken(to []Taken) []Taken {
	for _, i := range d.puts {
		to = append(to, Taken{d.key(i), d.edits[i].Value, !d.views[i].Exists})
	}
	return to
}
