package quorum

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
	"lockproxy/quorum/vote"
)

// RunRequest asks to run a script by vote.
type RunRequest struct {
	DB       int
	Script   *Script
	Keys     []string
	Args     []string
	Rule     vote.Rule
	ReadOnly bool // EVAL_RO: the script may not write
}

// Ran is the outcome of a Run. If Err is nil, Reply is the script's.
type Ran struct {
	Err   error // *NoQuorum, *Disagreement, ErrLate, ErrTooShort, ErrClosed
	Reply vote.Value
	// Lock is set if the script took or extended a lock: the reply is true until the end of Lock. If the reply cannot be
	// written in time, ErrLate is the error, or, of Taking, Late is the reply. A lock that the script gave up by a short TTL
	// does not count; see vote.Giving.
	Lock *Lock
	// Replaced names the keys that the script has deleted, or given another value.
	Replaced []string
}

// A scriptRound is the round of a script.
type scriptRound struct {
	round
	req    RunRequest
	asked  int          // the number of runs of the script, with this round
	before *scriptRound // the round before, if the script is run again
	done   func(Ran)
	count  vote.Count     // guarded by round.mu
	all    []*vote.Answer // by master, late ones too; guarded by round.mu
}

// ask makes the round.
//
// If the votes on a lock are split, the script is run again (see again). Otherwise each client would be told the TTLs that
// other clients have set, although these are being put back, and nothing would wake the client before the end of the TTLs. A
// script that may not be run again, or was run too often, is told at most one InstanceTimeout.
func (r *scriptRound) ask(e *Engine) {
	req := &r.req
	r.lasting = true // the wrapper keeps the horizon
	r.blind = req.Rule.Blind
	r.count = vote.Count{Rule: req.Rule, Answers: make([]*vote.Answer, len(e.masters))}
	r.all = make([]*vote.Answer, len(e.masters))
	names := req.Keys
	if len(names) == 0 {
		names = []string{""} // scripts without keys, too, have one order in all lanes
	}
	beginAll(e, r, req.DB, names, r.runs(req.Script.wrapped, req.Keys, r.argv(e)...))
}

// argv returns the client's arguments, and ours.
func (r *scriptRound) argv(e *Engine) []any {
	req := &r.req
	mode := "w"
	if req.ReadOnly || req.Script.noWrite {
		mode = "r"
	}
	if req.Rule.Derived {
		mode += "d"
	}
	if req.Rule.Queue != nil {
		mode += "q"
	}
	mode += strconv.Itoa(req.DB)
	argv := make([]any, 0, len(req.Args)+7)
	for _, a := range req.Args {
		argv = append(argv, a)
	}
	return append(argv, mode, strconv.FormatFloat(e.cfg.DriftFactor, 'g', -1, 64), rules.CeilMillis(rules.ClockFloor+e.cfg.Grace).Milliseconds(),
		e.cfg.TTLMax.Milliseconds(), e.labels.next(), req.Rule.Field, "")
}

// compose names the last moment for a script that is not to be run late.
func (r *scriptRound) compose(en *entry, _ int64) {
	if r.req.Rule.Blind {
		en.Args = slices.Clone(en.Args) // all masters' entries share them
		en.Args[len(en.Args)-1] = en.lastMoment()
	}
}

func (r *scriptRound) read(en *entry) ballot {
	a, cause := answerOf(&en.Call, r.req.Script)
	if a == nil {
		//mutant: a release by vote that was answered with an error is not made late
		r.noteMissed(en)
		return failed(cause)
	}
	r.req.Rule.Judge(a)
	r.all[en.master] = a
	r.eachExpiry(a, func(sig signature, at int64) { en.lane.ledger.granted(sig.hash(), r.place.Load(), at) })
	is := ballot{vote: a.Vote}
	is.ifClean = r.ifClean(a, is.vote)
	if en.counts(is) {
		r.count.Answers[en.master] = a
	}
	return is
}

