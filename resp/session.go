package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"lockproxy/quorum/admission"
	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
)

// A session is one client connection. Two goroutines serve it: the reader parses commands and runs their handlers, the
// writer writes the replies. The reader goes on reading while commands wait, so it notices at once when the client
// hangs up. Between them stands the queue. ending.go has the ways in which it ends.
type session struct {
	server  *Server
	conn    net.Conn
	id      int64
	since   int64        // when it began; server clock, ms
	active  atomic.Int64 // when the client last sent something; server clock, ms
	replies replies
	writer  writer

	// Only the reader uses these.
	in       input
	wire     *metered // below TLS; nil: there is none
	parser   wire.Parser
	call     call
	dropped  bool          // a command that had to wait was given up: no further command is run
	over     bool          // the connection is of no more use
	patience *time.Timer   // for a client that sends nothing more
	news     chan struct{} // not nil: the client sends nothing more, and something may have changed (halfclose.go)
	reserve  int           // bytes of the memory budget that are reserved for this command, until its slot takes them over
	dumped   int           // bytes discarded while closing
	mute     muting
	line     *admission.Place
	lined    time.Time // since when this command waits in line, if it does
	transaction
	caching bool // the client is going to keep the reply to its next command; see CLIENT CACHING
	upstreamSide

	memory account
	heldUp atomic.Bool // a command waits

	identity      identity
	subscriptions subscriptions
	holds         holds
	waits         waits

	// replies.mu guards what follows.
	why string // the connection ends; "" if it does not

	remote string // the client's address, once it has been needed; for the writer alone
}

// lingerTime is how long the reader waits for the client to take the last reply and close: closing a socket that has
// unread input would destroy the reply on its way.
const (
	lingerTime  = time.Second
	lingerBytes = 1 << 20
)

func newSession(srv *Server, conn net.Conn, id int64) *session {
	s := &session{server: srv, conn: conn, id: id, since: srv.clock.Load()}
	s.active.Store(s.since)
	s.memory = account{session: s, relief: &srv.relief, budget: &srv.relief.memory}
	s.writer = writer{session: s, replies: &s.replies}
	s.replies.init(srv, conn, &s.memory, s.kill)
	s.subscriptions = subscriptions{messages: srv.messages, memory: &s.memory, replies: &s.replies, identity: &s.identity}
	s.holds = holds{server: srv, memory: &s.memory, replies: &s.replies, client: s}
	s.in.memory = &s.memory
	s.parser.Limits = wire.Limits{Args: srv.limits.Args, Bulk: srv.limits.Bulk, Command: srv.limits.Command}
	s.call.session, s.call.server = s, srv
	s.line = srv.engine.Admission().Place(s.replies.kick)
	s.resetIdentity()
	if secure, ok := conn.(*tls.Conn); ok {
		srv.relief.strangers.arrived(s)
		if m, ok := secure.NetConn().(*metered); ok {
			s.wire = m
			m.account, m.counted = &s.memory, &s.in.counted
		}
	}
	return s
}

// run serves the connection until it ends. Both goroutines have ended when it returns.
func (s *session) run() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.writer.run()
	}()
	s.readLoop()
	s.setGone()
	s.subscriptions.end()
	s.waits.cancel()
	s.line.Leave()
	<-done
	s.dropLink()
	//mutant: a held lock is not released with its connection
	s.holds.release()
	s.tellEnd()
	_ = s.conn.Close()
	s.delivered()
	s.in.release()
	s.memory.give(s.reserve)
	s.memory.drop(nameSize(s.identity.name))
	s.transaction.end(&s.memory)
	s.server.relief.strangers.left(s)
}

// readLoop reads and runs commands until the connection is of no more use.
func (s *session) readLoop() {
	defer s.recovered("reader")
	if !s.speaksTLS() {
		return
	}
	for s.runAll(); !s.over; s.runAll() {
		if s.news != nil {
			s.hearOut()
			return
		}
		s.read()
	}
}

// read reads once more of what the client sends.
func (s *session) read() {
	space, err := s.space()
	if err != nil {
		s.refuse(err)
		return
	}
	n, err := s.conn.Read(space)
	if n > 0 {
		s.active.Store(s.server.clock.Load())
		s.in.filled(n)
		s.delivered()
	}
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded) && s.replies.rearm():
	case err == io.EOF: //nolint:errorlint // what wraps it is no orderly end
		s.noteEnd("the client sends nothing more")
		s.hearEnd()
	default:
		s.noteEnd(err.Error())
		s.warnTLS(err)
		s.over = true
	}
}

