package quorum

// luaBreak KEYS[1]=resource ARGV[1]=the last moment: delete whatever is there.
var luaBreak = newLua(luaInTime + `
if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end
` + luaFree)

// Break deletes whatever any master has under a key, and rings for those that wait for it: what a quorum holds, and what
// only some have. It asks all masters and waits for each, an InstanceTimeout if one is late; what a master that is not
// reached in time has, expires there: see lastMoment. Applied says that something was there.
//
// It is an operator's means, and no rule protects whom it hits: a holder goes on believing in the lock, and an attempt
// through another proxy, a vote of which is deleted while others are being counted, may be granted one vote too few.
func (e *Engine) Break(key Key, done func(Changed)) {
	b := &breakRound{removeRound: removeRound{done: done}, name: key.Name}
	b.blind = true
	e.begin(b, key, nil) // see compose
}

type breakRound struct {
	removeRound
	name string
}

func (b *breakRound) compose(en *entry, _ int64) {
	en.Args = luaBreak.whole([]string{b.name}, en.lastMoment())
}

// read takes a key that is absent for an answer, of a master in quarantine, too: what it does not have need not be deleted.
func (b *breakRound) read(en *entry) ballot {
	is := comparison(en)
	is.ifClean = false
	return is
}

func (*breakRound) reads() bool { return false }

// decide waits for every master, of which one is enough.
func (b *breakRound) decide(t tally) Decision {
	switch {
	case t.Pending() > 0:
		return Undecided
	case t.Answered() < Quorum(t.Masters):
		return Unanswered
	case t.Granted > 0:
		return Won
	}
	return Lost
}
