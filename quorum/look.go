package quorum

import (
	"slices"
)

// look reads several keys of one database in one round, at one moment on each master, and calls done with what a
// quorum agrees on about each.
func (e *Engine) look(db int, names []string, done func(error, []view, *looking)) {
	l := &looking{names: names, done: done}
	e.beginAll(&l.round, l, Key{db, names[0]}, names[1:], luaLook.all(names, nil))
}

// A looking is a reading of several keys.
type looking struct {
	round
	names  []string
	done   func(error, []view, *looking)
	seen   [][]sighting // by master, then by key; of those that answered in time. Guarded by round.mu, as is agreed
	agreed []opinion
}

func (l *looking) read(en *entry) (Vote, string) {
	if en.Err != nil {
		return ballot(en.Err)
	}
	list, ok := en.Reply.([]any)
	if !ok || len(list) != len(l.names) {
		return unexpected()
	}
	all := make([]sighting, len(list))
	for i := range list {
		one, ok := list[i].([]any)
		if !ok {
			return unexpected()
		}
		if all[i], ok = parseSighting(one); !ok {
			return unexpected()
		}
	}
	blank := slices.ContainsFunc(all, func(s sighting) bool { return !s.exists })
	if en.proves(blank) {
		if l.seen == nil {
			l.seen = make([][]sighting, len(l.entries))
		}
		l.seen[en.master] = all
	}
	return Granted, ""
}

// decide waits until something is known about every key.
func (l *looking) decide(t Tally) Decision {
	agreed := make([]opinion, len(l.names))
	decision := Won
	for i := range l.names {
		var opinions []opinion
		for _, s := range l.of(i) {
			opinions = append(opinions, s.opinion)
		}
		o, d := decideRead(t, opinions)
		switch d {
		case Unanswered:
			return Unanswered
		case Undecided:
			decision = Undecided
		}
		agreed[i] = o
	}
	l.agreed = agreed
	return decision
}

// of returns what the masters said about the i-th key.
func (l *looking) of(i int) []sighting {
	var all []sighting
	for _, seen := range l.seen {
		if seen != nil {
			all = append(all, seen[i])
		}
	}
	return all
}

func (l *looking) settled(*entry) {}

func (l *looking) ended(d Decision) {
	if d == Unanswered {
		l.done(l.failure(), nil, nil)
		return
	}
	views := make([]view, len(l.names))
	l.mu.Lock()
	for i, o := range l.agreed {
		v := view{View: View{Type: "none"}}
		if o.exists {
			v = view{View: View{Exists: true, Type: o.kind, TTL: l.engine.remaining(l.of(i), o)}, seen: o}
			if o.kind == "string" {
				v.Value = o.value
			} else {
				v.Digest = o.value
			}
		}
		views[i] = v
	}
	l.mu.Unlock()
	l.done(nil, views, l)
}

// ends returns when a master was to drop the i-th key when it was looked at, or 0 if that is not known, or never.
func (l *looking) ends(master, i int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[master] == nil || l.seen[master][i].opinion != l.agreed[i] || l.seen[master][i].left < 0 {
		return 0
	}
	return l.seen[master][i].ends
}
