package quorum

import (
	"fmt"
	"strings"
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
	var b strings.Builder
	fmt.Fprintf(&b, "NOQUORUM %d of %d masters answered, %d needed", e.Answered, e.Masters, Quorum(e.Masters))
	if e.Answered >= Quorum(e.Masters) {
		b.WriteString(" to agree")
	}
	switch {
	case e.Pending == 1:
		b.WriteString(", and 1 was not waited for")
	case e.Pending > 1:
		fmt.Fprintf(&b, ", and %d were not waited for", e.Pending)
	}
	sep := ": "
	for _, c := range e.Causes {
		b.WriteString(sep + c.Addr + " " + c.Text)
		sep = "; "
	}
	return b.String()
}
