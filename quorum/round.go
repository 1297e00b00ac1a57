package quorum

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lockproxy/quorum/rules"
)

// A round is one command sent to all masters, and their votes. A round ends once: when its votes decide the round, or at its
// deadline, when every pending vote turns into a failed vote.
type round struct {
	engine    *Engine
	operation operation
	start     instant       // T1: read before the first byte is queued (rule 1)
	deadline  answerTime    // InstanceTimeout after start
	releases  *signature    // the lock that the round gives back, if any; see ledger.owe
	keeps     time.Duration // how long masters keep the keys that the round may set; see horizon.go
	lasting   bool          // somebody relies on its grants, though the round keeps nothing itself; see cast
	blind     bool          // the round takes a lock from any holder; see release.go
	dates     bool          // its keys expire at an instant of the master's clock, which must be known well
	program   *lua          // the script that the round runs by SHA-1; nil if none
	keys      int           // how many keys the round is about, as package admission counts; see weighed
	notices   []*Notice     // of its keys, where the round may change keys
	place     atomic.Int64  // among all rounds: rounds on one key have the same order in all lanes

	mu       sync.Mutex // guards all below, and the entries' fields but Call
	entries  []entry    // by master
	few      [5]entry   // the room of up to five entries: one allocation for a round
	tally    rules.Tally
	decision rules.Decision // the round is over if not Undecided
	revoked  bool           // unsent commands must not be sent, and changes are to be undone
	fills    bool           // masters that have nothing of the extended lock are filled; see fill.go
}

// An operation has the command of its round, the meaning of the masters' answers, and the consequences. An operation is a struct in which
// the round is embedded. The file of an operation has, in this order: ask, which makes the round (or compose, for each master); read;
// decide; ended; the undos.
//
// Before begin, ask sets the fields of the round that the engine needs: keeps, lasting and dates, where a client relies on the grants;
// releases, where the operation gives a lock back; blind, where the operation takes a lock from any holder.
//
// Every operation has its own read, decide and ended. The other methods have defaults on round.
type operation interface {
	// read turns a master's answer into a ballot. read is called once for each answer, with the round's mu held; also for an answer
	// after the end of the round, whose vote counts no more. So notes that read makes beside the ballot are made for late answers, too,
	// unless read asks entry.counts. A read that collects answers asks entry.counts first: a voided ballot is in no vote, but stays in the
	// collection.
	read(en *entry) ballot
	// decide is the operation's rule. decide is asked after each vote, with the round's mu held, and reads no clock. Any decision but
	// Undecided ends the round.
	decide(t rules.Tally) rules.Decision
	// ended takes the decision, once, and tells the caller. ended is called without mu: late answers may come meanwhile.
	ended(d rules.Decision)

	// reads says that the operation changes no key. Default: the operation may change its keys.
	reads() bool
	// compose sets an entry's Args, if they differ from master to master: because they name an instant of the master's clock. The
	// clock shows at most now, in ms. compose is called with the round's mu held when the entry is about to be written. Default: the
	// args of begin.
	compose(en *entry, now int64)
	// voided is told that a master's answer, which was read before, counts no longer. voided is called with the round's mu held.
	// Default: nothing was noted of the answer.
	voided(master int)
	// mayHaveChanged says whether a round that was not lost has changed the key of this name, or may have. mayHaveChanged is called
	// without mu, and never for an operation that reads. Default: yes.
	mayHaveChanged(d rules.Decision, name string) bool
	// missed is told, perhaps twice, that a master has not run the command in time, or may not have. missed is called without mu, and
	// before any later request in the lane is answered. Default: the round's release is made late; ledger.go.
	missed(en *entry)
	// settled is called without mu for each command that was sent, if the command's fate becomes known after the end of the round: the
	// answer is late, or the connection broke. Default: nothing is to be done.
	settled(en *entry)
	// lacking returns the locks that the operation has extended on a quorum, and that the entry's master lacks by its answer; see fill.go.
	// lacking is called when the round is won, with the round's mu held. Default: nothing.
	lacking(en *entry) []*gap

	// The undos; undo.go. Default: nothing that the operation sets is taken back.

	// signatures returns the signatures of the keys that the operation sets and can take back.
	signatures() []signature
	// appendUndos appends the undos of everything that the operation did on the entry's master, or may have done. Nothing is taken back of
	// a command in flight: the undo waits for the answer, or for the end of the connection. appendUndos is called with the round's mu
	// held, and not again once the entry has an undo.
	appendUndos(to []*undo, en *entry) []*undo
	// takeBack returns the undo of the key with this signature on the entry's master, if the entry set the key or may have; else nil.
	// takeBack is called with the round's mu held.
	takeBack(en *entry, sig signature) *undo

	base() *round
}

func (r *round) reads() bool                                { return false }
func (r *round) compose(*entry, int64)                      {}
func (r *round) voided(int)                                 {}
func (r *round) mayHaveChanged(rules.Decision, string) bool { return true }
func (r *round) settled(*entry)                             {}
func (r *round) signatures() []signature                    { return nil }
func (r *round) takeBack(*entry, signature) *undo           { return nil }
func (r *round) lacking(*entry) []*gap                      { return nil }
func (r *round) appendUndos(to []*undo, _ *entry) []*undo   { return to }
func (r *round) base() *round                               { return r }

// begin makes a round of args, or of the args from compose, and hands the round to the lanes of its database.
func begin(e *Engine, o operation, key Key, args []any) {
	beginAll(e, o, key.DB, []string{key.Name}, args)
}

