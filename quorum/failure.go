package quorum

import (
	"fmt"
	"strings"

	"lockproxy/quorum/rules"
)

// A FailureKind groups the causes for which a master's vote does not count.
type FailureKind uint8

// The kinds of failures.
const (
	FailedLate        FailureKind = iota // the master did not answer in time
	FailedConnection                     // there was no connection, or the connection broke
	FailedError                          // the master answered an error, if only to a question of ours
	FailedForgot                         // the master may have forgotten locks since the handshake
	FailedQuarantined                    // the master is in quarantine, and the vote rests on the absence of a key
	FailedClock                          // the master's clock jumped, or is not known well enough
	FailedHorizon                        // the key could outlive the master's horizon
	failureKinds
)

func (k FailureKind) String() string {
	return [...]string{"late", "connection", "error", "forgot", "quarantined", "clock", "horizon"}[k]
}

// Failures counts votes that did not count, by FailureKind.
type Failures [failureKinds]uint64

// A failure is why a vote does not count.
type failure struct {
	kind FailureKind
	text string // "" if the vote counts
}

// none says that the vote counts.
func (d failure) none() bool { return d.text == "" }

// incapable are the codes of errors that say something of the master, not of the command.
var incapable = []string{
	"OOM", "MISCONF", "NOREPLICAS", "NOPERM", "NOAUTH", "READONLY", "MASTERDOWN", "LOADING", "BUSY", "CLUSTERDOWN", "MOVED",
}

// codeOf returns the code of an error. A script's lack of a permission is told without a code: up to Redis 7.0, and from 7.2 on.
func codeOf(text string) string {
	if strings.Contains(text, "The user executing the script can't ") || strings.Contains(text, "ACL failure in script: ") {
		return "NOPERM"
	}
	code, _, _ := strings.Cut(ofScript(text), " ")
	return code
}

// NoQuorum says that the masters could not give an answer that a quorum stands behind. The caller's wish may or may not
// have happened; a lock was not acquired.
type NoQuorum struct {
	Masters  int
	Answered int     // with a counting vote
	Pending  int     // had not answered yet when the others had decided
	Causes   []Cause // of each other master, in the order of the configuration
}

// A Cause is why one master has no vote.
type Cause struct {
	Addr string
	Text string
}

// Error is the text for clients. Its first word makes no client library retry.
func (e *NoQuorum) Error() string {
	text := fmt.Sprintf("NOQUORUM %d of %d masters answered, %d needed", e.Answered, e.Masters, rules.Quorum(e.Masters))
	if e.Answered >= rules.Quorum(e.Masters) {
		text += " to agree"
	}
	switch {
	case e.Pending == 1:
		text += ", and 1 was not waited for"
	case e.Pending > 1:
		text += fmt.Sprintf(", and %d were not waited for", e.Pending)
	}
	return text + listed(e.Causes)
}

// listed is the end of an error that has a cause for each master.
func listed(causes []Cause) (text string) {
	sep := ": "
	for _, c := range causes {
		text += sep + c.Addr + " " + c.Text
		sep = "; "
	}
	return text
}

// A Disagreement says that the masters answered, but no quorum gave the same answer.
type Disagreement struct {
	SHA     string
	Masters int
	Answers []Cause // by master, in the order of the configuration; also failures
}

// Error is the text that clients see.
func (e *Disagreement) Error() string {
	return fmt.Sprintf("NOQUORUM script %s: no %d of %d masters agree on what it comes to", e.SHA, rules.Quorum(e.Masters), e.Masters) +
		listed(e.Answers) + "; what it created or changed has been put back"
}
