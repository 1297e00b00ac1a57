package resp

import "time"

// mayBegin says whether the reader may begin an operation of the engine on so many keys. If not, the command waits, as behind a full
// pipeline, with all input behind the command, until a kick tells the reader of its turn. Commands without an operation of the engine are
// not held up.
//
// A reader that waits for the upstream could not use its turn, perhaps for long. So the reader flushes its requests to the upstream before
// asking for a turn, and gives an unused turn back before any wait, even a wait for the upstream's command table.
func (r *reader) mayBegin(keys int) bool {
	r.sendThere()
	if !r.line.Admit(keys) {
		if r.lined.IsZero() {
			r.lined = time.Now()
		}
		return false
	}
	if !r.lined.IsZero() {
		r.warnLine(time.Since(r.lined))
		r.lined = time.Time{}
	}
	return true
}

// longLine is the wait in line from which the log is told: a burst is over sooner.
const longLine = time.Second

// warnLine logs the client's wait in line, if longer than longLine.
func (r *reader) warnLine(waited time.Duration) {
	s := r.session
	if waited < longLine {
		return
	}
	load := s.server.engine.Admission()
	running, _ := load.Rounds()
	s.server.journal.warn("clients ask for more than can be answered in time, and wait in line", "client", s.addr(), "id", s.id,
		"waited", waited.Round(time.Millisecond), "rounds", running, "in_line", load.Waiting())
}
