package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"lockproxy/quorum/admission"
	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
)

// A reader takes the bytes of one client, finds the commands in the bytes, and runs the commands. The reader has its own goroutine, and
// goes on reading while a command waits, so that the session notices a hang-up at once. Only this goroutine uses the fields, unless a field
// says otherwise.
type reader struct {
	session  *session
	in       input
	wire     *metered // below TLS; nil: the connection has no TLS
	parser   wire.Parser
	line     *admission.Place // the place in line under overload; see mayBegin
	lined    time.Time        // when this command began to wait in line; zero: the command does not wait
	dropped  bool             // a waiting command was given up: no further command is run
	over     bool             // the connection is of no more use
	dumped   int              // bytes discarded while closing
	news     chan struct{}    // tells the reader of changes once the client sends nothing more (halfclose.go); nil before
	patience *time.Timer      // ends a client after its last bytes, if its last commands take too long
	heldUp   atomic.Bool      // a command waits; other goroutines read the flag
}

// lingerTime is how long the reader waits for the client to take the last reply and close. To close a socket with unread input would
// destroy the reply on its way. lingerBytes is how much input the reader discards meanwhile.
const (
	lingerTime  = time.Second
	lingerBytes = 1 << 20
)

func (r *reader) init(s *session) {
	r.session = s
	r.in.memory = &s.memory
	l := &s.server.limits
	r.parser.Limits = wire.Limits{Args: l.Args, Bulk: l.Bulk, Command: l.Command}
	r.line = s.server.engine.Admission().Place(s.replies.kick)
}

// run reads and runs commands until the connection is of no more use.
func (r *reader) run() {
	defer r.session.recovered("reader")
	if !r.speaksTLS() {
		return
	}
	for r.runAll(); !r.over; r.runAll() {
		if r.news != nil {
			r.hearOut()
			return
		}
		r.read()
	}
}

// read reads once from the client.
func (r *reader) read() {
	s := r.session
	space, err := r.space()
	if err != nil {
		s.refuse(err)
		return
	}
	n, err := s.conn.Read(space)
	if n > 0 {
		s.active.Store(s.server.clock.Load())
		r.in.w += n
		r.wire.delivered()
	}
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded) && s.replies.rearm():
	case err == io.EOF: //nolint:errorlint // what wraps it is no orderly end
		s.ending.note("the client sends nothing more")
		r.hearEnd()
	default:
		s.ending.note(err.Error())
		s.server.journal.tls(s, err)
		r.over = true
	}
}

// speaksTLS completes the TLS handshake of a connection with TLS, and says whether to go on. The wait is Limits.Auth at most: strangers
// with an endless handshake must not take the places of clients with a certificate.
func (r *reader) speaksTLS() bool {
	s := r.session
	conn, ok := s.conn.(*tls.Conn)
	if !ok {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.server.cfg.Limits.Auth)
	defer cancel()
	err := conn.HandshakeContext(ctx)
	switch {
	case err == nil:
		r.shookHands()
	case err == io.EOF: //nolint:errorlint // what wraps it is no orderly end
		s.ending.note("the client sends nothing more")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded) && s.replies.closing.Load():
		s.ending.note("auth_timeout")
	default:
		s.ending.note(err.Error())
		s.server.journal.tls(s, err)
	}
	return err == nil
}

// shookHands notes the complete TLS handshake: a client without a need to log in is no stranger any more.
func (r *reader) shookHands() {
	r.wire.delivered()
	if r.wire != nil {
		r.wire.free = recordFree
	}
	if r.parser.Authed {
		r.session.introduce()
	}
}

// space returns the room to read into. While a command waits, Limits.Input bounds the bytes read behind the command; the parser bounds a
// single command. While the connection closes, bytes read before are discarded.
func (r *reader) space() ([]byte, error) {
	if r.session.replies.closing.Load() {
		r.discard()
	}
	limit := r.session.server.limits.Input
	if !r.parser.Authed {
		limit = inputBeforeAuth
	}
	if r.heldUp.Load() && r.in.len() >= limit {
		return nil, fmt.Errorf("ERR more than %s sent ahead of the replies; read replies before sending more", wire.SizeText(limit))
	}
	space, ok := r.in.room()
	if !ok {
		return nil, errMemory
	}
	return space, nil
}

// discard drops the bytes behind a client's last command. Once the last command is answered, more than lingerBytes ends the connection.
func (r *reader) discard() {
	r.dumped += r.in.len()
	r.in.release()
	if r.dumped > lingerBytes && r.session.replies.isWritten() {
		upstream.BreakOff(r.session.conn)
	}
}

// runAll runs the commands that have arrived whole.
func (r *reader) runAll() {
	s := r.session
	defer r.yield()
	for !s.replies.closing.Load() && !r.dropped {
		n, err := r.parser.Next(r.in.bytes())
		if err != nil {
			s.server.counters.protocolErrors.Add(1)
			s.refuse(err)
			return
		}
		if n == 0 {
			return
		}
		r.in.consume(n)
		if len(r.parser.Args) == 0 {
			s.mute.advance() // as in Redis, an empty request uses up CLIENT REPLY SKIP
			continue
		}
		r.dispatch()
		r.parser.Forget()
	}
}

// yield passes on, before the reader reads, whatever others wait for: requests to the upstream, replies to the writer, a turn in line.
func (r *reader) yield() {
	r.session.uplink.flush()
	r.session.replies.wakeWriter()
	r.line.Yield()
}

// await keeps the reader's command waiting until ready. Meanwhile the reader goes on reading, so that the session notices a hang-up at
// once. If await returns false, the connection is ending: the command is given up, and gets no answer.
//
// Each change of a state read by ready wakes the reader (waker.wake).
func (r *reader) await(ready func() bool) bool {
	if r.dropped {
		return false
	}
	if ready() {
		return true
	}
	r.heldUp.Store(true)
	for {
		r.yield()
		if r.session.replies.closing.Load() || !r.hear() || r.session.replies.closing.Load() {
			r.dropped = true
			return false
		}
		if ready() {
			r.heldUp.Store(false)
			return true
		}
	}
}

// hear waits for news: for more bytes from the client, or for a change once the client sends nothing more. hear says whether a waiting
// command may still be run.
func (r *reader) hear() bool {
	s := r.session
	if r.news == nil {
		r.read()
		return !r.over
	}
	if s.waits.any() || s.holds.isComing() {
		return false
	}
	r.session.uplink.endBlocked()
	<-r.news
	return !s.replies.isGone()
}

// mayBegin says whether the reader may begin an operation of the engine on so many keys. If not, the command waits, as behind a full
// pipeline, with all input behind the command, until a kick tells the reader of its turn. Commands without an operation of the engine are
// not held up.
//
// A reader that waits for the upstream could not use its turn, perhaps for long. So the reader flushes its requests to the upstream before
// asking for a turn, and gives an unused turn back before any wait, even a wait for the upstream's command table.
func (r *reader) mayBegin(keys int) bool {
	r.session.uplink.flush()
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
