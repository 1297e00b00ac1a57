package quorum

import (
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
)

// An entry is one master's part of a round: the command, its fate and its vote. It waits in a lane.
type entry struct {
	masters.Call
	round  *round
	lane   *lane
	master int

	expires int64 // when what it sets expires, ms of the master's clock; 0 before it is written
	fate    fate
	vote    rules.Vote
	cause   string // of a Failed vote
	took    bool   // the reply says that the command set the key where none was
	undoing bool   // an undo of it exists; compensation.go
	undos   []*undo
	missed  bool  // it is a release that the master did not run in time; see release_late.go
	epoch   int64 // of the master, when it answered
	clean   bool  // it was in no quarantine then
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

// command, keeps, take, reply and lost make an entry a request of a lane.

func (en *entry) command() *masters.Call { return &en.Call }

func (en *entry) keeps() time.Duration { return en.round.keeps }

// take is asked just before the entry is written. A request whose deadline passed is never written (rule 3), nor is
// one of an attempt that has failed without it.
func (en *entry) take(now answerTime) bool {
	if why := en.send(now); !why.none() {
		en.giveUp(dropped, why)
		return false
	}
	en.spellOut()
	return true
}

// send counts the entry as sent, and makes its command, or returns why it must not be.
func (en *entry) send(now answerTime) failure {
	r := en.round
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	//mutant: a key is set by a vague clock
	case r.dates && en.lane.clock.unsure: // what would be set could outlive its time, and its vote would not count
		return failure{FailedClock, "has not told the time exactly enough"}
	//mutant: a request is written after its deadline
	//mutant: a request is written after its undo
	case now >= r.deadline || r.revoked:
		return failure{FailedLate, "was not sent in time"}
	}
	en.fate = sent
	r.operation.compose(en, en.lane.clock.kept)
	return failure{}
}

// reply takes the answer that is in Call.
func (en *entry) reply(now instant) {
	en.noteProgram()
	en.round.vote(en, now, func() {
		en.fate, en.epoch, en.clean = answered, en.lane.batch.epoch, en.lane.batch.quarantined == ""
		b := en.round.operation.read(en)
		if d := en.voidCause(b); !d.none() {
			en.record(rules.Failed, d)
		} else {
			en.record(b.vote, failure{FailedError, b.cause})
		}
	})
	if en.Err != nil {
		en.lane.complain(en.Err, now)
		//mutant: a release that was answered with an error is not made late
		en.round.operation.missed(en)
	}
}

// lost is told that the connection broke after the entry was sent. What it may have set is remembered until the next
// connection.
func (en *entry) lost(cause string) {
	for _, sig := range en.round.operation.signatures() {
		en.lane.ledger.remember(sig, en)
	}
	en.giveUp(unknown, failure{FailedConnection, cause})
}

// giveUp casts a failed vote: the command will not be answered. The round's mu is not held.
func (en *entry) giveUp(f fate, why failure) {
	//mutant: a release that was lost is not made late
	en.round.operation.missed(en)
	en.round.vote(en, en.round.engine.now(), func() { en.fail(f, why) })
}

// fail records a failed vote. The round's mu is held.
func (en *entry) fail(f fate, why failure) {
	en.oweRelease()
	//mutant: who takes a lock away is told before a broken connection's command may run no more
	if en.fate = f; f == unknown && en.round.blind {
		return // the command may run until the round ends
	}
	en.record(rules.Failed, why)
}

// record counts the entry's vote, unless it has one: an answer after the deadline changes no vote. The round's mu is held.
func (en *entry) record(v rules.Vote, why failure) {
	if en.vote != rules.Pending {
		return
	}
	en.vote, en.cause = v, why.text
	en.round.tally.Add(v)
	if en.fate == dropped && en.round.revoked { // nobody asked the master
		return
	}
	en.lane.master.count(v, why.kind)
}
