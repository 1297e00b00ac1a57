package quorum

import (
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
	"lockproxy/quorum/vouch"
)

// Every batch ends with a proof: the marks on the master's data, the setting that keeps the master from evicting (rule 9), then the
// master's clock (rule 5). The votes of the batch count only if marks and setting are as in the handshake, and the clock ran as ours
// did. A long batch begins with the clock, too: the time that the master took for the batch says nothing about its clock.

// A proof is the frame of one batch.
type proof struct {
	first, marks, restraint, last masters.Call
	long                          bool // the batch begins with first
	sent, received                instant

	observed bool
	clock    vouch.Clock // as known when the answer was observed
	doubt    string      // why the clock is not to be trusted, as known then
}

// observe has the watch follow the clock by the answer, once.
func (p *proof) observe(w *watch) {
	if p.observed {
		return
	}
	if !p.long {
		p.first = p.last
	}
	first, ok1 := micros(&p.first)
	last, ok2 := micros(&p.last)
	if ok1 && ok2 {
		p.clock, p.doubt = w.observe(p.sent, p.received, first, last)
		p.observed = true
	}
}

var clockArgs = []any{"TIME"}

// longBatch is how many commands take a master so long that the batch begins with the clock, too.
const longBatch = 8

// head appends the command that begins a batch of n requests, if there is one.
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

// vouch reads the proof of a batch that was answered, and returns why the batch's votes do not count, if they do not. If the
// reason concerns more than this batch, the master is assessed anew. keeps is for how long the longest key lives that the batch
// may set.
func (a *assessor) vouch(p *proof, keeps time.Duration) failure {
	k := a.connection
	marks, err := parseMarks(&p.marks)
	if err != nil {
		return a.withheld(FailedForgot, "did not show its canary", &p.marks, p.received)
	}
	if k.hasNewBounds(a.engine, marks) {
		k.marks.canary = marks.canary
	}
	if marks.canary == k.marks.canary && marks.roster != a.epochs.shown { // else it may be another database's
		a.epochs.shown = marks.roster
		a.epochs.roster.learn(marks.roster)
	}
	jumped := a.clock.observe(k, p, keeps)
	jumps, jump := a.master.watch.confirmed()
	//mutant: a mark that was met early stays as it is
	if marks.quarantine != k.marks.quarantine || k.early && a.epochs.heardOthers() {
		a.suspect()
	}
	switch {
	//mutant: a changed canary is not noticed
	case marks.canary != k.marks.canary:
		a.suspect()
		return failure{FailedForgot, "is not known to remember its locks: its canary has changed"}
	//mutant: data that comes back in quarantine votes
	case marks.quarantine != "" && marks.quarantine != k.marks.quarantine:
		return failure{FailedForgot, "is not known to remember its locks: it was quarantined"} // and is suspect
	//mutant: the setting that forbids evictions is not in the proof
	case k.restraintArgs != nil && !k.info.IsRestrained(p.restraint.Reply): // changed, or not told any more
		a.suspect()
		return failure{FailedForgot, "may have forgotten locks: its maxmemory or maxmemory-policy was changed"}
	//mutant: a server that was replaced votes while it is connected
	case a.epochs.latest().Load() > k.epoch:
		a.suspect()
		return failure{FailedForgot, "was replaced"}
	//mutant: a jump of the clock costs no votes
	case !jumped.none():
		return jumped
	case jumps != a.marked:
		a.suspect()
		return failure{FailedForgot, "may have forgotten locks: " + jump}
	}
	return failure{}
}

// hasNewBounds says whether a canary that another proxy has written differs in its bounds alone, and if so keeps to the new bounds.
// Then the batch is good if its clock is good by the new bounds: the other proxy could not grant anything here before it wrote them.
func (k *connection) hasNewBounds(e *Engine, found marks) bool {
	if found.canary == k.marks.canary || found.quarantine != "" {
		return false
	}
	was, ok1 := vouch.ParseCanary(k.marks.canary)
	is, ok2 := vouch.ParseCanary(found.canary)
	if was.Bounds = is.Bounds; !ok1 || !ok2 || was != is {
		return false
	}
	//mutant: stricter settings that come later are not kept to
	e.keepTo(is.Bounds)
	return true
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

// checkEpochs takes back the grants of masters that have come to a new epoch since, because they may have forgotten the grants. It
// says whether there were any. The roster has the new epoch by now if any grant that came afterwards depends on the new epoch
// (vouch.Quarantine).
func (r *round) checkEpochs() bool {
	void := false
	for i := range r.entries {
		en := &r.entries[i]
		//mutant: a grant from before the quarantine counts
		if en.vote == rules.Granted && en.epoch < en.lane.epochs.latest().Load() {
			en.vote, en.cause = rules.Failed, "may have forgotten its vote"
			en.lane.master.count(rules.Failed, FailedForgot) // as well as granted
			r.tally.Granted--
			r.tally.Failed++
			void = true
			r.operation.voided(i)
		}
	}
	return void
}

// With each heartbeat a lane asks its master for what may cost the master its vote, and compares the answers with those of the
// handshake.

// patrol asks. Each lane asks, because each is judged by what its own connection was told.
func (a *assessor) patrol() {
	//mutant: settings concern database 0
	a.ask([]any{"INFO"}, a.compareInfo)
	//mutant: one database's lane knows what is kept on disk
	//mutant: fsync always is not noticed
	if told := a.master.told(); told.TellsAppend() {
		a.ask([]any{"CONFIG", "GET", masters.AppendSettings}, a.compareFiles)
		a.ask([]any{"CONFIG", "GET", masters.PlaceSettings}, a.compareFiles)
		//mutant: who grants nothing knows of no horizon
		a.ask([]any{"GET", endKey}, func(reply any) { a.horizon.ends.hear(reply, a.connection.epoch) })
		if told.IsBefore7() { // and so may answer before it writes to disk
			a.ask([]any{"CONFIG", "GET", masters.ScriptLimit}, a.compareFiles)
		}
		a.witness.write(a)
	}
}

// compareFiles compares when and where a master writes its append-only file with the handshake's answers: its canary may say
// that it forgets nothing.
func (a *assessor) compareFiles(reply any) {
	now := a.connection.info
	now.ReadConfig(reply)
	//mutant: a place that is changed is not noticed
	moved := now.Files.Place() != a.connection.info.Files.Place()
	if moved || a.isDurable(&now) != a.isDurable(&a.connection.info) {
		a.suspect()
	}
}

// compareInfo compares what the master says of itself with the handshake's answers.
func (a *assessor) compareInfo(reply any) {
	text, _ := reply.(string)
	was := a.connection.info
	now := was
	now.ReadInfo(text)
	a.witness.look(&now, a.connection.marks.canary)
	//mutant: an append-only file that is turned on is not noticed
	if now.Role != was.Role || now.RunID != was.RunID || now.Lineage != was.Lineage ||
		now.Evicts() != was.Evicts() || now.Evicted != was.Evicted || now.AppendOnly != was.AppendOnly || a.isDurable(&now) != a.isDurable(&was) {
		a.suspect()
	}
	//mutant: a replica that came and went is not noticed
	copied := now.Files.Copies() != was.Files.Copies()
	written := a.isDurable(&now) && !a.connection.durable && was.Files.Rewriting() && !now.Files.Rewriting()
	if copied || written {
		a.suspect()
	}
}
