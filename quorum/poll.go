package quorum

// Polled is the outcome of a Poll.
type Polled struct {
	Err     error // *NoQuorum, ErrClosed
	Replies []any // by master; nil where there was none in time
}

// Poll asks every master the same question about itself, and has the answers of a quorum at least.
func (e *Engine) Poll(question []any, done func(Polled)) {
	p := &polling{done: done}
	e.begin(&p.round, p, Key{}, question)
}

type polling struct {
	round
	done func(Polled)
}

func (p *polling) read(en *entry) (Vote, string) {
	if en.Err != nil {
		return Failed, failureText(en.Err)
	}
	return Granted, ""
}

func (p *polling) decide(t Tally) Decision { return Decide(t) }
func (p *polling) ended(d Decision) {
	if d != Won {
		p.done(Polled{Err: p.failure()})
		return
	}
	p.done(Polled{Replies: p.votedFor()})
}

// votedFor returns the replies of the masters that have granted, by master; nil for the rest.
func (r *round) votedFor() []any {
	r.mu.Lock()
	defer r.mu.Unlock()
	replies := make([]any, len(r.entries))
	for i := range r.entries {
		if en := &r.entries[i]; en.vote == Granted { // the others' may be being read just now
			replies[i] = en.Reply
		}
	}
	return replies
}
