package quorum

import (
	"crypto/sha1" //nolint:gosec // see history.go
	"slices"
	"time"

	"lockproxy/quorum/rules"
)

// An execRound is the second round of an Exec: each master changes the keys if all are there as the first round saw them.
type execRound struct {
	round
	exec    *exec
	looked  *readRound
	keys    []*edited
	puts    []*edited // the edits that put a value
	mending mending
}

// An edited is a key of an Exec, and its edit.
type edited struct {
	Edit
	at     int // its place among the keys
	key    Key
	was    *View           // as the first round saw the key
	hash   uint64          // of its signature; a value may be long
	digest [sha1.Size]byte // of the put value; see history
	words  [4]any          // of luaEdit, before the instant
	ms     int64           // the time for which masters are to keep the value; 0 if the TTL stays unchanged
	ends   []int64         // by master: when the put value expires. Guarded by round.mu
}

// newExecRound prepares the edits of keys that were looked at.
func newExecRound(x *exec, l *readRound, edits []Edit) *execRound {
	e := x.engine
	d := &execRound{exec: x, looked: l}
	d.mending.of = d
	for i, ed := range edits {
		k := &edited{Edit: ed, at: i, key: Key{x.req.DB, x.req.Keys[i]}, was: &l.views[i], ends: make([]int64, len(e.masters))}
		d.keys = append(d.keys, k)
		if k.Kind == Expire && k.was.Type == "string" { // a Put of the present value, unlike an Expire, can be undone
			k.Kind, k.Value = Put, k.was.Value
		}
		k.hash = k.signature().hash()
		do, value := "keep", ""
		switch k.Kind {
		case Put:
			d.puts = append(d.puts, k)
			do, value = "put", k.Value
			k.digest = digestOf(k.Value)
			k.ms = e.cfg.kept(k.TTL).Milliseconds()
			if k.KeepTTL {
				left := l.latest(i) - l.start - e.uncertainty() // else each Exec could lengthen the TTL that it keeps
				do, k.ms, k.TTL = "replace", left.Milliseconds(), e.cfg.shown(left)
			}
			d.keeps = max(d.keeps, e.cfg.kept(k.TTL))
		case Expire:
			do, k.ms = "expire", e.cfg.kept(k.TTL).Milliseconds()
		case Delete, Claim:
			do = "delete"
		}
		d.keeps = max(d.keeps, time.Duration(k.ms)*time.Millisecond)
		kind, content := k.was.content()
		k.words = [4]any{kind, content, do, value}
	}
	d.dates = d.keeps > 0
	//mutant: what is told is deleted in doubt
	if len(edits) == 1 && edits[0].Kind == Delete {
		d.releases = &signature{name: x.req.Keys[0], token: d.keys[0].was.Value}
	}
	d.program = luaEdit
	return d
}

// ask makes the round; compose makes the command of each master.
func (d *execRound) ask() { beginAll(d.exec.engine, d, d.exec.req.DB, d.exec.req.Keys, nil) }

func (d *execRound) compose(en *entry, now int64) {
	argv := make([]any, 0, 5*len(d.keys))
	for _, k := range d.keys {
		at := int64(0)
		switch {
		case k.KeepTTL:
			at = now - en.lane.clock.beyond + k.ms - (en.lane.clock.gathered - d.looked.start).Milliseconds()
		case k.ms > 0:
			at = en.lane.clock.expiry(k.hash, now+k.ms)
		}
		k.ends[en.master] = at
		argv = append(append(argv, k.words[:]...), at)
	}
	en.Args = d.bySHA(d.exec.req.Keys, argv...)
}

// signature returns the signature of a key that is put: the value signs the key.
func (k *edited) signature() signature { return signature{name: k.key.Name, token: k.Value} }

// read takes 0 for refused, and for granted an array of 1 and when each key was to expire. A master in quarantine may have an
// older copy of the keys, which another client has replaced since: there only a deletion counts.
func (d *execRound) read(en *entry) ballot {
	if en.Err != nil {
		return readError(en.Err)
	}
	if list, ok := en.Reply.([]any); ok && len(list) == 1+len(d.keys) {
		en.took = len(d.puts) > 0
		d.noteGrants(en)
		//mutant: an older copy is replaced once more
		if d.releases != nil {
			return granted
		}
		return grantedIfClean
	}
	if en.Reply == int64(other) {
		d.oweDeletions(en)
		return refused
	}
	return unexpected
}

