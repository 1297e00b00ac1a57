package resp

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"lockproxy/resp/upstream"
)

// How a connection ends:
//
//	in order (stop, refuse), as at QUIT, a protocol error, a drain: closing is set, the reader only discards, the writer
//	    writes what is queued and shuts its side down, the reader waits for the client to close, for a moment
//	the client sends nothing more (EOF): what it has sent is answered, without locks (halfclose.go)
//	at once (hangUp, kill), as after an error of the connection: gone is set, too, the connection is closed, locks whose
//	    replies were not written are abandoned, now or when the engine grants them

// refuse answers with an error in place of any further command, and ends the connection in order.
func (s *session) refuse(err error) {
	sl := s.newReply()
	sl.out.reply = Error(err.Error())
	s.endWhy(err.Error())
	s.replies.stopWith(sl)
}

// stop ends the session after the commands under way have been answered.
func (s *session) stop(why string) {
	s.endWhy(why)
	s.replies.stop()
}

// setGone says that the client is gone.
func (s *session) setGone() {
	s.replies.abandon()
	s.closeLink() // nobody waits for its replies any more
}

// toldWhy stands for a reason that is in the log already.
const toldWhy = "-"

// endWhy notes why the proxy ends the connection, unless there is a reason already.
func (s *session) endWhy(why string) {
	s.replies.mu.Lock()
	defer s.replies.mu.Unlock()
	s.why = cmp.Or(s.why, why)
}

// noteEnd notes why the connection ends. The first reason counts: later ones follow from it.
func (s *session) noteEnd(why string) {
	s.replies.mu.Lock()
	defer s.replies.mu.Unlock()
	if s.why == "" || why == toldWhy {
		s.why = why
	}
}

// tellEnd logs why the connection has ended. Only at debug level: clients come and go.
func (s *session) tellEnd() {
	s.replies.mu.Lock()
	why := s.why
	s.replies.mu.Unlock()
	if log := s.server.log; why != toldWhy && log.Enabled(context.Background(), slog.LevelDebug) {
		log.Debug("connection ended", "client", s.addr(), "id", s.id, "cause", why)
	}
}

// hangUp ends the session at once, without a line of its own in the log.
func (s *session) hangUp(why string) {
	s.noteEnd(why)
	s.setGone()
	upstream.BreakOff(s.conn)
}

// kill ends the session at once, and logs why, unless the log was told of another with that cause just before: what breaks the network
// may end all clients at once.
func (s *session) kill(cause string) {
	if s.logEnd(cause) {
		cause = toldWhy
	}
	s.hangUp(cause)
}

// logEnd logs why the proxy ends the connection, if it may, and says whether it did.
func (s *session) logEnd(cause string) bool {
	n := s.server.killed.count(cause)
	may := s.server.told.may(cause, s.server.clock.Load())
	if may {
		s.server.log.Info("connection ended", "client", s.addr(), "id", s.id, "cause", cause, "all_so_far", n)
	}
	return may
}

// expel is kill for a client that may read the reason: the connection ends in order behind it.
func (s *session) expel(cause string) {
	s.logEnd(cause)
	sl := newSlot(&s.replies)
	sl.out.reply = Error(errMemory.Error())
	s.endWhy(toldWhy)
	s.replies.stopWith(sl)
	s.replies.kick()
}

// recovered keeps a panic on one connection from ending the others. It takes replies.mu: so code that holds replies.mu, and does more than
// look and assign, releases it by a defer.
func (s *session) recovered(where string) {
	if p := recover(); p != nil {
		s.server.log.Error("connection ended by a panic", "in", where, "id", s.id,
			"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		s.hangUp(toldWhy)
	}
}
