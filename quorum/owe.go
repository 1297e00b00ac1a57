package quorum

// A hold is a token on a resource.
type hold struct{ name, token string }

// oweRelease notes that the master was not told of a release, if the entry is one.
func (en *entry) oweRelease() {
	if h := en.round.releases; h != nil {
		en.lane.owe(*h)
	}
}

// owe notes a release that could not be sent. If a batch that is in flight takes the lock for the same token, as one that
// a stalled master runs when it wakes, or if a broken connection may have, the key is to be removed.
func (l *lane) owe(h hold) {
	l.mu.Lock()
	if l.busy != idle && len(l.owed) < l.engine.cfg.QueueMax {
		if l.owed == nil {
			l.owed = make(map[hold]bool)
		}
		l.owed[h] = true
	}
	en := l.broken[h]
	l.mu.Unlock()
	if en == nil {
		return
	}
	en.round.mu.Lock()
	u := en.round.owner.(taker).owed(en, h)
	en.round.mu.Unlock()
	if u != nil {
		l.pushUndo(u)
	}
}

func (l *lane) owes(h hold) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owed[h]
}

// remember keeps an attempt of unknown fate until the next connection, for owe.
func (l *lane) remember(h hold, en *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = make(map[hold]*entry)
	}
	l.broken[h] = en
}
