package quorum

import (
	"fmt"

	"lockproxy/quorum/rules"
)

// NoQuorum says that the masters could not give an answer that a quorum stands behind. What the caller asked for may
// or may not have happened; a lock was not acquired.
type NoQuorum struct {
	Masters  int
	Answered int     // with a vote that counts
	Pending  int     // had not answered yet when the others had decided
	Causes   []Cause // of each other master, in the order of the configuration
}

// A Cause is why one master has no vote.
type Cause struct {
	Addr string
	Text string
}

// Error is the text that clients see. Its first word is one that no client library retries on.
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

// A Disagreement says that the masters answered, and no quorum of them alike.
type Disagreement struct {
	SHA     string
	Masters int
	Answers []Cause // by master, in the order of the configuration; also what failed
}

// Error is the text that clients see.
func (e *Disagreement) Error() string {
	return fmt.Sprintf("NOQUORUM script %s: no %d of %d masters agree on what it comes to", e.SHA, rules.Quorum(e.Masters), e.Masters) +
		listed(e.Answers) + "; what it created or changed has been put back"
}
