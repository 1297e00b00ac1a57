package quorum

import (
	"slices"
	"strings"
	"sync"
	"time"

	"lockproxy/quorum/masters"
)

// An instant is a reading of the engine's clock: the time since it was made. A time.Duration is how long something takes.
type instant = time.Duration

// A round is one command sent to all masters, and their votes. It ends once: when its votes decide it, or at its
// deadline, which turns every vote still pending into a failed one.
//
// Lock order: the mu of a round that releases, or raises a fence, the mu of an attempt's round, the mu of a lane.
type round struct {
	engine   *Engine
	owner    owner
	start    instant       // T1: read before the first byte is queued (rule 1)
	deadline instant       // by the engine's patience: InstanceTimeout after start
	releases *hold         // what the round gives back, if it does; see lane.owe
	keeps    time.Duration // how long masters keep what the round may set; see horizon.go
	lasting  bool          // a grant counts only as long as its master remembers it; see settleEpochs
	program  *program      // if it runs a client's script

	mu       sync.Mutex // guards all below, and the entries' fields but Call
	entries  []entry    // by master
	few      [5]entry   // where entries are if they are no more than that: one allocation for a round
	tally    Tally
	decision Decision // the round is over if not Undecided
	revoked  bool     // what has not been sent must not be sent, and what was set is to be removed
}

// An owner is the operation a round belongs to. It reads replies, knows the rule of decision, and takes the outcome.
type owner interface {
	// read turns a master's answer into a vote. It is called with the round's mu held.
	read(e *entry) (Vote, string)
	// decide is the operation's rule. It is called with the round's mu held.
	decide(t Tally) Decision
	// ended takes the decision, once, without mu.
	ended(d Decision)
	// settled is called without mu for each vote whose command was sent, when its fate is known after the round is
	// over: answered late, or lost with its connection.
	settled(e *entry)
}

// A taker is an owner that sets keys, each to a value that holds it, and can take that back.
type taker interface {
	owner
	// holds returns how many keys the operation sets.
	holds() int
	// hold returns the i-th of them.
	hold(i int) hold
	// owed returns what removes h from the entry's master, where the entry set it or may have, or nil. It is called
	// with the round's mu held.
	owed(en *entry, h hold) *undo
}

// An entry is one master's part of a round: the command, its fate and its vote. It waits in a lane.
type entry struct {
	masters.Call
	round  *round
	lane   *lane
	master int

	expires int64 // when what it sets expires, ms of the master's clock; 0 before it is written
	fate    fate
	vote    Vote
	cause   string // of a Failed vote
	took    bool   // the reply says that the command set the key where none was
	undoing bool   // an undo of it exists
	blank   bool   // the answer rests on something not being there: of a master in quarantine it proves nothing
	epoch   int64  // of the master, when it answered
}

// A fate is how far a command came.
type fate uint8

const (
	waiting fate = iota // in the lane; it can still be kept from being sent
	sent
	answered
	unknown // sent, and the connection broke before the reply
	dropped // never sent
)

// begin makes a round of args and hands it to the lanes of its database.
func (e *Engine) begin(r *round, o owner, key Key, args []any) { e.beginAll(r, o, key, nil, args) }

// beginAll is begin for a command on further keys of the same database.
func (e *Engine) beginAll(r *round, o owner, key Key, others []string, args []any) {
	r.engine, r.owner = e, o
	r.start = e.now()
	waited := e.patience.at(r.start)
	r.deadline = waited + e.cfg.InstanceTimeout
	r.tally.Masters = len(e.masters)
	if r.entries = r.few[:]; len(e.masters) > len(r.few) {
		r.entries = make([]entry, len(e.masters))
	}
	r.entries = r.entries[:len(e.masters)]
	lanes := e.lanesOf(key.DB)
	for i := range r.entries {
		en := &r.entries[i]
		en.Args, en.round, en.lane, en.master = args, r, lanes[i], i
	}
	e.sweeper.add(r)
	var causes [maxMasters]doubt
	// Two rounds on one key are in the same order in every lane, or each might win where the other lost.
	stripe := e.stripe(key.Name)
	stripes := e.stripes(stripe, others)
	e.lockOrder(stripe, stripes)
	for i := range r.entries {
		causes[i] = lanes[i].push(&r.entries[i], waited)
	}
	e.unlockOrder(stripe, stripes)
	r.turnedAway(causes[:len(lanes)])
}

