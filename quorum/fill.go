package quorum

import (
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
)

// A fill gives one master a key of a lock that the other masters hold. The master may lack the key because the master was away when
// the lock was taken, or has lost its data since. Without fills, a lock that is extended for long would be lost once the other
// masters, too, have been restarted one after the other. So a master that has nothing of a lock when a quorum extends the lock is
// given the quorum's key. The fill is no vote in this extension, but makes a vote in the next extension possible.
//
// A fill takes nothing from anybody: a fill replaces no key, and a master in quarantine, which may have forgotten a key, is not
// filled.
//
// A fill brings back no lock that is gone (rule 11). The master takes the key only within the validity of the others' keys, by the
// master's own clock, so nobody else can have held the lock in between; and the key lives no longer than theirs. But the lock may
// have been released or broken meanwhile. So the others are looked at twice, before the fill and afterwards. Unless a quorum of the
// masters that were extended still have the key, the fill is not made, or is undone. The first look comes one InstanceTimeout (the
// longest of all proxies) after the extension, the second as long after the fill: by then a release that a quorum answered has
// reached all others, too.
type fill struct {
	masters.Call
	lane  *lane
	gap   *gap
	at    answerTime // when the next step is due
	ends  int64      // when the key expires, ms of the master's clock; 0 before the fill is sent
	seen  string     // the others' value, or its digest
	tries int        // how often somebody else had a vote there

	start instant       // T1 of the first look
	kept  time.Duration // from start: how long each of the others keeps the lock, at least
}

// A gap is a lock that a quorum has extended, and that a master did not have.
type gap struct {
	key    Key
	value  string // of the others' keys, if they are strings that were set as strings
	dump   string // else the DUMP of the others' keys
	others uint64 // a bit for each master that has extended the lock
}

// dumpMax is the longest dump that is kept for a fill. A lock's dump has a hundred bytes.
const dumpMax = 4096

// fillTries is how often a fill is tried where somebody else has a vote: if many clients ask for a lock, some have a vote at any moment.
const fillTries = 8

// fill begins to fill the gaps of the masters that have answered. The gaps of masters that answer later follow; see fillLate.
func (r *round) fill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fills = true
	for i := range r.entries {
		r.fillAt(&r.entries[i])
	}
}

func (r *round) fillLate(en *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fills {
		r.fillAt(en)
	}
}

func (r *round) fillAt(en *entry) {
	if en.vote == rules.Pending || en.vote == rules.Failed {
		return
	}
	for _, g := range r.operation.lacking(en) {
		if en.lane.ledger.beginFill(g.signature()) {
			//mutant: a gap is filled at once
			(&fill{lane: en.lane, gap: g}).wait()
		}
	}
}

// granting returns a bit for each master that has granted. The caller holds the round's mu.
func (r *round) granting() (bits uint64) {
	for en := range r.who(rules.Granted) {
		bits |= 1 << en.master
	}
	return bits
}

// wait lets the longest InstanceTimeout of all proxies pass before the others are looked at.
func (f *fill) wait() {
	e := f.lane.engine
	//mutant: a fill does not wait for slower proxies
	f.at = e.waited().plus(e.bounds.Load().Patience)
	//mutant: attempts wait for fills
	e.fills.add(f.at, f)
}

func (f *fill) expire() {
	if !f.lane.engine.closing.Load() {
		f.look()
	}
}

// look looks whether the lock is still there.
func (f *fill) look() {
	e := f.lane.engine
	(&readRound{every: true, done: func(l *readRound) {
		switch there := f.isThere(l); {
		//mutant: a lock that is gone is filled
		//mutant: what masters do not agree on is filled
		case there && f.ends == 0:
			f.at, f.start = e.waited(), l.start
			if !f.lane.queue.push(f, f.at).none() {
				f.over()
			}
		//mutant: what was filled stays where the lock is gone
		case !there && f.ends != 0:
			f.lane.queue.pushUndo(f.undo())
		case f.ends == 0:
			f.over()
		}
	}}).ask(e, f.gap.key.DB, []string{f.gap.key.Name})
}

