package resp

import "time"

// mayBegin says whether the reader may begin an operation of the engine on so many keys. If not, its command waits, as behind a full
// pipeline, with all that the client has sent behind it, and the reader is kicked when it is its turn. Commands that begin none are not
// held up.
//
// A reader that waits for the upstream could not use its turn, perhaps for long. So it has nothing left to send there when it asks for
// one, and gives back what it has not used before it waits, as it may also do to be told which commands the upstream has.
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

// longLine is how long a client has to wait in line for the log to be told: a burst is over before that.
const longLine = time.Second

// warnLine logs that the client had to wait in line for so long, if it is long.
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
