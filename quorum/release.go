package quorum

import "lockproxy/quorum/rules"

// A releaseRound deletes a lock's key where the token holds it.
type releaseRound struct {
	round
	key   Key
	token string
	done  func(Released)
}

func (r *releaseRound) ask(e *Engine) {
	r.releases = &signature{name: r.key.Name, token: r.token}
	begin(e, r, r.key, r.runs(luaRelease, []string{r.key.Name}, r.token))
}

func (r *releaseRound) read(en *entry) ballot { return comparison(en) }
func (*releaseRound) reads() bool             { return false }

func (r *releaseRound) decide(t rules.Tally) rules.Decision { return rules.DecideRelease(t) }

func (r *releaseRound) ended(d rules.Decision) {
	switch {
	case d == rules.Won:
		r.engine.stats.released.Add(1)
		r.done(Released{Held: true})
	case d == rules.Unanswered:
		r.done(Released{Err: r.failure()})
	case r.wrongType():
		r.done(Released{Err: ErrWrongType})
	default:
		r.done(Released{Absent: r.absent()})
	}
}

// absent says that a quorum had no such key.
func (r *round) absent() bool { return r.answers(absent) >= rules.Quorum(len(r.entries)) }

// answers counts the masters that refused with the integer n.
func (r *round) answers(n int64) int {
	return r.number(rules.Refused, func(en *entry) bool { return en.Reply == n })
}
