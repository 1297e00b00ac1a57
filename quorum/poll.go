package quorum

import "lockproxy/quorum/rules"

// Polled is the outcome of a Poll.
type Polled struct {
	Err     error // *NoQuorum, ErrClosed
	Replies []any // by master; nil where there was none in time
}

// A pollRound asks every master the same question.
type pollRound struct {
	round
	all     bool // it waits for every master
	changes bool // it may change a key
	done    func(Polled)
}

// ask makes the round of a command that keeps its order among the commands on key.
func (p *pollRound) ask(e *Engine, key Key, command []any) { begin(e, p, key, command) }

func (p *pollRound) read(en *entry) ballot {
	if en.Err != nil {
		return failed(failureText(en.Err))
	}
	return granted
}

func (p *pollRound) reads() bool { return !p.changes }

func (p *pollRound) decide(t rules.Tally) rules.Decision {
	if p.all && t.Pending() > 0 {
		return rules.Undecided
	}
	return rules.DecideAcquire(t)
}

func (p *pollRound) ended(d rules.Decision) {
	if d != rules.Won {
		p.done(Polled{Err: p.failure()})
		return
	}
	p.mu.Lock()
	replies := make([]any, len(p.entries))
	for en := range p.who(rules.Granted) {
		replies[en.master] = en.Reply
	}
	p.mu.Unlock()
	p.done(Polled{Replies: replies})
}