// stripe returns which mutex of order keeps the rounds on name in order.
func (e *Engine) stripe(name string) int { return int(hash(name) % uint32(len(e.order))) }

// stripes returns the stripes of several keys, ascending, so that two rounds cannot each wait for the other; nil for
// one key.
func (e *Engine) stripes(first int, others []string) []int {
	if len(others) == 0 {
		return nil
	}
	all := []int{first}
	for _, name := range others {
		all = append(all, e.stripe(name))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (e *Engine) lockOrder(only int, stripes []int) {
	if stripes == nil {
		e.order[only].Lock()
	}
	for _, s := range stripes {
		e.order[s].Lock()
	}
}

func (e *Engine) unlockOrder(only int, stripes []int) {
	if stripes == nil {
		e.order[only].Unlock()
	}
	for _, s := range stripes {
		e.order[s].Unlock()
	}
}

// turnedAway takes the causes for which lanes did not take their entries; all at once, so that an error names them all.
func (r *round) turnedAway(causes []doubt) {
	var last *entry
	why := doubt{}
	r.mu.Lock() // those before the last do not decide
	for i, cause := range causes {
		if cause.none() {
			continue
		}
		if last != nil {
			last.fail(dropped, why)
		}
		last, why = &r.entries[i], cause
	}
	r.mu.Unlock()
	if last != nil {
		last.giveUp(dropped, why)
	}
}

// command, take, reply and lost make an entry a request of a lane.

func (en *entry) command() *masters.Call { return &en.Call }

// take is asked just before the entry is written. A request whose deadline passed is never written (rule 3), nor is
// one of an attempt that has failed without it.
func (en *entry) take(now instant) bool {
	r := en.round
	r.mu.Lock()
	c, composes := r.owner.(composer)
	if composes && r.keeps > 0 && en.lane.unsure { // what would be set could outlive its time, and its vote would not count
		r.mu.Unlock()
		en.giveUp(dropped, doubt{FailedClock, "has not told the time exactly enough"})
		return false
	}
	if now < r.deadline && !r.revoked {
		en.fate = sent
		if composes {
			c.compose(en, en.lane.clockNow)
		}
		r.mu.Unlock()
		if r.program != nil {
			r.program.choose(en)
		}
		return true
	}
	r.mu.Unlock()
	en.giveUp(dropped, doubt{FailedLate, "was not sent in time"})
	return false
}

// reply takes the answer that is in Call.
func (en *entry) reply(now instant) {
	if p := en.round.program; p != nil {
		p.learn(en)
	}
	en.round.vote(en, now, func() (Vote, doubt) {
		en.fate = answered
		en.epoch = en.lane.epoch
		v, cause := en.round.owner.read(en)
		if d := en.doubt(); !d.none() {
			return Failed, d
		}
		return v, doubt{FailedError, cause}
	})
	if en.Err != nil {
		en.lane.complain(en.Err, now)
	}
}

// doubt returns why the answer does not count, if so.
func (en *entry) doubt() doubt {
	switch l := en.lane; {
	case !l.doubt.none():
		return l.doubt
	case !l.unkept.none() && en.round.keeps > 0:
		return l.unkept
	case en.blank:
		return doubt{FailedQuarantined, l.quarantined}
	}
	return doubt{}
}

// proves notes whether the answer rests on something not being there, and says whether it counts. One that comes after the
// deadline does not.
func (en *entry) proves(blank bool) bool {
	en.blank = blank
	return en.vote == Pending && en.doubt().none()
}

// lost is told that the connection broke after the entry was sent. What it may have set stays known until the next connection.
func (en *entry) lost(cause string) {
	if t, ok := en.round.owner.(taker); ok {
		for i := range t.holds() {
			en.lane.remember(t.hold(i), en)
		}
	}
	en.giveUp(unknown, doubt{FailedConnection, cause})
}

// giveUp casts a failed vote: the command will not be answered. The round's mu is not held.
func (en *entry) giveUp(f fate, why doubt) {
	if f == dropped {
		en.oweRelease()
	}
	en.round.vote(en, en.round.engine.now(), func() (Vote, doubt) {
		en.fate = f
		return Failed, why
	})
}

// fail records a failed vote without deciding. The round's mu is held.
func (en *entry) fail(f fate, why doubt) {
	if f == dropped {
		en.oweRelease()
	}
	en.fate = f
	en.record(Failed, why)
}

// record counts the entry's vote, unless it has one: a late answer changes nothing. The round's mu is held.
func (en *entry) record(v Vote, why doubt) {
	if en.vote != Pending {
		return
	}
	en.vote, en.cause = v, why.text
	en.round.tally.Add(v)
	if en.fate == dropped && en.round.revoked { // nobody asked the master
		return
	}
	en.round.engine.masters[en.master].count(v, why.kind)
}

// vote records what cast returns, and ends the round if that decides it. A vote after the end changes nothing.
func (r *round) vote(en *entry, now instant, cast func() (Vote, doubt)) {
	r.mu.Lock()
	en.record(cast())
	over := r.decision != Undecided
	if !over {
		r.conclude(now)
	}
	d := r.decision
	r.mu.Unlock()

	switch {
	case !over && d != Undecided:
		r.owner.ended(d)
	case over && en.fate != dropped:
		r.owner.settled(en)
	}
}

// expire ends the round at its deadline: masters that have not answered have failed.
func (r *round) expire() {
	r.mu.Lock()
	over := r.decision != Undecided
	for i := range r.entries {
		en := &r.entries[i]
		en.record(Failed, doubt{FailedLate, r.engine.lateCause})
		if en.fate == waiting {
			en.oweRelease()
		}
	}
	if !over {
		r.conclude(r.engine.now())
	}
	d := r.decision
	r.mu.Unlock()
	if !over {
		r.owner.ended(d)
	}
}

// conclude asks what the votes come to. The round's mu is held.
func (r *round) conclude(now instant) {
	r.decision = r.owner.decide(r.tally)
	if r.decision == Won && r.lasting && r.settleEpochs() {
		r.decision = r.owner.decide(r.tally)
	}
	if r.decision != Undecided {
		r.engine.stats.rounds.add(now - r.start)
	}
}

func (r *round) due() instant { return r.deadline }

// failure returns the error of a round that a quorum did not answer.
func (r *round) failure() error {
	if r.engine.closing.Load() {
		return ErrClosed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err := &NoQuorum{Masters: r.tally.Masters, Answered: r.tally.Answered()}
	for i := range r.entries {
		switch en := &r.entries[i]; en.vote {
		case Failed:
			err.Causes = append(err.Causes, Cause{en.lane.master.Addr(), en.cause})
		case Pending:
			err.Pending++
		}
	}
	return err
}

// wrongType says that a quorum holds a key of another type.
func (r *round) wrongType() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for i := range r.entries {
		if en := &r.entries[i]; en.vote == Refused && en.Err != nil && isWrongType(en.Err.Error()) {
			n++
		}
	}
	return n >= Quorum(len(r.entries))
}

// isWrongType recognises the error by itself and, before Redis 7, inside that of a script.
func isWrongType(text string) bool {
	return strings.HasPrefix(text, "WRONGTYPE") ||
		strings.HasPrefix(text, "ERR Error running script") && strings.Contains(text, "WRONGTYPE")
}

// ballot reads an error reply. That the key has another type is an answer; any other error is a failure.
func ballot(err error) (Vote, string) {
	if isWrongType(err.Error()) {
		return Refused, ""
	}
	return Failed, failureText(err)
}

// failureText is the cause that an error reply is.
func failureText(err error) string {
	text := err.Error()
	const most = 80
	if len(text) > most {
		text = text[:most] + "…"
	}
	return "answered " + text
}

// unexpected reads a reply that our own command cannot have.
func unexpected() (Vote, string) { return Failed, "gave an answer that this command does not have" }
