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
	text := fmt.Sprintf("NOQUORUM %d of %d masters answered, %d needed", e.Answered, e.Masters, Quorum(e.Masters))
	if e.Answered >= Quorum(e.Masters) {
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

// failure returns why the script has no quorum. Of several locks, masters that answered may have no vote on one.
func (r *scriptRound) failure() error {
	err := r.round.failure()
	short, is := err.(*NoQuorum) //nolint:errorlint // it is not wrapped
	if !is {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, a := range r.count.answers {
		if a == nil || a.value.Kind != ArrayValue {
			continue
		}
		for part := range a.value.Parts() {
			if part.Kind == ErrorValue {
				_, why, _ := strings.Cut(part.Text, " ")
				short.Causes = append(short.Causes, Cause{r.entries[i].lane.master.Addr(), why})
				break
			}
		}
	}
	return short
}

// A Disagreement says that the masters answered, and no quorum of them alike.
type Disagreement struct {
	SHA     string
	Masters int
	Answers []Cause // by master, in the order of the configuration; also what failed
}

// Error is the text that clients see.
func (e *Disagreement) Error() string {
	return fmt.Sprintf("NOQUORUM script %s: no %d of %d masters agree on what it comes to", e.SHA, Quorum(e.Masters), e.Masters) +
		listed(e.Answers) + "; what it created or changed has been put back"
}

// disagreement returns the error of a round that ended without a quorum of like answers.
func (r *scriptRound) disagreement() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := &Disagreement{SHA: r.req.Script.sha, Masters: len(r.entries)}
	for i := range r.entries {
		text := r.entries[i].cause
		if a := r.count.answers[i]; a != nil {
			text = a.describe()
		}
		if text != "" {
			err.Answers = append(err.Answers, Cause{r.entries[i].lane.master.Addr(), text})
		}
	}
	return err
}
