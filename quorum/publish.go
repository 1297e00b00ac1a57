package quorum

// Published is the outcome of a Publish.
type Published struct {
	Err error // *NoQuorum, ErrClosed; the message may be delivered all the same
	// Receivers is, by master, how many subscriptions of connections to it the message met; -1 where that is not known.
	Receivers []int64
}

// Publish sends a message to the channel on every master. It is published when a quorum has it. Messages on one channel
// reach each master in the order of the calls.
func (e *Engine) Publish(channel, message string, done func(Published)) {
	p := &publishing{done: done}
	e.begin(&p.round, p, Key{Name: channel}, []any{"PUBLISH", channel, seal(e.labels.next(), 0, message)})
}

type publishing struct {
	round
	done func(Published)
}

func (p *publishing) read(en *entry) (Vote, string) {
	if en.Err != nil {
		return Failed, failureText(en.Err)
	}
	if _, ok := en.Reply.(int64); !ok {
		return unexpected()
	}
	return Granted, ""
}

func (p *publishing) decide(t Tally) Decision { return Decide(t) }
func (p *publishing) ended(d Decision) {
	if d != Won {
		p.done(Published{Err: p.failure()})
		return
	}
	counts := make([]int64, len(p.entries))
	for i, reply := range p.votedFor() {
		n, ok := reply.(int64)
		if !ok {
			n = -1
		}
		counts[i] = n
	}
	p.done(Published{Receivers: counts})
}
