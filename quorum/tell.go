package quorum

import (
	"strconv"
	"strings"

	"lockproxy/quorum/masters"
)

// A master that keeps less on disk than it did comes to a new epoch, without a quarantine: it has forgotten nothing. But its
// file may be an old one from then on, in which its mark has the epoch before. So the other masters are told the new one
// (rule 7b), as soon as they can be reached: whoever meets the master again on that file has heard of it from them.

// tellOthers has the other masters told the epochs. It is called when this one has come to a new one.
func (l *lane) tellOthers() {
	for _, other := range l.engine.lanesOf(l.db) {
		if other != l {
			other.behind.Store(true)
			other.ask(newTelling(other))
		}
	}
}

// newTelling tells a master the epochs of all. Until it has them all it is told again, with each heartbeat.
func newTelling(l *lane) *question {
	args := luaTell.all([]string{rosterKey}, l.roster.args())
	return &question{Call: masters.Call{Args: args}, lane: l, answer: func(*question) {
		if l.roster.isIn(l.link.marks.roster) { // which was read after this
			l.behind.Store(false)
		}
	}}
}

// isIn says that a roster's text has no earlier epoch of any master.
func (r roster) isIn(text string) bool {
	told := strings.Fields(text)
	for i := range r {
		if i >= len(told) {
			return false
		}
		if epoch, err := strconv.ParseInt(told[i], 10, 64); err != nil || epoch < r[i].Load() {
			return false
		}
	}
	return true
}