// beginAll is begin for a command on several keys of a database.
func beginAll(e *Engine, o operation, db int, names []string, args []any) {
	r := o.base()
	r.engine, r.operation = e, o
	if r.keys == 0 {
		r.keys = max(len(names), 1)
	}
	e.load.Begin(r.keys)
	r.start = e.now()
	waited := e.answers.at(r.start)
	r.deadline = waited.plus(e.cfg.InstanceTimeout)
	r.tally.Masters = len(e.masters)
	if r.entries = r.few[:]; len(e.masters) > len(r.few) {
		r.entries = make([]entry, len(e.masters))
	}
	r.entries = r.entries[:len(e.masters)]
	lanes := e.databases.lanes(db)
	for i := range r.entries {
		en := &r.entries[i]
		en.Args, en.round, en.lane, en.master = args, r, lanes[i], i
	}
	e.sweeper.add(r.deadline, r)
	var causes [maxMasters]failure
	turnedAway := false
	e.order.hold(names, func() {
		r.place.Store(e.rounds.Add(1))
		if !o.reads() { // with the order held: a look that is not after the round has asked for its notice
			r.notices = e.notices.on(db, names)
		}
		for i := range r.entries {
			if causes[i] = lanes[i].queue.push(&r.entries[i], waited); !causes[i].none() {
				//mutant: a release that is turned away is not owed
				r.entries[i].oweRelease()
				//mutant: a release that most masters missed is not made late
				o.missed(&r.entries[i])
				turnedAway = true
			}
		}
	})
	if turnedAway {
		r.turnedAway(causes[:len(lanes)])
	}
}

// turnedAway takes the causes for which lanes turned entries away; all at once, so that an error names them all.
func (r *round) turnedAway(causes []failure) {
	r.cast(r.engine.now(), func() {
		for i, why := range causes {
			if !why.none() {
				r.entries[i].fail(dropped, why)
			}
		}
	})
}

// vote casts the ballot that read makes of an entry. After the end of the round, the vote changes the decision no more: a pending
// vote is still recorded, and the operation's settled is called.
func (r *round) vote(en *entry, now instant, read func()) {
	if over := r.cast(now, read); over && en.fate != dropped {
		r.operation.settled(en)
	}
}

// expire ends the round at its deadline: masters that have not answered have failed. If the round is over, only their votes fail.
func (r *round) expire() {
	r.cast(r.engine.now(), func() {
		for i := range r.entries {
			en := &r.entries[i]
			//mutant: no deadline
			en.record(rules.Failed, en.lane.queue.lateness())
			if en.fate == waiting {
				en.oweRelease()
			}
		}
	})
}

// cast has votes recorded, and ends the round if they decide the round. cast returns true if the round was over before.
func (r *round) cast(now instant, record func()) (over bool) {
	r.mu.Lock()
	over = r.decision != rules.Undecided
	record()
	if !over {
		r.decision = r.operation.decide(r.tally)
	}
	relied := r.keeps > 0 || r.lasting // a grant counts only as long as its master remembers the grant
	if !over && r.decision == rules.Won && relied && r.checkEpochs() {
		r.decision = r.operation.decide(r.tally)
	}
	d := r.decision
	r.mu.Unlock()
	if !over && d != rules.Undecided {
		r.engine.stats.rounds.Add(now - r.start)
		if d == rules.Unanswered {
			r.engine.load.Failed(r.keys)
		} else {
			r.engine.load.Answered(r.keys, now)
		}
		r.tellNotices(d)
		r.operation.ended(d)
	}
	return over
}

// failure returns the error of a round without the answers of a quorum.
func (r *round) failure() error {
	if r.engine.closing.Load() {
		return ErrClosed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err := &NoQuorum{Masters: r.tally.Masters, Answered: r.tally.Answered()}
	for i := range r.entries {
		switch en := &r.entries[i]; en.vote {
		case rules.Failed:
			err.Causes = append(err.Causes, Cause{en.lane.master.Addr(), en.cause})
		case rules.Pending:
			err.Pending++
		}
	}
	return err
}

// wrongType says that a quorum holds a key of another type.
func (r *round) wrongType() bool {
	return r.number(rules.Refused, func(en *entry) bool { return en.Err != nil && isWrongType(en.Err.Error()) }) >= rules.Quorum(len(r.entries))
}

// number counts the entries with this vote for which is returns true.
func (r *round) number(v rules.Vote, is func(*entry) bool) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for en := range r.who(v) {
		if is(en) {
			n++
		}
	}
	return n
}

// who returns the entries with the vote v. The answers of granted and refused entries may be looked at; another entry's answer may be
// being read just now. The caller holds mu.
func (r *round) who(v rules.Vote) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for i := range r.entries {
			if r.entries[i].vote == v && !yield(&r.entries[i]) {
				return
			}
		}
	}
}

// A keyOrder gives two rounds on one key the same order in every lane: else each might win on some masters where the other lost
// (rule 2). Each mutex is for a stripe of all keys.
type keyOrder [256]sync.Mutex

// hold calls push, which pushes a round on keys to its lanes, with the mutexes of the keys held. The mutexes are locked in ascending
// order, so that two rounds cannot each wait for the other.
func (o *keyOrder) hold(names []string, push func()) {
	var few [8]uint32
	stripes := few[:0]
	//mutant: rounds have their order by their first keys alone
	for _, name := range names {
		stripes = append(stripes, hash(name)%uint32(len(o)))
	}
	slices.Sort(stripes)
	//mutant: order of rounds left to chance
	stripes = slices.Compact(stripes)
	for _, s := range stripes {
		o[s].Lock()
	}
	push()
	for _, s := range stripes {
		o[s].Unlock()
	}
}

// hash is FNV-1a.
func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}
