package quorum

import (
	"errors"
	"slices"
	"strings"
	"time"

	"lockproxy/quorum/masters"
)

// RunRequest asks to run a script by vote.
type RunRequest struct {
	DB       int
	Script   *Script
	Keys     []string
	Args     []string
	Rule     Rule
	ReadOnly bool // EVAL_RO: it may not write
}

// Ran is the outcome of a Run. If Err is nil, Reply is the script's.
type Ran struct {
	Err   error // *NoQuorum, *Disagreement, ErrLate, ErrTooShort, ErrClosed
	Reply Value
	// Lock is set if the script took or extended something: the reply is true until then. Where it cannot be written in
	// time, ErrLate is the error, or, of Taking, Late is the reply. What the script gave up by so short a TTL does not count; see giving.
	Lock *Lock
	// Replaced are the keys that the script has deleted, or given another value.
	Replaced []string
}

// A scriptRound is the round of a script.
type scriptRound struct {
	round
	req    RunRequest
	asked  int          // how often the script was run, with this round
	before *scriptRound // the round before, if the script is run again
	free   int64        // of a Queue, when it was last read: see freeIn
	done   func(Ran)
	count  count     // guarded by round.mu
	all    []*answer // by master, late ones too; guarded by round.mu
	undone []*undo   // what puts back what it did; guarded by round.mu
}

// ask makes the round.
//
// If the votes on a lock are split, the script is run again (see again). Else each client would be told the TTLs that the
// others have set, although these are being put back, and nothing would wake it before they are over. Where it may not be run again,
// or has been too often, that is at most one InstanceTimeout.
func (r *scriptRound) ask(e *Engine) {
	req := &r.req
	r.lasting = true // the wrapper keeps the horizon
	r.blind = req.Rule.Blind
	r.count = count{rule: req.Rule, answers: make([]*answer, len(e.masters))}
	r.all = make([]*answer, len(e.masters))
	names := req.Keys
	if len(names) == 0 {
		names = []string{""} // scripts without keys, too, are in one order in all lanes
	}
	beginAll(e, r, req.DB, names, r.runs(req.Script.wrapped, req.Keys, r.argv(e)...))
}

func (r *scriptRound) read(en *entry) ballot {
	a, cause := r.answer(&en.Call)
	if a == nil {
		//mutant: a release by vote that was answered with an error is not made late
		r.noteMissed(en)
		return failed(cause)
	}
	r.req.Rule.judge(a)
	r.all[en.master] = a
	r.eachExpiry(a, func(sig signature, at int64) { en.lane.ledger.granted(sig.hash(), r.place.Load(), at) })
	is := ballot{vote: a.vote}
	is.ifClean = r.ifClean(a, is.vote)
	if en.counts(is) {
		r.count.answers[en.master] = a
	}
	return is
}

// ifClean says whether an answer may rest on something not being there.
//
// A lock that refused the script was there, and so was one that the script gave back. But a script that takes or extends a lock,
// and finds one of its own client's, may have found one that was undone since, or is over, in an older copy of the master's data
// (see acquireRound.read and prolonged). A quorum that agrees on the number of holds does not help: another master may have the same
// number from an attempt whose answer was lost. The answer of a script of which nothing is known may rest on such a copy in any
// case: by what it extended, or by what it deleted and tells, as GETDEL does.
func (r *scriptRound) ifClean(a *answer, v Vote) bool {
	switch r.req.Rule.Merge {
	case Taking:
		//mutant: an old vote joins new ones, of scripts
		return v == Granted
	//mutant: an older copy of a lock is extended by a script
	case Agreeing, Extending:
		//mutant: an old vote joins new ones, of scripts that nobody knows
		//mutant: an older copy of a value is taken once more, by a script
		return true
	}
	return !slices.ContainsFunc(a.effects, func(e effect) bool { return e.kind != created })
}

func (r *scriptRound) voided(master int) { r.count.answers[master] = nil }

// mayHaveChanged says whether the script has changed the key on a master, or may have: many that run on a watched key only look.
func (r *scriptRound) mayHaveChanged(d Decision, name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := func(e effect) bool { return e.name == name }
	return d != Won || slices.ContainsFunc(r.all, func(a *answer) bool { return a != nil && slices.ContainsFunc(a.effects, changes) })
}

// answer reads what a master answered, or returns why that is no answer. Errors of the master are none, even if a command of the
// script raised them (OOM). But an error of its Lua compiler is one: the text is at fault.
func (r *scriptRound) answer(c *masters.Call) (a *answer, cause string) {
	if c.Err != nil {
		text := c.Err.Error()
		if !strings.HasPrefix(text, "ERR Error compiling script") {
			return nil, failureText(c.Err)
		}
		return &answer{encoded: "-" + text, value: Value{Kind: ErrorValue, Text: text}}, ""
	}
	a, err := parseAnswer(c, r.req.Script)
	if err != nil {
		return nil, unexpected.cause
	}
	//mutant: an error of a master is its script's
	if code, _, _ := strings.Cut(a.value.Text, " "); a.encoded[0] == raisedValue && len(a.effects) == 0 && slices.Contains(incapable, code) {
		return nil, failureText(errors.New(a.value.Text))
	}
	return a, ""
}

func (*scriptRound) reads() bool { return false }

func (r *scriptRound) decide(t tally) Decision { return r.count.decide(t) }

func (r *scriptRound) ended(d Decision) {
	r.mu.Lock()
	r.releaseMissed()
	r.mu.Unlock()
	switch d {
	case Won:
		r.won()
	case Lost:
		r.lost()
	default:
		r.countNoQuorum()
		err := r.failure()
		r.putBack(d, func() { r.done(Ran{Err: err}) })
	}
}