// ifClean says whether an answer counts only if the master is clean: the answer may rest on the absence of a key.
//
// A lock that refused the script was there, as was a lock that the script gave back. But a script that takes or extends a lock
// may have found a lock of its own client's in an older copy of the master's data: a lock that was undone since, or is over
// (see acquireRound.read and prolonged). The agreement of a quorum on the number of holds does not help: another master may
// have the same number from an attempt whose answer was lost. The answer of an unknown script may rest on an older copy in any
// case: by a key that the script extended, or by a deleted value that the script tells, as GETDEL does.
func (r *scriptRound) ifClean(a *vote.Answer, v rules.Vote) bool {
	switch r.req.Rule.Merge {
	case vote.Taking:
		//mutant: an old vote joins new ones, of scripts
		return v == rules.Granted
	//mutant: an older copy of a lock is extended by a script
	case vote.Agreeing, vote.Extending:
		//mutant: an old vote joins new ones, of scripts that nobody knows
		//mutant: an older copy of a value is taken once more, by a script
		return true
	}
	return !slices.ContainsFunc(a.Effects, func(e vote.Effect) bool { return e.Kind != vote.Created })
}

func (r *scriptRound) voided(master int) { r.count.Answers[master] = nil }

// mayHaveChanged says whether the script has changed the key on a master, or may have changed it. Many scripts that run on a
// watched key only read. What is put back is no change: a master without the lock may have run another branch of the script.
func (r *scriptRound) mayHaveChanged(d rules.Decision, name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := func(e vote.Effect) bool { return e.Name == name }
	return d != rules.Won || slices.ContainsFunc(r.all, func(a *vote.Answer) bool {
		return a != nil && !r.count.IsWrong(a, d) && slices.ContainsFunc(a.Effects, changes)
	})
}

// answerOf reads a master's answer to a script, or returns why the reply is no answer. An error of the master is no answer,
// even if a command of the script raised the error (OOM). But an error of the Lua compiler is an answer: the text is at fault.
func answerOf(c *masters.Call, s *Script) (a *vote.Answer, cause string) {
	if c.Err != nil {
		text := c.Err.Error()
		if !strings.HasPrefix(text, "ERR Error compiling script") {
			return nil, failureText(c.Err)
		}
		return vote.CompileError(text), ""
	}
	a, err := vote.Parse(c.Reply, &s.Source)
	if err != nil {
		return nil, unexpected.cause
	}
	//mutant: an error of a master is its script's
	if code, _, _ := strings.Cut(a.Value.Text, " "); a.IsRaised() && len(a.Effects) == 0 && slices.Contains(incapable, code) {
		return nil, failureText(errors.New(a.Value.Text))
	}
	return a, ""
}

func (r *scriptRound) decide(t rules.Tally) rules.Decision { return r.count.Decide(t) }

// lacking returns the gaps of scripts that are known to extend locks. Another script may extend only a part of a lock, and a
// master with only this part may free the lock too early. If masters disagree on the content, there are several gaps, and no
// quorum has any of them.
func (r *scriptRound) lacking(en *entry) (gaps []*gap) {
	//mutant: what has keys of other names is filled
	//mutant: what nobody knows is filled
	if r.req.Rule.Merge != vote.Extending || r.req.Rule.Derived {
		return nil
	}
	for i, a := range r.count.Answers {
		if a == nil || a.Vote != rules.Granted {
			continue
		}
		for _, e := range a.Effects {
			if e.Kind != vote.Expiring || e.TTL <= 0 || len(e.Before) > dumpMax || r.all[en.master].Touches(e.Name) {
				continue
			}
			at := slices.IndexFunc(gaps, func(g *gap) bool { return g.key.Name == e.Name && g.dump == e.Before })
			if at < 0 {
				at = len(gaps)
				gaps = append(gaps, &gap{key: Key{r.req.DB, e.Name}, dump: e.Before})
			}
			gaps[at].others |= 1 << i
		}
	}
	return gaps
}
