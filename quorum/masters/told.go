package masters

import (
	"slices"
	"time"
)

// Told has the causes of a missing connection that the log was told. The log is told each cause once until there is a
// connection again, because a master that is dialled several times a second may refuse in two ways in turn. The log is
// also told each cause once in toldEvery, because a master may take connections and break them every second. A cause
// left out for the latter reason is told when it still holds after toldEvery.
type Told struct {
	causes []cause
	all    uint64 // losses
	lost   bool   // there is no connection
	said   bool   // the log was told so
}

type cause struct {
	text  string
	at    time.Time // when the log was told
	ended bool      // there was a connection since
}

// ToldMax is how many different causes the log is told of.
const ToldMax = 8

const toldEvery = time.Minute

// Lost notes why there is no connection. Lost returns whether to tell the log, and how many connections were lost so
// far.
func (t *Told) Lost(text string, now time.Time) (tell bool, all uint64) {
	if !t.lost {
		t.lost = true
		t.all++
	}
	t.causes = slices.DeleteFunc(t.causes, func(c cause) bool { return c.ended && now.Sub(c.at) >= toldEvery })
	if len(t.causes) == ToldMax || slices.ContainsFunc(t.causes, func(c cause) bool { return c.text == text }) {
		return false, t.all
	}
	t.causes = append(t.causes, cause{text, now, false})
	t.said = true
	return true, t.all
}

// Found notes that there is a connection. Found returns whether to tell the log: only if the log was told of the loss.
func (t *Told) Found() (tell bool) {
	tell = t.said
	t.lost, t.said = false, false
	for i := range t.causes {
		t.causes[i].ended = true
	}
	return tell
}