// isThere says that a quorum of the others still have the key, and so has the master if the master was filled already. isThere notes
// the others' value (seen), and for how long the others keep the key (kept).
func (f *fill) isThere(l *readRound) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	//mutant: what was filled stays where the lock has changed
	same, filled := 0, f.ends == 0
	if f.seen = l.keys[0].agreed.Value; f.gap.dump == "" && f.seen != f.gap.value {
		return false // the key is somebody else's by now. A dump is compared by the master itself; see luaFillDump
	}
	f.kept = l.engine.cfg.kept(l.engine.cfg.TTLMax)
	for _, s := range l.keys[0].told {
		switch {
		case !s.Exists || s.Opinion != l.keys[0].agreed:
		case f.gap.others&(1<<s.master) != 0:
			same++
			//mutant: a fill outlives the lock
			f.kept = min(f.kept, l.engine.cfg.lasts(s.left))
		case l.entries[s.master].lane == f.lane:
			filled = true
		}
	}
	//mutant: what was filled stays where the lock may be gone
	return filled && same >= rules.Quorum(len(l.entries))
}

func (f *fill) command() *masters.Call { return &f.Call }

// keeps is 0: nobody relies on a fill before the next extension, which has a vote there and extends the horizon.
func (f *fill) keeps() time.Duration { return 0 }

func (f *fill) take(now answerTime) bool {
	l, g := f.lane, f.gap
	//mutant: a master in quarantine is filled
	if now >= f.at.plus(l.engine.cfg.InstanceTimeout) || l.clock.unsure || l.recovery.cause() != "" {
		f.over()
		return false
	}
	c := &l.engine.cfg
	in := func(d time.Duration) int64 { return (f.start + d - l.clock.gathered).Milliseconds() }
	least := l.clock.earliest(l.clock.gathered)
	f.ends = l.clock.expiryAnew(g.signature().hash(), l.clock.now+in(f.kept))
	keys := []string{g.key.Name, canaryKey}
	argv := []any{g.value, f.ends, least + in(rules.Validity(c.shown(f.kept), 0, c.DriftFactor)), l.connection.marks.canary}
	if f.Args = luaFill.whole(keys, argv...); g.dump != "" {
		argv[0] = g.dump
		f.Args = luaFillDump.whole(keys, append(argv, f.seen)...)
	}
	return true
}

func (f *fill) reply(instant) {
	switch f.Reply {
	case int64(didIt):
		//mutant: a fill that is done keeps others away
		f.over()
		//mutant: a release of a lock that was filled is not made late
		f.lane.ledger.granted(f.gap.signature().hash(), f.lane.engine.rounds.Load(), f.ends)
		//mutant: what was filled is looked at at once
		f.wait()
	case int64(other): // perhaps only for a moment: a client that asks for the lock in vain undoes its key
		//mutant: a fill is not tried again
		if f.tries++; f.tries < fillTries {
			f.Call, f.ends = masters.Call{}, 0
			f.wait()
		} else {
			f.over()
		}
	default: // an error: nobody knows how far the script came
		f.takeBack()
	}
}

func (f *fill) lost(string) {
	//mutant: what may have been filled stays
	f.takeBack()
}

func (f *fill) takeBack() {
	f.over()
	f.lane.queue.pushUndo(f.undo())
}

// over is called once: when the fill is done, or given up.
func (f *fill) over() { f.lane.ledger.endFill(f.gap.signature()) }

// undo returns the undo of the key that the fill has set, or may have set.
func (f *fill) undo() *undo {
	u := newUndo(f.lane, f.gap.signature(), f.ends, f.kept)
	u.unknown = !f.Answered
	return u
}

// signature is the lock's signature, as releases know the lock: with the DUMP as Effect.Digest has it.
func (g *gap) signature() signature {
	sig := signature{g.key.Name, g.value, g.dump}
	if len(sig.dump) > 64 {
		sig.dump = shaOf(sig.dump)
	}
	return sig
}
