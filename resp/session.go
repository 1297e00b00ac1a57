package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"lockproxy/quorum/admission"
	"lockproxy/quorum/gate"
	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
)

// A session is one client connection. Two goroutines serve it: the reader parses commands and runs their handlers, the
// writer writes the replies. The reader goes on reading while commands wait, so it notices at once when the client
// hangs up. Between them stands the queue. ending.go has the ways in which it ends.
type session struct {
	server *Server
	conn   net.Conn
	id     int64
	since  int64        // when it began; server clock, ms
	active atomic.Int64 // when the client last sent something; server clock, ms
	// writing is when the write under way began, 0 if there is none; server clock, ms.
	writing atomic.Int64

	// Only the reader uses these.
	in        input
	wire      *metered // below TLS; nil: there is none
	parser    wire.Parser
	call      call
	pending   bool // parser.Args hold a command that has to wait
	reserve   int  // bytes of the memory budget that are reserved for this command, until its slot takes them over
	dumped    int  // bytes discarded while closing
	mute      muting
	compiling *compiling // what this command waits for
	line      *admission.Place
	lined     time.Time // since when this command waits in line, if it does
	transaction
	caching bool // the client is going to keep the reply to its next command; see CLIENT CACHING
	upstreamSide

	memory   account
	outBytes atomic.Int64 // what waits for the client; changed with mu held
	heldUp   atomic.Bool  // pending, as of when the reader began to wait
	depth    atomic.Int64 // what the queue counts towards Limits.Pipeline
	inBytes  atomic.Int64 // bytes of the commands in the queue
	closing  atomic.Bool  // no command is run any more; set with mu held

	mu         sync.Mutex // guards what follows
	ready      sync.Cond  // the writer waits for work
	head, tail *slot
	batch      *slot                  // what the writer writes; it is not in the queue any more
	slotBytes  int                    // what the slots in the queue take beside texts
	counted    int                    // of slotBytes, what the memory budget has counted
	reading    int                    // reads under way
	readSize   int                    // about how long what they read is
	alone      int                    // commands in flight that nothing may overlap
	waitFor    *slot                  // the reader waits for it to be ready
	throttled  bool                   // the reader waits for depth and inBytes to go down
	gone       bool                   // the client is; closing is set, too
	written    bool                   // the writer has ended
	waits      map[*slot]*gate.Waiter // each LOCK … WAIT under way; nil: it is not in the gate yet
	sentAll    chan struct{}          // not nil: the client sends nothing more. Tells the reader that something has changed
	turn       sync.Cond              // the relay waits to write
	identity
	subscriptions
	holds
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
	s := &session{server: srv, conn: conn, id: id, since: srv.clock.Load(), readSize: firstReadSize, waits: map[*slot]*gate.Waiter{}}
	s.ready.L = &s.mu
	s.turn.L = &s.mu
	s.active.Store(s.since)
	s.memory = account{session: s, budget: &srv.memory}
	s.in.memory = &s.memory
	s.parser.Limits = wire.Limits{Args: srv.limits.Args, Bulk: srv.limits.Bulk, Command: srv.limits.Command}
	s.call.session = s
	s.line = srv.engine.Admission().Place(s.Kick)
	s.resetIdentity()
	if secure, ok := conn.(*tls.Conn); ok {
		srv.strangers.arrived(s)
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
		s.writeLoop()
	}()
	s.readLoop()
	s.setGone()
	s.unsubscribeAll()
	s.cancelWaits()
	s.line.Leave()
	<-done
	s.dropLink()
	//mutant: a held lock is not released with its connection
	s.releaseHolds()
	s.tellEnd()
	_ = s.conn.Close()
	s.delivered()
	s.in.release()
	s.memory.give(s.reserve)
	s.memory.drop(nameSize(s.name))
	s.transaction.end(&s.memory)
	s.server.strangers.left(s)
}

// readLoop reads and runs commands until the connection is of no more use.
func (s *session) readLoop() {
	defer s.recovered("reader")
	if !s.speaksTLS() {
		return
	}
	for {
		s.runAll()
		space, err := s.space()
		if err != nil {
			s.refuse(err)
			continue
		}
		n, err := s.conn.Read(space)
		if n > 0 {
			s.active.Store(s.server.clock.Load())
			s.in.filled(n)
			s.delivered()
		}
		switch {
		case err == nil, errors.Is(err, os.ErrDeadlineExceeded) && s.rearm():
		case err == io.EOF: //nolint:errorlint // what wraps it is no orderly end
			s.noteEnd("the client sends nothing more")
			s.hearOut()
			return
		default:
			s.noteEnd(err.Error())
			s.warnTLS(err)
			return
		}
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
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded) && s.closing.Load():
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
	if s.closing.Load() {
		s.discard()
	}
	limit := s.server.limits.Input
	if !s.parser.Authed {
		limit = inputBeforeAuth
	}
	if s.pending && s.in.len() >= limit {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written && s.dumped > lingerBytes {
		upstream.BreakOff(s.conn)
	}
}

// rearm takes back the deadline that woke the reader, and says whether to go on.
func (s *session) rearm() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written {
		return false
	}
	return s.conn.SetReadDeadline(time.Time{}) == nil
}

// runAll runs all complete commands that have arrived, until one has to wait.
func (s *session) runAll() {
	defer s.line.Yield()
	for !s.closing.Load() {
		if !s.pending {
			n, err := s.parser.Next(s.in.bytes())
			if err != nil {
				s.server.counters.protocolErrors.Add(1)
				s.refuse(err)
				break
			}
			if n == 0 {
				break
			}
			s.in.consume(n)
			if len(s.parser.Args) == 0 {
				s.mute.advance() // as in Redis, an empty request is what CLIENT REPLY SKIP skips
				continue
			}
		}
		s.pending = !s.dispatch()
		if s.pending {
			break
		}
		s.parser.Forget()
	}
	s.heldUp.Store(s.pending)
	s.sendThere()
	s.wakeWriter()
}

// sendThere gives the upstream what is gathered for it.
func (s *session) sendThere() {
	if s.link != nil {
		s.link.flush()
	}
}

// wakeWriter tells the writer of replies that handlers gave at once. They are written together.
func (s *session) wakeWriter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head != nil && s.head.left == 0 {
		s.ready.Signal()
	}
}

// kickReader ends the reader's Read, so that the reader looks again at the command that waits. s.mu is held.
func (s *session) kickReader() {
	if s.sentAll != nil {
		s.tellReader()
		return
	}
	_ = s.conn.SetReadDeadline(time.Unix(1, 0))
}

// Kick is kickReader without s.mu held: it is the client's turn in line.
func (s *session) Kick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kickReader()
}
