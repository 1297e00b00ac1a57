package quorum

import (
	"slices"
	"time"

	"lockproxy/quorum/vouch"
)

// look reads several keys of one database in one round, at one moment on each master.
func (e *Engine) look(db int, names []string, l *looking) {
	l.keys, l.names = make([]agreement, len(names)), names
	e.beginAll(l, db, names, l.runs(luaLook, names))
}

// A looking is a reading of several keys.
type looking struct {
	round
	keys  []agreement
	names []string
	every bool   // it waits for every master, and ignores one in quarantine, which may have an older copy
	marks []Mark // it waits for the masters that told of these
	done  func(*looking)

	// The outcome, for done.
	err     error  // *NoQuorum, ErrClosed
	views   []View // by key: what a quorum agrees on
	unclear bool   // there is a key about which no opinion can have a quorum
}

// read takes what a master tells of the keys: of all, or of none.
func (l *looking) read(en *entry) ballot {
	if en.Err != nil {
		return readError(en.Err)
	}
	all, ok := parseSightings(en.Reply, len(l.keys))
	if !ok {
		return unexpected
	}
	is := granted
	//mutant: a checkup goes by an older copy
	if l.every || slices.ContainsFunc(all, func(s sighting) bool { return !s.exists }) {
		is = grantedIfClean
	}
	if en.counts(is) {
		for i := range all {
			all[i].timeLateness(en.lane, l.names[i])
			l.keys[i].add(en, all[i])
		}
	}
	return is
}

// parseSightings reads the reply of luaLook about so many keys.
func parseSightings(reply any, n int) ([]sighting, bool) {
	list, _ := reply.([]any)
	all := make([]sighting, len(list))
	for i := range list {
		var ok bool
		if all[i], ok = parseSighting(list[i]); !ok {
			return nil, false
		}
	}
	return all, len(all) == n
}

// parseSighting reads the part of that reply that is about one key.
func parseSighting(reply any) (sighting, bool) {
	list, _ := reply.([]any)
	if len(list) == 1 && list[0] == "none" {
		return sighting{}, true
	}
	if len(list) != 5 {
		return sighting{}, false
	}
	kind, ok1 := list[0].(string)
	value, ok2 := list[1].(string)
	ms, ok3 := list[2].(int64)
	ends, ok4 := list[3].(int64)
	slack, ok5 := list[4].(int64)
	s := sighting{opinion: opinion{true, kind, value}, left: time.Duration(ms) * time.Millisecond, ends: ends, slack: slack}
	return s, ok1 && ok2 && ok3 && ok4 && ok5
}

// decide waits until something is known about every key.
func (l *looking) decide(t tally) Decision {
	decision := Won
	//mutant: who told of what is watched is not waited for
	if l.every && t.Pending() > 0 || slices.ContainsFunc(l.marks, l.awaits) {
		return Undecided
	}
	for i := range l.keys {
		switch l.keys[i].decide(t) {
		case Unanswered:
			return Unanswered
		case Undecided:
			decision = Undecided
		case Lost:
			if decision == Won {
				decision = Lost
			}
		}
	}
	return decision
}

// awaits says that a master which told of what is marked has not answered.
func (l *looking) awaits(m Mark) bool {
	return slices.ContainsFunc(m.told, func(s sighting) bool { return l.entries[s.master].vote == Pending })
}

func (l *looking) ended(d Decision) {
	if d == Unanswered {
		l.err = l.failure()
	}
	l.unclear = d == Lost
	l.views = make([]View, len(l.keys))
	l.mu.Lock()
	for i := range l.keys {
		l.timeDrops(&l.keys[i])
		l.views[i] = l.engine.view(&l.keys[i])
	}
	l.mu.Unlock()
	l.done(l)
}

// ends returns when a master was to drop what was agreed on of the i-th key, as it told in this look; 0 if it told nothing of
// that, or never drops it.
func (l *looking) ends(master, i int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.keys[i].told {
		if s.master == master && s.opinion == l.keys[i].agreed && s.left >= 0 {
			return s.ends
		}
	}
	return 0
}

// timeDrops notes when each master that drops a key is to do so, by our clock. One command may reach some masters an InstanceTimeout
// later than others, and clocks drift until then, so the span is wider by both, on both sides. It is called with mu held.
func (l *looking) timeDrops(a *agreement) {
	e, now := l.engine, l.engine.now()
	for i := range a.told {
		if s := &a.told[i]; s.left >= 0 {
			ends := e.masters[s.master].watch.when(now, s.ends)
			wider := e.cfg.InstanceTimeout + Drift(s.left, e.cfg.DriftFactor)
			s.drops = vouch.Span{Lo: ends.Lo - wider, Hi: ends.Hi + wider}
		}
	}
}

// latest returns the latest moment, by our clock, until which a master that agrees on the i-th key surely keeps it. For each
// extension that a client was told of, one of these masters has made it. The moment is no later than ttl_max allows: a master
// whose clock was set back may tell more.
func (l *looking) latest(i int) (until instant) {
	e := l.engine
	now, most := e.now(), l.start+e.cfg.kept(e.cfg.TTLMax)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.keys[i].told {
		switch {
		case s.opinion != l.keys[i].agreed:
		case s.left < 0: // set on the master by someone else, for ever
			return most
		default:
			//mutant: a TTL that is kept is what was left when it was told
			until = max(until, e.masters[s.master].watch.when(now, s.ends).Lo)
		}
	}
	return min(until, most)
}
