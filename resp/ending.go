package resp

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

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

// janitor advances the server's coarse clock, and ends connections that took too long. One goroutine for all connections is cheaper than
// deadlines at every read and write; in exchange the timeouts are only as exact as the janitor's tick.
func (s *Server) janitor() {
	defer s.running.Done()
	t := time.NewTicker(tick(&s.cfg.Limits))
	defer t.Stop()
	for {
		select {
		case <-s.stopped:
			return
		case <-t.C:
			s.clock.Store(max(1, time.Since(s.started).Milliseconds()))
			s.journal.memory(&s.relief.memory)
			s.relief.relieveScarce(s.clock.Load())
			for _, sess := range s.sessions.all() {
				sess.checkTimes(s.clock.Load())
			}
		}
	}
}

// tick is a tenth of the shortest timeout, between 10 ms and 1 s.
func tick(l *Limits) time.Duration {
	shortest := l.Write
	for _, d := range []time.Duration{l.Idle, l.Auth} {
		if d > 0 {
			shortest = min(shortest, d)
		}
	}
	return min(max(shortest/10, 10*time.Millisecond), time.Second)
}
