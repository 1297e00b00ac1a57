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
func (p *publishing) settled(*entry)          {}

func (p *publishing) ended(d Decision) {
	if d != Won {
		p.done(Published{Err: p.failure()})
		return
	}
	counts := make([]int64, len(p.entries))
	p.eachGranted(func(i int, reply any) { counts[i], _ = reply.(int64) }, func(i int) { counts[i] = -1 })
	p.done(Published{Receivers: counts})
}

// eachGranted calls granted with the replies of the masters that have voted for, and other for the rest.
func (r *round) eachGranted(granted func(i int, reply any), other func(i int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.entries {
		if en := &r.entries[i]; en.vote == Granted {
			granted(i, en.Reply)
		} else {
			other(i)
		}
	}
}

// Surveyed is the outcome of a Survey.
type Surveyed struct {
	Err     error // *NoQuorum, ErrClosed
	Replies []any // by master; nil where there was none in time
}

// Survey asks every master the same question about itself, and has the answers of a quorum at least.
func (e *Engine) Survey(question []any, done func(Surveyed)) {
	s := &survey{done: done}
	e.begin(&s.round, s, Key{}, question)
}

type survey struct {
	round
	done func(Surveyed)
}

func (s *survey) read(en *entry) (Vote, string) {
	if en.Err != nil {
		return Failed, failureText(en.Err)
	}
	return Granted, ""
}

func (s *survey) decide(t Tally) Decision { return Decide(t) }
func (s *survey) settled(*entry)          {}

func (s *survey) ended(d Decision) {
	if d != Won {
		s.done(Surveyed{Err: s.failure()})
		return
	}
	replies := make([]any, len(s.entries))
	s.eachGranted(func(i int, reply any) { replies[i] = reply }, func(int) {})
	s.done(Surveyed{Replies: replies})
}