// noteGrants notes the keys that an Exec has put on a master, except keys that kept their expiry: the expiry may be a guarded
// instant.
func (d *execRound) noteGrants(en *entry) {
	for _, k := range d.puts {
		if at := k.ends[en.master]; at > 0 && !k.KeepTTL {
			//mutant: a release of a lock that was put is not made late
			en.lane.ledger.granted(k.hash, d.place.Load(), at)
		}
	}
}

// oweDeletions marks a repair that waits in the lane for undoing if the repair puts a value that this Exec has deleted elsewhere. It
// is called with the round's mu held.
func (d *execRound) oweDeletions(en *entry) {
	for _, k := range d.keys {
		if k.Kind >= Delete && k.was.Type == "string" {
			//mutant: a repair brings back what was deleted meanwhile
			en.lane.ledger.owe(signature{name: k.key.Name, token: k.was.Value}, d.place.Load())
		}
	}
}

// mayHaveChanged says whether the plan did anything to the key: a refused SET NX of a transaction leaves its key alone.
func (d *execRound) mayHaveChanged(_ rules.Decision, name string) bool {
	return slices.ContainsFunc(d.keys, func(k *edited) bool { return k.key.Name == name && k.Kind != Keep })
}

// decide gives a deletion the benefit of the doubt, like a release. A try that has lost still waits for the masters to which its
// command was sent: their changes must be known before the next try begins.
func (d *execRound) decide(t rules.Tally) rules.Decision {
	if d.releases != nil {
		return rules.DecideRelease(t)
	}
	decision := rules.DecideAcquire(t)
	if decision != rules.Lost {
		return decision
	}
	for i := range d.entries {
		//mutant: a try that has lost waits for who was not told
		if en := &d.entries[i]; en.vote == rules.Pending && en.fate == sent {
			return rules.Undecided
		}
	}
	return rules.Lost
}

func (d *execRound) ended(decision rules.Decision) {
	d.mending.learnSeen()
	switch {
	case decision == rules.Won:
		d.won()
	//mutant: what may be done is done again
	case decision == rules.Lost && !d.mayBeDone():
		err := d.failure()
		//mutant: an Exec that lost is not put back
		d.undo(func() {
			if d.noteLeft() {
				d.exec.again(err)
			} else {
				d.exec.done(Executed{Err: err})
			}
		})
	default:
		err := d.failure()
		//mutant: an Exec without a quorum is not put back
		d.undo(func() { d.exec.done(Executed{Err: err}) })
	}
}

// won reports success, and promises the put keys. If no validity of the put keys is left, won undoes all instead.
func (d *execRound) won() {
	until, promised := d.until()
	done := Executed{Done: true}
	if promised {
		done.Lock = &Lock{engine: d.engine, taken: d, until: until}
		//mutant: validity of an Exec ignored
		if d.engine.catchUp() >= until {
			d.undo(func() { d.exec.done(Executed{Err: ErrLate}) })
			return
		}
	}
	//mutant: a master that missed a change is not repaired
	d.mending.begin()
	d.exec.done(done)
}

// until returns until when all put keys are promised, and false if none is. A TTL that is kept counts from the look at the keys. A
// key that was given up is not promised.
func (d *execRound) until() (until instant, promised bool) {
	until = instant(1<<63 - 1)
	for _, k := range d.puts {
		since, validity := d.start, rules.Validity(k.TTL, 0, d.engine.cfg.DriftFactor)
		switch {
		case k.KeepTTL:
			//mutant: a TTL that is kept counts from the change
			since = d.looked.start
		case k.givesUp(&d.engine.cfg):
			continue
		}
		//mutant: T1 of an Exec read after the round
		until, promised = min(until, since+validity), true
	}
	return until, promised
}

// givesUp says that the key got a TTL of which no validity can be left (see TTLMin), or a TTL shorter than both the TTL that was left
// and the longest round: the client is giving the lock up, so a late success is a success.
func (k *edited) givesUp(c *Config) bool {
	return k.TTL < rules.TTLMin(c.DriftFactor) || k.TTL < k.was.TTL && k.TTL <= c.InstanceTimeout
}

func (d *execRound) signatures() (all []signature) {
	for _, k := range d.puts {
		all = append(all, k.signature())
	}
	return all
}

// appendKeys names all put keys.
func (d *execRound) appendKeys(to []Key) []Key {
	for _, k := range d.puts {
		to = append(to, k.key)
	}
	return to
}
