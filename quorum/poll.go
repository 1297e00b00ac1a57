package quorum

// Polled is the outcome of a Poll.
type Polled struct {
	Err     error // *NoQuorum, ErrClosed
	Replies []any // by master; nil where there was none in time
}

// Poll asks every master the same question about itself, and waits for the answers of a quorum at least.
func (e *Engine) Poll(question []any, done func(Polled)) { e.poll(Key{}, question, done) }

// poll is Poll with a command that keeps its order among the commands on key.
func (e *Engine) poll(key Key, command []any, done func(Polled)) {
	p := &pollRound{done: done}
	e.begin(p, key, command)
}

type pollRound struct {
	round
	all     bool // it waits for every master
	changes bool // it may change a key
	done    func(Polled)
}

func (p *pollRound) read(en *entry) ballot {
	if en.Err != nil {
		return failed(failureText(en.Err))
	}
	return granted
}

func (p *pollRound) reads() bool { return !p.changes }

func (p *pollRound) decide(t tally) Decision {
	if p.all && t.Pending() > 0 {
		return Undecided
	}
	return decideAcquire(t)
}

func (p *pollRound) ended(d Decision) {
	if d != Won {
		p.done(Polled{Err: p.failure()})
		return
	}
	p.mu.Lock()
	replies := make([]any, len(p.entries))
	for en := range p.who(Granted) {
		replies[en.master] = en.Reply
	}
	p.mu.Unlock()
	p.done(Polled{Replies: replies})
}
