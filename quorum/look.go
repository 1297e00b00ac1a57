package quorum

import "slices"

// look reads several keys of one database in one round, at one moment on each master, and calls done with what a
// quorum agrees on about each.
func (e *Engine) look(db int, names []string, done func(error, []View, *looking)) {
	l := &looking{keys: make([]agreement, len(names)), done: done}
	l.program = luaLook
	e.beginAll(&l.round, l, Key{db, names[0]}, names[1:], luaLook.bySHA(names, nil))
}

// A looking is a reading of several keys.
type looking struct {
	round
	keys  []agreement
	every bool // every master is waited for, and one in quarantine tells nothing: it may have an older copy

	unclear bool // of some key no opinion can have a quorum
	done    func(error, []View, *looking)
}

// read hears what a master tells of all keys, or nothing.
func (l *looking) read(en *entry) (Vote, string) {
	if en.Err != nil {
		return ballot(en.Err)
	}
	list, _ := en.Reply.([]any)
	if len(list) != len(l.keys) {
		return unexpected()
	}
	all := make([]sighting, len(list))
	for i := range list {
		var ok bool
		if all[i], ok = parseSighting(list[i]); !ok {
			return unexpected()
		}
	}
	blank := l.every || slices.ContainsFunc(all, func(s sighting) bool { return !s.exists })
	if en.proves(blank) {
		for i := range all {
			l.keys[i].add(en, all[i])
		}
	}
	return Granted, ""
}

// decide waits until something is known about every key.
func (l *looking) decide(t Tally) Decision {
	decision := Won
	if l.every && t.Pending() > 0 {
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

func (l *looking) ended(d Decision) {
	if d == Unanswered {
		l.done(l.failure(), nil, nil)
		return
	}
	l.unclear = d == Lost
	views := make([]View, len(l.keys))
	l.mu.Lock()
	for i := range l.keys {
		views[i] = l.engine.view(&l.keys[i])
	}
	l.mu.Unlock()
	l.done(nil, views, l)
}

// ends returns when a master was to drop the i-th key when it was looked at, or 0 if that is not known, or never.
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
