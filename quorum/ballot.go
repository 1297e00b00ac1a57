package quorum

import (
	"strings"

	"lockproxy/quorum/rules"
)

// A ballot is what an operation reads in a master's answer: a vote, and whether that counts of any master.
type ballot struct {
	vote    rules.Vote
	ifClean bool
	cause   string // of a Failed vote
}

// The ballots. Those that count only if the master is clean rest on something not being there, or on what may be an older copy: of a
// master in quarantine, which may have forgotten what was there, they prove nothing (rule 6).
var (
	granted        = ballot{vote: rules.Granted}
	grantedIfClean = ballot{vote: rules.Granted, ifClean: true}
	refused        = ballot{vote: rules.Refused}
	refusedIfClean = ballot{vote: rules.Refused, ifClean: true}
	unexpected     = failed("gave an answer that this command does not have")
)

func failed(cause string) ballot { return ballot{vote: rules.Failed, cause: cause} }

// voidCause returns why a ballot does not count, if so.
func (en *entry) voidCause(b ballot) failure {
	switch in := &en.lane.batch; {
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

// counts says whether what the master told with a ballot counts. What comes after the deadline does not.
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
	case int64(absent), int64(other): // what an older copy has of another's may be over
		return refusedIfClean
	}
	return unexpected
}

// readError reads an error reply. That the key has another type is an answer; any other error is a failure.
func readError(err error) ballot {
	if isWrongType(err.Error()) {
		return refused
	}
	return failed(failureText(err))
}

// isWrongType recognises the error by itself and, before Redis 7, inside that of a script.
func isWrongType(text string) bool {
	return strings.HasPrefix(text, "WRONGTYPE") ||
		strings.HasPrefix(text, "ERR Error running script") && strings.Contains(text, "WRONGTYPE")
}

// ofScript takes the error of the command that failed out of the error of a script, before Redis 7, which has it behind the place in
// the script.
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
