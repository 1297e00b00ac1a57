package quorum

import (
	"strings"

	"lockproxy/quorum/masters"
)

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
	missed  bool   // it is a release that the master did not run in time; see release_late.go
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

// command, take, reply and lost make an entry a request of a lane.

func (en *entry) command() *masters.Call { return &en.Call }

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
	case r.dates && en.lane.clockUnsure: // what would be set could outlive its time, and its vote would not count
		return failure{FailedClock, "has not told the time exactly enough"}
	case now >= r.deadline || r.revoked:
		return failure{FailedLate, "was not sent in time"}
	}
	en.fate = sent
	r.owner.compose(en, en.lane.clockNow)
	return failure{}
}

// reply takes the answer that is in Call.
func (en *entry) reply(now instant) {
	en.noteProgram()
	en.round.vote(en, now, func() {
		en.fate, en.epoch = answered, en.lane.epoch
		v, cause := en.round.owner.read(en)
		if d := en.voidCause(); !d.none() {
			en.record(Failed, d)
		} else {
			en.record(v, failure{FailedError, cause})
		}
	})
	if en.Err != nil {
		en.lane.complain(en.Err, now)
		en.round.owner.missed(en)
	}
}

// voidCause returns why the answer does not count, if so.
func (en *entry) voidCause() failure {
	switch l := en.lane; {
	case !l.unproven.none():
		return l.unproven
	case !l.unkept.none() && en.round.keeps > 0:
		return l.unkept
	case en.blank:
		return failure{FailedQuarantined, l.quarantined}
	}
	return failure{}
}

// counts says whether what the master told counts. What comes after the deadline does not. blank is set by then.
func (en *entry) counts() bool { return en.vote == Pending && en.voidCause().none() }

// lost is told that the connection broke after the entry was sent. What it may have set is remembered until the next
// connection.
func (en *entry) lost(cause string) {
	for _, sig := range en.round.owner.signatures() {
		en.lane.remember(sig, en)
	}
	en.giveUp(unknown, failure{FailedConnection, cause})
}

// giveUp casts a failed vote: the command will not be answered. The round's mu is not held.
func (en *entry) giveUp(f fate, why failure) {
	en.round.owner.missed(en)
	en.round.vote(en, en.round.engine.now(), func() { en.fail(f, why) })
}

// fail records a failed vote. The round's mu is held.
func (en *entry) fail(f fate, why failure) {
	en.oweRelease()
	en.fate = f
	en.record(Failed, why)
}

// record counts the entry's vote, unless it has one: a late answer changes nothing. The round's mu is held.
func (en *entry) record(v Vote, why failure) {
	if en.vote != Pending {
		return
	}
	en.vote, en.cause = v, why.text
	en.round.tally.Add(v)
	if en.fate == dropped && en.round.revoked { // nobody asked the master
		return
	}
	en.lane.master.count(v, why.kind)
}

// How owners read replies.

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

// failureText makes a cause of an error reply. Before Redis 7, the error of a script has the error of the command that failed
// at its end.
func failureText(err error) string {
	text := err.Error()
	if at := strings.LastIndex(text, ": -"); at >= 0 && strings.HasPrefix(text, "ERR Error running script") {
		text = text[at+len(": -"):]
	}
	const most = 80
	if len(text) > most {
		text = text[:most] + "…"
	}
	return "answered " + text
}

// unexpected reads a reply that our own command cannot have.
func unexpected() (Vote, string) { return Failed, "gave an answer that this command does not have" }