// speaksTLS waits for the TLS handshake, if there is one, and says whether to go on. It waits for Limits.Auth at most: strangers who
// never end theirs must not take the places of clients that can show a certificate.
func (s *session) speaksTLS() bool {
	conn, ok := s.conn.(*tls.Conn)
	if !ok {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.server.cfg.Limits.Auth)
	defer cancel()
	err := conn.HandshakeContext(ctx)
	switch {
	case err == nil:
		s.shookHands()
	case err == io.EOF: //nolint:errorlint // what wraps it is no orderly end
		s.noteEnd("the client sends nothing more")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded) && s.replies.closing.Load():
		s.noteEnd("auth_timeout")
	default:
		s.noteEnd(err.Error())
		s.warnTLS(err)
	}
	return err == nil
}

// shookHands notes that the TLS handshake is complete: a client that need not log in is no stranger any more.
func (s *session) shookHands() {
	s.delivered()
	if s.wire != nil {
		s.wire.free = recordFree
	}
	if s.parser.Authed {
		s.introduce()
	}
}

// delivered notes that TLS has delivered what it read.
func (s *session) delivered() {
	if s.wire != nil {
		s.wire.delivered()
	}
}

// space returns where to read to. While a command waits, Limits.Input bounds what is read behind it; the parser bounds a single command.
// While closing, what was read before is discarded.
func (s *session) space() ([]byte, error) {
	if s.replies.closing.Load() {
		s.discard()
	}
	limit := s.server.limits.Input
	if !s.parser.Authed {
		limit = inputBeforeAuth
	}
	if s.heldUp.Load() && s.in.len() >= limit {
		return nil, fmt.Errorf("ERR more than %s sent ahead of the replies; read replies before sending more", wire.SizeText(limit))
	}
	space, ok := s.in.room()
	if !ok {
		return nil, errMemory
	}
	return space, nil
}

// discard drops what a client sends after its last command. Once that is answered, more than lingerBytes ends the connection.
func (s *session) discard() {
	s.dumped += s.in.len()
	s.in.release()
	if s.dumped > lingerBytes && s.replies.isWritten() {
		upstream.BreakOff(s.conn)
	}
}

// runAll runs all complete commands that have arrived.
func (s *session) runAll() {
	defer s.yield()
	for !s.replies.closing.Load() && !s.dropped {
		n, err := s.parser.Next(s.in.bytes())
		if err != nil {
			s.server.counters.protocolErrors.Add(1)
			s.refuse(err)
			return
		}
		if n == 0 {
			return
		}
		s.in.consume(n)
		if len(s.parser.Args) == 0 {
			s.mute.advance() // as in Redis, an empty request is what CLIENT REPLY SKIP skips
			continue
		}
		s.dispatch()
		s.parser.Forget()
	}
}

// yield gives away what others wait for, before the reader reads: requests to the upstream, replies to the writer, a turn in line.
func (s *session) yield() {
	s.sendThere()
	s.replies.wakeWriter()
	s.line.Yield()
}

// await has the command that the reader runs wait until ready. Meanwhile the reader goes on reading, so that it notices at once when the
// client hangs up. If await returns false, the connection is ending: the command is given up, and is not answered.
//
// Each change that ready may look at wakes the reader (replies.wakeReader).
func (s *session) await(ready func() bool) bool {
	if s.dropped {
		return false
	}
	if ready() {
		return true
	}
	s.heldUp.Store(true)
	for {
		s.yield()
		if s.replies.closing.Load() || !s.hear() || s.replies.closing.Load() {
			s.dropped = true
			return false
		}
		if ready() {
			s.heldUp.Store(false)
			return true
		}
	}
}

// hear waits for news: for more that the client sends or, if it sends nothing more, for a change. It says whether a command that waits
// may still be run.
func (s *session) hear() bool {
	if s.news == nil {
		s.read()
		return !s.over
	}
	if s.waits.any() || s.holds.isComing() {
		return false
	}
	s.endBlocked()
	<-s.news
	return !s.replies.isGone()
}

// pipeline is how many commands of the client may be under way.
func (s *session) pipeline() int {
	most := s.server.cfg.Limits.Pipeline
	if !s.parser.Authed {
		most = min(most, depthBeforeAuth)
	}
	return most
}

// sendThere gives the upstream what is gathered for it.
func (s *session) sendThere() {
	if s.link != nil {
		s.link.flush()
	}
}