// won answers what a quorum agrees on. If that took or extended something, it is a promise, and undone if no validity is left.
func (r *scriptRound) won() {
	e, rule, ttlMin := r.engine, &r.req.Rule, TTLMin(r.engine.cfg.DriftFactor)
	r.mu.Lock()
	ran, ttl := Ran{Reply: r.count.won(), Replaced: r.replaced()}, r.count.ttl(giving{ttlMin, e.cfg.InstanceTimeout})
	elsewhere := rule.Queue != nil && r.tally.Granted < len(r.entries)
	r.mu.Unlock()
	if ttl > 0 && rule.Merge != Releasing && rule.Merge != Telling {
		//mutant: T1 of a script read after the round
		until := r.began() + Validity(ttl, 0, e.cfg.DriftFactor)
		if ttl < ttlMin || e.catchUp() >= until {
			e.stats.expired.Add(1)
			late := Ran{Err: ErrLate}
			switch {
			case rule.Merge == Taking:
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
			r.leave()
		}
	}
	r.countWon(ran.Reply, ttl)
	r.putBack(Won, func() { r.done(ran) })
}

// lost answers what those that refused reply, or runs the script again.
func (r *scriptRound) lost() {
	rule := &r.req.Rule
	r.mu.Lock()
	refusal, refused := r.count.refused()
	worth := rule.worthAsking(r.tally)
	divided := r.asked < worth
	if rule.Queue == nil && (divided || worth == askedMax) {
		refusal = r.count.briefly(refusal, r.engine.cfg.InstanceTimeout)
	}
	r.mu.Unlock()
	r.putBack(Lost, func() {
		switch {
		case rule.Queue != nil && refused && r.asked < askedMax && r.isPutBack():
			r.lineUp(func() { r.refuse(r.sooner(refusal)) })
		case rule.Queue != nil && refused:
			r.wakeFirst(func() { r.refuse(r.sooner(refusal)) })
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

// refuse answers that the lock, or what else was asked for, is not to be had.
func (r *scriptRound) refuse(reply Value) {
	if r.req.Rule.Merge == Taking {
		r.engine.stats.refused.Add(1)
	}
	r.done(Ran{Reply: reply})
}

// replaced returns the keys that the script has deleted, or given another value, where it won. It is called with round.mu held.
func (r *scriptRound) replaced() (names []string) {
	for a := range r.count.who(Granted) {
		if !r.count.agrees(a) {
			continue
		}
		for _, e := range a.effects {
			if e.kind == deleted || e.kind == changed {
				names = append(names, e.name)
			}
		}
		break
	}
	return names
}

// countWon counts what a quorum granted, with the TTL that is promised, if any.
func (r *scriptRound) countWon(reply Value, ttl time.Duration) {
	s := &r.engine.stats
	switch r.req.Rule.Merge {
	case Taking:
		s.acquired.Add(1)
	case Extending:
		if ttl > 0 { // else it only asked, or each of several locks was refused
			s.extended.Add(1)
		}
	case Releasing:
		if reply.Kind != IntValue || reply.Int != 0 { // 0: an outer hold, or other clients, keep the lock
			s.released.Add(1)
		}
	}
}

func (r *scriptRound) countNoQuorum() {
	if r.req.Rule.Merge == Taking {
		r.engine.stats.noQuorum.Add(1)
	}
}

// appendKeys names the keys that live for a time which the script has set, on the first master that granted.
func (r *scriptRound) appendKeys(to []Key) []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.all {
		if a == nil || a.vote != Granted {
			continue
		}
		for _, e := range a.effects {
			if e.ttl > 0 && e.kind != deleted {
				to = append(to, Key{r.req.DB, e.name})
			}
		}
		return to
	}
	return to
}

// settled puts back what a late master did, if that does not belong to the decision, or the attempt was undone.
func (r *scriptRound) settled(en *entry) {
	r.fillLate(en)
	var late []*undo
	r.mu.Lock()
	if a := r.all[en.master]; a != nil {
		//mutant: what a script has done late stays
		if r.count.wrong(a, r.decision) || r.revoked && a.vote == Granted {
			late = r.undoOf(en.master)
		}
		//mutant: a release by vote is not made late where the lock is late
		r.eachExpiry(a, func(sig signature, _ int64) { en.releaseOwed(sig) })
		//mutant: a release by vote that no quorum has answered is not made late
		r.releaseMissed()
	}
	r.mu.Unlock()
	pushUndos(r.engine, late, func() {})
}

// lacking is for scripts that are known to extend locks. Another script may extend a part of a lock only, and a master that
// has only that part may free it too early. If masters do not agree on what they have, there are several gaps, and no quorum
// has any of them.
func (r *scriptRound) lacking(en *entry) (gaps []*gap) {
	//mutant: what has keys of other names is filled
	//mutant: what nobody knows is filled
	if r.req.Rule.Merge != Extending || r.req.Rule.Derived {
		return nil
	}
	for i, a := range r.count.answers {
		if a == nil || a.vote != Granted {
			continue
		}
		for _, e := range a.effects {
			if e.kind != expiring || e.ttl <= 0 || len(e.before) > dumpMax || r.all[en.master].touches(e.name) {
				continue
			}
			at := slices.IndexFunc(gaps, func(g *gap) bool { return g.key.Name == e.name && g.dump == e.before })
			if at < 0 {
				at = len(gaps)
				gaps = append(gaps, &gap{key: Key{r.req.DB, e.name}, dump: e.before})
			}
			gaps[at].others |= 1 << i
		}
	}
	return gaps
}
