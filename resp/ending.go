package resp

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"sync"

	"lockproxy/resp/upstream"
)

// How a connection ends:
//
//   - In order (stop, refuse), as at QUIT, a protocol error, a drain: closing is set. The reader only discards. The writer writes the queue
//     and shuts its side down. The reader waits a moment for the client to close.
//   - The client sends nothing more (EOF): commands already sent are answered, without locks (halfclose.go).
//   - At once (hangUp, kill), as after an error of the connection: gone is set, too, and the connection is closed. Locks whose replies were
//     not written are abandoned, now or when granted.

// refuse answers with an error in place of any further command, and ends the connection in order.
func (s *session) refuse(err error) {
	sl := s.newReply()
	sl.out.reply = Error(err.Error())
	s.ending.decide(err.Error())
	s.replies.stop(sl)
}

// stop ends the session after the commands under way have been answered.
func (s *session) stop(why string) {
	s.ending.decide(why)
	s.replies.stop(nil)
}

// setGone says that the client is gone.
func (s *session) setGone() {
	s.replies.abandon()
	s.uplink.close() // nobody waits for the upstream's replies any more
}

// toldWhy stands for a reason already in the log.
const toldWhy = "-"

// An ending is why a connection ends.
type ending struct {
	mu  sync.Mutex // guards why
	why string     // "": the connection does not end yet
}

// decide notes why the proxy ends the connection, unless there is a reason already.
func (e *ending) decide(why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.why = cmp.Or(e.why, why)
}

// note notes why the connection ends. The first reason counts: later ones follow from it.
func (e *ending) note(why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.why == "" || why == toldWhy {
		e.why = why
	}
}

func (e *ending) cause() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.why
}

// hangUp ends the session at once, without a line of its own in the log.
func (s *session) hangUp(why string) {
	s.ending.note(why)
	s.setGone()
	upstream.BreakOff(s.conn)
}

// kill ends the session at once, and logs the cause, unless the log had the same cause just before: a broken network may end all clients at
// once.
func (s *session) kill(cause string) {
	if s.server.journal.ended(s, cause) {
		cause = toldWhy
	}
	s.hangUp(cause)
}

// expel is kill for a client that may read the reason: the connection ends in order behind it.
func (s *session) expel(cause string) {
	s.server.journal.ended(s, cause)
	sl := newSlot(&s.replies)
	sl.out.reply = Error(errMemory.Error())
	s.ending.decide(toldWhy)
	s.replies.stop(sl)
	s.replies.kick()
}

// recovered keeps a panic on one connection from ending the others. recovered takes replies.mu: so code that holds replies.mu, and does
// more than look and assign, releases the mutex by a defer.
func (s *session) recovered(where string) {
	if p := recover(); p != nil {
		s.server.log.Error("connection ended by a panic", "in", where, "id", s.id,
			"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		s.hangUp(toldWhy)
	}
}

// checkTimes ends the session if a limit of time is exceeded; now is the server's clock.
func (s *session) checkTimes(now int64) {
	limits := &s.server.cfg.Limits
	if w := s.replies.writing.Load(); w != 0 && now-w > limits.Write.Milliseconds() {
		s.kill("write timeout: the client does not read")
		return
	}
	if w := s.uplink.sending.Load(); w != 0 && now-w > limits.Write.Milliseconds() {
		s.uplink.lost("write timeout: it does not read")
		return
	}
	s.holds.hurryOverdue()
	s.replies.lookAgain()
	idle := limits.Idle > 0 && now-s.active.Load() > limits.Idle.Milliseconds() && s.isQuiet()
	switch {
	case s.replies.closing.Load():
	case s.identity.unknownFor(now) > limits.Auth.Milliseconds():
		s.stop("auth_timeout")
	case idle:
		s.stop("idle_timeout")
	}
}

// isQuiet says whether the client expects nothing: no reply, no message, and no held lock. The replies are read before the holds: an
// answered LOCK … HOLD has its hold.
func (s *session) isQuiet() bool {
	return s.replies.isIdle() && !s.reader.heldUp.Load() && !s.subscriptions.any() && s.holds.isEmpty() && !s.uplink.monitors.Load()
}
