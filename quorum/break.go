package quorum

import "lockproxy/quorum/rules"

// luaBreak KEYS[1]=resource ARGV[1]=the last moment: delete whatever is there.
var luaBreak = newLua(luaInTime + `
if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end
` + luaFree)

// A breakRound is the round of a Break.
type breakRound struct {
	removeRound
	key Key
}

// ask makes the round; compose names the last moment to each master.
func (b *breakRound) ask(e *Engine) {
	b.blind = true
	begin(e, b, b.key, nil)
}

func (b *breakRound) compose(en *entry, _ int64) {
	en.Args = luaBreak.whole([]string{b.key.Name}, en.lastMoment())
}

// read takes a key that is absent for an answer, of a master in quarantine, too: what it does not have need not be deleted.
func (b *breakRound) read(en *entry) ballot {
	is := comparison(en)
	is.ifClean = false
	return is
}

func (*breakRound) reads() bool { return false }

// decide waits for every master, of which one is enough.
func (b *breakRound) decide(t rules.Tally) rules.Decision {
	switch {
	case t.Pending() > 0:
		return rules.Undecided
	case t.Answered() < rules.Quorum(t.Masters):
		return rules.Unanswered
	case t.Granted > 0:
		return rules.Won
	}
	return rules.Lost
}
