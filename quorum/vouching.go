package quorum

import (
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// Every batch ends with a proof: the marks on the master's data, the setting that keeps it from evicting (rule 9), then its clock
// (rule 5). The votes of the batch count only if marks and setting are what the handshake found, and the clock ran as ours did. A
// long batch begins with the clock, too: how long the master was at work on it says nothing about its clock.

// A proof is the frame of one batch.
type proof struct {
	first, marks, restraint, last masters.Call
	long                          bool // first was asked
	sent, received                instant
}

var clockArgs = []any{"TIME"}

// longBatch is how many commands take a master so long that the clock is asked for before them, too.
const longBatch = 8

// head appends the command that begins a batch of so many.
func (p *proof) head(calls []*masters.Call, n int) []*masters.Call {
	p.first = masters.Call{Args: clockArgs}
	if p.long = n >= longBatch; p.long {
		calls = append(calls, &p.first)
	}
	return calls
}

// tail appends the commands that end the batch. restraintArgs is nil where the master does not tell.
func (p *proof) tail(calls []*masters.Call, restraintArgs []any) []*masters.Call {
	p.marks, p.restraint, p.last = masters.Call{Args: marksArgs}, masters.Call{Args: restraintArgs}, masters.Call{Args: clockArgs}
	calls = append(calls, &p.marks)
	if restraintArgs != nil {
		calls = append(calls, &p.restraint)
	}
	return append(calls, &p.last)
}

// vouch reads the proof of the batch that was answered, and returns why its votes do not count, if they do not. If the reason
// concerns more than this batch, suspect is set, and the master is assessed anew.
func (l *lane) vouch() failure {
	marks, err := parseMarks(&l.proof.marks)
	if err != nil {
		return l.withheld(FailedForgot, "did not show its canary", &l.proof.marks)
	}
	if marks.canary != l.link.marks.canary && marks.quarantine == "" && l.hasNewBounds(marks.canary) {
		l.link.marks.canary = marks.canary
	}
	if marks.canary == l.link.marks.canary && marks.roster != l.link.marks.roster { // else it may be another database's
		l.link.marks.roster = marks.roster
		l.roster.learn(marks.roster)
	}
	jumped := l.observe(&l.proof)
	charges, charge := l.master.watch.charged()
	//mutant: a mark that was met early stays as it is
	l.suspect = l.suspect || marks.quarantine != l.link.marks.quarantine || l.link.early && l.heardOthers()
	switch {
	//mutant: a changed canary is not noticed
	case marks.canary != l.link.marks.canary:
		l.suspect = true
		return failure{FailedForgot, "is not known to remember its locks: its canary has changed"}
	//mutant: data that comes back in quarantine votes
	case marks.quarantine != "" && marks.quarantine != l.link.marks.quarantine:
		return failure{FailedForgot, "is not known to remember its locks: it was quarantined"} // and suspect is set
	//mutant: the setting that forbids evictions is not in the proof
	case l.mayEvict():
		l.suspect = true
		return failure{FailedForgot, "may have forgotten locks: its maxmemory or maxmemory-policy was changed"}
	//mutant: a server that was replaced votes while it is connected
	case l.latestEpoch().Load() > l.link.epoch:
		l.suspect = true
		return failure{FailedForgot, "was replaced"}
	//mutant: a jump of the clock costs no votes
	case !jumped.none():
		return jumped
	case charges != l.charges:
		l.suspect = true
		return failure{FailedForgot, "may have forgotten locks: " + charge}
	}
	return failure{}
}

// withheld says that the master did not answer a question of ours as it should. If it answered with an error, as where its memory is
// full, that is what has failed. The log is told of that, too.
func (l *lane) withheld(kind FailureKind, text string, question *masters.Call) failure {
	if question.Err == nil {
		return failure{kind, text}
	}
	l.complain(question.Err, l.proof.received)
	return failure{FailedError, text + ": " + failureText(question.Err)}
}

// mayEvict says that the setting that keeps the master from evicting is not what it was, or is not told any more.
func (l *lane) mayEvict() bool {
	return l.link.restraintArgs != nil && !l.link.info.IsRestrained(l.proof.restraint.Reply)
}

// hasNewBounds says whether a canary that another proxy has written differs in its bounds alone, and if so keeps to these. Then the
// batch is good if its clock is good by the new bounds: the other proxy could not grant anything here before it wrote them.
func (l *lane) hasNewBounds(canary string) bool {
	was, ok1 := vouch.ParseCanary(l.link.marks.canary)
	is, ok2 := vouch.ParseCanary(canary)
	if was.Bounds = is.Bounds; !ok1 || !ok2 || was != is {
		return false
	}
	//mutant: stricter settings that come later are not kept to
	l.engine.keepTo(is.Bounds)
	return true
}

// unkeptCause returns why what the batch set does not count, if it does not although the rest of the batch does.
func (l *lane) unkeptCause() failure {
	switch {
	case l.keeps == 0:
		return failure{}
	case l.link.clock+l.keeps.Milliseconds() > l.link.horizon:
		return l.withheld(FailedHorizon, "has no horizon", &l.extension)
	case l.misjudged():
		return failure{FailedClock, "answered too late, compared with before, to tell when what was set expires"}
	}
	return failure{}
}

// micros reads the reply of TIME.
func micros(c *masters.Call) (time.Duration, bool) {
	t, ok := masters.ParseTime(c.Reply)
	return time.Duration(t.UnixMicro()) * time.Microsecond, ok && c.Answered && c.Err == nil
}

// millis is micros in ms.
func millis(c *masters.Call) (int64, bool) {
	t, ok := masters.ParseTime(c.Reply)
	return t.UnixMilli(), ok && c.Answered && c.Err == nil
}

// settleEpochs takes back the grants of masters that have come to a new epoch since: such a master may have forgotten what it
// granted. It says whether there were any. The roster has the new epoch by now if any grant that came after depends on that
// (vouch.Quarantine).
func (r *round) settleEpochs() bool {
	void := false
	for i := range r.entries {
		en := &r.entries[i]
		//mutant: a grant from before the quarantine counts
		if en.vote == Granted && en.epoch < en.lane.latestEpoch().Load() {
			en.vote, en.cause = Failed, "may have forgotten its vote"
			en.lane.master.count(Failed, FailedForgot) // as well as granted
			r.tally.Granted--
			r.tally.Failed++
			void = true
			r.operation.voided(i)
		}
	}
	return void
}
