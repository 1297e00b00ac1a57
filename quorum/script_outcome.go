package quorum

import (
	"strings"
	"time"

	"lockproxy/quorum/rules"
	"lockproxy/quorum/vote"
)

// This file has the steps after the votes on a script are decided: the answer to the client, or another run of the script.

func (r *scriptRound) ended(d rules.Decision) {
	r.mu.Lock()
	r.releaseMissed()
	r.mu.Unlock()
	switch d {
	case rules.Won:
		r.won()
	case rules.Lost:
		r.lost()
	default:
		r.countNoQuorum()
		err := r.failure()
		r.putBack(d, func() { r.done(Ran{Err: err}) })
	}
}

// won answers with the reply on which a quorum agrees. If the script took or extended a lock, the reply is a promise: without
// remaining validity, the lock is undone.
func (r *scriptRound) won() {
	e, rule, ttlMin := r.engine, &r.req.Rule, rules.TTLMin(r.engine.cfg.DriftFactor)
	r.mu.Lock()
	ran, ttl := Ran{Reply: r.count.Reply(), Replaced: r.count.Replaced()}, r.count.TTL(vote.Giving{Least: ttlMin, Round: e.cfg.InstanceTimeout})
	elsewhere := rule.Queue != nil && r.tally.Granted < len(r.entries)
	r.mu.Unlock()
	if ttl > 0 && rule.Merge != vote.Releasing && rule.Merge != vote.Telling {
		//mutant: T1 of a script read after the round
		until := r.began() + rules.Validity(ttl, 0, e.cfg.DriftFactor)
		if ttl < ttlMin || e.catchUp() >= until {
			e.stats.expired.Add(1)
			late := Ran{Err: ErrLate}
			switch {
			case rule.Merge == vote.Taking:
				late = Ran{Reply: rule.Late}
			case ttl < ttlMin:
				late.Err = ErrTooShort
			}
			r.undo(func() { r.done(late) })
			return
		}
		ran.Lock = &Lock{engine: e, taken: r, until: until}
		r.fill()
		if elsewhere {
			(&fairQueue{of: r}).leave()
		}
	}
	r.countWon(ran.Reply, ttl)
	r.putBack(rules.Won, func() { r.done(ran) })
}

// lost answers with the reply of the masters that refused, or runs the script again.
func (r *scriptRound) lost() {
	rule := &r.req.Rule
	r.mu.Lock()
	refusal, refused := r.count.Refusal()
	worth := rule.WorthAsking(r.tally, askedMax)
	divided := r.asked < worth
	if rule.Queue == nil && (divided || worth == askedMax) {
		refusal = r.count.Briefly(refusal, r.engine.cfg.InstanceTimeout)
	}
	r.mu.Unlock()
	q := &fairQueue{of: r}
	r.putBack(rules.Lost, func() {
		switch {
		case rule.Queue != nil && refused && r.asked < askedMax && r.isPutBack():
			q.lineUp(func() { r.refuse(q.sooner(refusal)) })
		case rule.Queue != nil && refused:
			q.wakeFirst(func() { r.refuse(q.sooner(refusal)) })
		//mutant: a script is asked again on what it has left
		case divided && r.isPutBack():
			r.again()
		case refused:
			r.refuse(refusal)
		default:
			r.engine.stats.disputed.Add(1)
			r.countNoQuorum()
			r.done(Ran{Err: r.disagreement()})
		}
	})
}

// began returns the start of the first run, as for an attempt.
func (r *scriptRound) began() instant {
	if r.before != nil {
		//mutant: the time of a script that is asked again begins anew
		return r.before.began()
	}
	return r.start
}

// again runs the script once more, a little later.
func (r *scriptRound) again() {
	r.engine.pause(askPause<<r.asked, func() {
		(&scriptRound{req: r.req, asked: r.asked + 1, before: r, done: r.done}).ask(r.engine)
	})
}

// refuse answers with the masters' refusal.
func (r *scriptRound) refuse(reply vote.Value) {
	if r.req.Rule.Merge == vote.Taking {
		r.engine.stats.refused.Add(1)
	}
	r.done(Ran{Reply: reply})
}

// countWon counts a script that a quorum granted. ttl is the promised TTL, 0 if none.
func (r *scriptRound) countWon(reply vote.Value, ttl time.Duration) {
	s := &r.engine.stats
	switch r.req.Rule.Merge {
	case vote.Taking:
		s.acquired.Add(1)
	case vote.Extending:
		if ttl > 0 { // otherwise the script only asked, or each of several locks was refused
			s.extended.Add(1)
		}
	case vote.Releasing:
		if reply.Kind != vote.IntValue || reply.Int != 0 { // 0: an outer hold, or other clients, keep the lock
			s.released.Add(1)
		}
	}
}

func (r *scriptRound) countNoQuorum() {
	if r.req.Rule.Merge == vote.Taking {
		r.engine.stats.noQuorum.Add(1)
	}
}

// appendKeys appends the keys to which the script has given a TTL, on the first master that granted.
func (r *scriptRound) appendKeys(to []Key) []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.all {
		if a == nil || a.Vote != rules.Granted {
			continue
		}
		for _, e := range a.Effects {
			if e.TTL > 0 && e.Kind != vote.Deleted {
				to = append(to, Key{r.req.DB, e.Name})
			}
		}
		return to
	}
	return to
}

// failure returns why the script has no quorum. A master that answered for several locks may have no vote on some of them.
func (r *scriptRound) failure() error {
	err := r.round.failure()
	short, is := err.(*NoQuorum) //nolint:errorlint // the error is not wrapped
	if !is {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, a := range r.count.Answers {
		if a == nil || a.Value.Kind != vote.ArrayValue {
			continue
		}
		for part := range a.Value.Parts() {
			if part.Kind == vote.ErrorValue {
				_, why, _ := strings.Cut(part.Text, " ")
				short.Causes = append(short.Causes, Cause{r.entries[i].lane.master.Addr(), why})
				break
			}
		}
	}
	return short
}

// disagreement returns the error of a round that ended without a quorum of like answers.
func (r *scriptRound) disagreement() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := &Disagreement{SHA: r.req.Script.SHA, Masters: len(r.entries)}
	for i := range r.entries {
		text := r.entries[i].cause
		if a := r.count.Answers[i]; a != nil {
			text = a.Describe()
		}
		if text != "" {
			err.Answers = append(err.Answers, Cause{r.entries[i].lane.master.Addr(), text})
		}
	}
	return err
}
