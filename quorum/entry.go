package quorum

import (
	"strings"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
)

// An entry is one master's part of a round: the command, its fate and its vote. The entry waits in a lane.
type entry struct {
	masters.Call
	round  *round
	lane   *lane
	master int

	expires int64 // when the key expires that the command sets, ms of the master's clock; 0 before the command is written
	fate    fate
	vote    rules.Vote
	cause   string // of a Failed vote
	took    bool   // the reply says that the command set the key where none was
	undoing bool   // an undo of the command exists; undo.go
	undos   []*undo
	missed  bool  // the command is a release, and the master did not run the release in time; see ledger.go
	epoch   int64 // of the master, when it answered
	clean   bool  // the master was in no quarantine when the master answered
}

// A fate is how far a command came.
type fate uint8

const (
	waiting fate = iota // in the lane; the lane can still drop the command
	sent
	answered
	unknown // sent, and the connection broke before the reply
	dropped // never sent
)

// command, keeps, take, reply and lost make an entry a request of a lane.

func (en *entry) command() *masters.Call { return &en.Call }

func (en *entry) keeps() time.Duration { return en.round.keeps }

// take counts the entry as sent, and makes the command, just before the batch is written. A request whose deadline has passed is never
// written (rule 3), nor is a request of an attempt that has failed without the entry. Then take casts a failed vote, and returns false.
func (en *entry) take(now answerTime) bool {
	r, why := en.round, failure{}
	r.mu.Lock()
	switch {
	//mutant: a key is set by a vague clock
	case r.dates && en.lane.clock.unsure: // the key could outlive its time, and the vote would not count
		why = failure{FailedClock, "has not told the time exactly enough"}
	//mutant: a request is written after its deadline
	//mutant: a request is written after its undo
	case now >= r.deadline || r.revoked:
		why = failure{FailedLate, "was not sent in time"}
	default:
		en.fate = sent
		r.operation.compose(en, en.lane.clock.kept)
	}
	r.mu.Unlock()
	if !why.none() {
		en.giveUp(dropped, why)
		return false
	}
	if p := r.program; p != nil && !en.lane.connection.programs[p.sha] {
		en.Args = written(en.Args, p.text)
	}
	return true
}

// reply takes the answer that is in Call.
func (en *entry) reply(now instant) {
	if p, k := en.round.program, en.lane.connection; p != nil && k != nil && en.Err == nil && !k.programs[p.sha] {
		k.has(p)
	}
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

// lost is told that the connection broke after the entry was sent. The ledger remembers the keys that the command may have set until the
// next connection.
func (en *entry) lost(cause string) {
	for _, sig := range en.round.operation.signatures() {
		en.lane.ledger.remember(sig, en)
	}
	en.giveUp(unknown, failure{FailedConnection, cause})
}

// giveUp casts a failed vote: the command will not be answered. The round's mu is not held.
func (en *entry) giveUp(f fate, why failure) {
	en.oweRelease()
	//mutant: a release that was lost is not made late
	en.round.operation.missed(en)
	en.round.vote(en, en.round.engine.now(), func() { en.fail(f, why) })
}

// fail records a failed vote. The round's mu is held.
func (en *entry) fail(f fate, why failure) {
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

// A ballot is an operation's reading of a master's answer: a vote, and whether the vote counts of any master.
type ballot struct {
	vote    rules.Vote
	ifClean bool
	cause   string // of a Failed vote, which counts as FailedError; voidCause has the other kinds of failure
}

// The ballots. A ballot that rests on the absence of a key, or on a key that may be an older copy, counts only if the master is clean: a
// master in quarantine may have forgotten keys, and proves nothing (rule 6).
var (
	granted        = ballot{vote: rules.Granted}
	grantedIfClean = ballot{vote: rules.Granted, ifClean: true}
	refused        = ballot{vote: rules.Refused}
	refusedIfClean = ballot{vote: rules.Refused, ifClean: true}
	unexpected     = failed("gave an answer that this command does not have")
)

func failed(cause string) ballot { return ballot{vote: rules.Failed, cause: cause} }

// voidCause returns why a ballot does not count. The failure is none if the ballot counts: quarantined is "" of a clean master.
func (en *entry) voidCause(b ballot) failure {
	switch in := en.lane.batch; {
	case !in.unproven.none():
		return in.unproven
	case !in.unkept.none() && en.round.keeps > 0:
		return in.unkept
	case b.ifClean:
		//mutant: a quarantined master's grants count
		return failure{FailedQuarantined, in.quarantined}
	}
	return failure{}
}

// counts says whether the master's answer counts, if the answer is this ballot. An answer after the deadline does not count.
func (en *entry) counts(b ballot) bool { return en.vote == rules.Pending && en.voidCause(b).none() }

// How answers are read that several operations have.

// comparison reads the reply of a script that compares before it changes.
func comparison(en *entry) ballot {
	if en.Err != nil {
		return readError(en.Err)
	}
	switch en.Reply {
	case int64(didIt):
		return granted
	//mutant: an older copy tells that a lock is not held
	case int64(absent), int64(other): // another's lock may be over, in an older copy
		return refusedIfClean
	}
	return unexpected
}

// readError reads an error reply. WRONGTYPE is an answer; any other error is a failure.
func readError(err error) ballot {
	if isWrongType(err.Error()) {
		return refused
	}
	return failed(failureText(err))
}

// isWrongType recognises the error by itself and, before Redis 7, inside the error of a script.
func isWrongType(text string) bool {
	return strings.HasPrefix(text, "WRONGTYPE") ||
		strings.HasPrefix(text, "ERR Error running script") && strings.Contains(text, "WRONGTYPE")
}

// ofScript returns the failed command's error out of a script's error. Before Redis 7, a script's error has the command's error behind
// the place in the script.
func ofScript(text string) string {
	const place = "@user_script:"
	if at := strings.LastIndex(text, place); at >= 0 && strings.HasPrefix(text, "ERR Error running script") {
		_, text, _ = strings.Cut(text[at+len(place):], ": ")
		return strings.TrimPrefix(text, "-")
	}
	return text
}

// failureText makes a cause of an error reply.
func failureText(err error) string {
	text := ofScript(err.Error())
	const most = 80
	if len(text) > most {
		text = text[:most] + "…"
	}
	return "answered " + text
}
