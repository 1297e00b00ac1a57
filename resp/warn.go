package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
)

// A seldom notes when the log had a line last, of those that it has at most once in seldomEvery, however often there is cause for them.
type seldom struct {
	mu   sync.Mutex       // guards told
	told map[string]int64 // by what the line says, which is one of few; the server's clock
}

const seldomEvery = time.Minute

func (s *seldom) may(text string, clock int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if told, ok := s.told[text]; ok && clock-told < seldomEvery.Milliseconds() {
		return false
	}
	if s.told == nil {
		s.told = map[string]int64{}
	}
	s.told[text] = clock
	return true
}

// kills counts the connections that the proxy has killed, by cause. The causes are few.
type kills struct {
	mu sync.Mutex // guards by
	by map[string]uint64
}

// count counts one more, and returns how many that is for this cause.
func (k *kills) count(cause string) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil {
		k.by = map[string]uint64{}
	}
	k.by[cause]++
	return k.by[cause]
}

// A journal is what the log is told of clients. Clients come and go, and their errors repeat: most lines are told seldom.
type journal struct {
	log      *slog.Logger
	clock    *atomic.Int64 // the server's, ms
	counters *counters
	told     seldom
	killed   kills

	memoryWarned uint64 // how many clients had been refused for want of memory when the log was told; for the janitor alone
}

// warn logs a warning, unless it has done so a short time ago. It says whether it did.
func (j *journal) warn(text string, args ...any) bool {
	may := j.told.may(text, j.clock.Load())
	if may {
		j.log.Warn(text, args...)
	}
	return may
}

// ended logs why the proxy ends the connection, if it may, and says whether it did.
func (j *journal) ended(s *session, cause string) bool {
	count := j.killed.count(cause)
	may := j.told.may(cause, j.clock.Load())
	if may {
		j.log.Info("connection ended", "client", s.addr(), "id", s.id, "cause", cause, "all_so_far", count)
	}
	return may
}

// over logs why a connection has ended, unless the log has the reason already. Only at debug level: clients come and go.
func (j *journal) over(s *session) {
	why := s.ending.cause()
	if why != toldWhy && j.log.Enabled(context.Background(), slog.LevelDebug) {
		j.log.Debug("connection ended", "client", s.addr(), "id", s.id, "cause", why)
	}
}

// refused logs an error that tells of a TTL beyond ttl_max, or of a script that masters found not fit for a vote. A user of
// phpredis may not hear of it: phpredis returns false for an error, as for a lock that somebody else has, so that Laravel's scheduler
// would leave out a job for ever.
func (j *journal) refused(s *session, e Error) {
	switch text := string(e); {
	case strings.HasPrefix(text, ttlMaxPrefix), strings.Contains(text, ttlMaxByVote):
		j.warn("a lock was refused: its TTL exceeds ttl_max", "client", s.addr(), "id", s.id, "reply", text)
	case strings.HasPrefix(text, "ERR script ") && strings.Contains(text, notByVote):
		if before, _, found := strings.Cut(text, keyByVote); found {
			text = before + "it uses a key that is not one of its KEYS" // the name may be a token, from ARGV
		}
		j.script(s, Error(text))
	}
}

// login logs that a login failed, but not each time: somebody who guesses passwords would fill the disk.
func (j *journal) login(s *session) {
	all := j.counters.loginsRefused.Add(1)
	j.warn("login refused", "client", s.addr(), "id", s.id, "all_so_far", all)
}

// memory logs that clients were refused for want of memory since it did so last. It is for the janitor alone.
func (j *journal) memory(b *budget) {
	all := b.refused.Load()
	if all > j.memoryWarned && j.warn("max_memory is spent: clients are refused", "max_memory", wire.SizeText(int(b.max)), "all_so_far", all) {
		j.memoryWarned = all
	}
}

// tls logs that a connection ended by err before its TLS handshake was complete: the client hears only that it was closed.
// A client that just went away, as a health check does, or amid the handshake, is not logged: that says nothing of its TLS.
func (j *journal) tls(s *session, err error) {
	conn, ok := s.conn.(*tls.Conn)
	if !ok || conn.ConnectionState().HandshakeComplete || hasLeft(err) {
		return
	}
	j.warn("a client cannot speak TLS with us", "client", s.addr(), "id", s.id, "cause", tlsCause(err))
}

// hasLeft says that the client went away, or its machine or network did.
func hasLeft(err error) bool {
	for _, left := range []error{io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ETIMEDOUT, syscall.EHOSTUNREACH} {
		if errors.Is(err, left) {
			return true
		}
	}
	return false
}

// tlsCause is why a TLS handshake failed. A client on OpenSSL that does not trust our certificate says so in an alert that is not
// encrypted, which crypto/tls takes for a record with a wrong MAC.
func tlsCause(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "local error" && strings.HasSuffix(err.Error(), "bad record MAC") {
		return "it does not trust tls_cert, it seems: " + err.Error()
	}
	return err.Error()
}

// warnUnknown logs that an application asks for more than locks. The reply does not say so: it has Redis's text.
func warnUnknown(c *call) {
	s := c.server
	if s.cfg.Upstream == nil && c.session.reader.parser.Authed {
		s.journal.warn("a command was refused: without an upstream, only locks are served", "command", clip(c.args[0], echoMax),
			"client", c.session.addr(), "id", c.session.id)
	}
}

// script logs that a script was refused: some libraries try again for ever, and tell nobody.
func (j *journal) script(s *session, refused Reply) {
	j.warn("a script was refused: masters cannot vote on it", "client", s.addr(), "id", s.id, "reply", refused)
}

// split refuses a request because of what lock_keys matches: some of its names and not others, or one that is no lock.
// Frameworks take such an error for something else, and go on without a word, so that the log has to tell.
func split(c *call, refused Error) Error { return splitAs(c, refused, string(refused)) }

// splitAs is split with another text for the log: the reply may have a token in it, which looks like a lock's name.
func splitAs(c *call, refused Error, told string) Error {
	s := c.server
	n := s.counters.split.Add(1)
	s.journal.warn("a request was refused because of what lock_keys matches", "client", c.session.addr(), "id", c.session.id,
		"error", told, "all_so_far", n)
	return refused
}

// upstreamFailed counts a command for the upstream that failed. The log is told, unless it knows from the watcher that the upstream is
// gone. The watcher may have noticed nothing: it asks over a connection that it has, while others break, or cannot be made.
func (j *journal) upstreamFailed(up *upstream.Redis, cause string) {
	j.counters.upstreamErrors.Add(1)
	if up.Cause() == "" {
		j.warn("a command for the upstream failed", "upstream", up.Addr(),
			"cause", strings.TrimPrefix(cause, "upstream "+up.Addr()+": "))
	}
}
