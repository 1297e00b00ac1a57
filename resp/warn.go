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

// A seldom limits repeated log lines: each line appears at most once in seldomEvery.
type seldom struct {
	mu   sync.Mutex       // guards told
	told map[string]int64 // by the line's text; there are few texts. The server's clock, ms
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

// kills counts the connections killed by the proxy, by cause. The causes are few.
type kills struct {
	mu sync.Mutex // guards by
	by map[string]uint64
}

// count counts a kill, and returns the number so far for this cause.
func (k *kills) count(cause string) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil {
		k.by = map[string]uint64{}
	}
	k.by[cause]++
	return k.by[cause]
}

// A journal tells the log about clients. Clients come and go, and their errors repeat: most lines are told seldom.
type journal struct {
	log      *slog.Logger
	clock    *atomic.Int64 // the server's, ms
	counters *counters
	told     seldom
	killed   kills

	memoryWarned uint64 // how many refusals for want of memory the log was told of; for the janitor alone
}

// warn logs a warning, unless the same text was logged a short time ago. warn says whether the warning was logged.
func (j *journal) warn(text string, args ...any) bool {
	may := j.told.may(text, j.clock.Load())
	if may {
		j.log.Warn(text, args...)
	}
	return may
}

// ended logs why the proxy ends the connection, unless logged a short time ago, and says whether the cause was logged.
func (j *journal) ended(s *session, cause string) bool {
	count := j.killed.count(cause)
	may := j.told.may(cause, j.clock.Load())
	if may {
		j.log.Info("connection ended", "client", s.addr(), "id", s.id, "cause", cause, "all_so_far", count)
	}
	return may
}

// over logs why a connection has ended, unless the log has the reason already. The level is debug: clients come and go.
func (j *journal) over(s *session) {
	why := s.ending.cause()
	if why != toldWhy && j.log.Enabled(context.Background(), slog.LevelDebug) {
		j.log.Debug("connection ended", "client", s.addr(), "id", s.id, "cause", why)
	}
}

// refused logs two kinds of error reply: a TTL beyond ttl_max, and a script that masters found unfit for a vote. A user of phpredis may see
// neither: phpredis returns false for an error, as for a lock held by another client, so that Laravel's scheduler would skip a job for
// ever.
func (j *journal) refused(s *session, e Error) {
	switch text := string(e); {
	case strings.HasPrefix(text, ttlMaxPrefix), strings.Contains(text, ttlMaxByVote):
		j.warn("a lock was refused: its TTL exceeds ttl_max", "client", s.addr(), "id", s.id, "reply", text)
	case strings.HasPrefix(text, "ERR script ") && strings.Contains(text, notByVote):
		if before, _, found := strings.Cut(text, keyByVote); found {
			text = before + "it uses a key that is not one of its KEYS" // the key's name may be a token, from ARGV
		}
		j.script(s, Error(text))
	}
}

// login logs a failed login, but not each: a password guesser would fill the disk.
func (j *journal) login(s *session) {
	all := j.counters.loginsRefused.Add(1)
	j.warn("login refused", "client", s.addr(), "id", s.id, "all_so_far", all)
}

// memory logs that clients were refused for want of memory since the last such line. Only the janitor calls memory.
func (j *journal) memory(b *budget) {
	all := b.refused.Load()
	if all > j.memoryWarned && j.warn("max_memory is spent: clients are refused", "max_memory", wire.SizeText(int(b.max)), "all_so_far", all) {
		j.memoryWarned = all
	}
}

// tls logs that a connection ended by err before its TLS handshake was complete: the client hears only that the connection was closed. A
// client that just went away, before or amid the handshake, as a health check does, is not logged: such an end says nothing of the client's
// TLS.
func (j *journal) tls(s *session, err error) {
	conn, ok := s.conn.(*tls.Conn)
	if !ok || conn.ConnectionState().HandshakeComplete || hasLeft(err) {
		return
	}
	j.warn("a client cannot speak TLS with us", "client", s.addr(), "id", s.id, "cause", tlsCause(err))
}

// hasLeft says that the client, or its machine or network, went away.
func hasLeft(err error) bool {
	for _, left := range []error{io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ETIMEDOUT, syscall.EHOSTUNREACH} {
		if errors.Is(err, left) {
			return true
		}
	}
	return false
}

// tlsCause is why a TLS handshake failed. A client on OpenSSL that does not trust lockproxy's certificate sends an unencrypted alert, which
// crypto/tls takes for a record with a wrong MAC.
func tlsCause(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "local error" && strings.HasSuffix(err.Error(), "bad record MAC") {
		return "it does not trust tls_cert, it seems: " + err.Error()
	}
	return err.Error()
}

// warnUnknown logs that an application asks for more than locks. The reply has Redis's text, and says nothing of locks.
func warnUnknown(c *call) {
	s := c.server
	if s.cfg.Upstream == nil && c.session.reader.parser.Authed {
		s.journal.warn("a command was refused: without an upstream, only locks are served", "command", clip(c.args[0], echoMax),
			"client", c.session.addr(), "id", c.session.id)
	}
}

// script logs that a script was refused: some libraries try again for ever, without a word.
func (j *journal) script(s *session, refused Reply) {
	j.warn("a script was refused: masters cannot vote on it", "client", s.addr(), "id", s.id, "reply", refused)
}

// split refuses a request because lock_keys matches some of the request's names and not others, or a name must be a lock's and is not.
// Frameworks take such an error for another, and go on without a word, so the log tells of the error.
func split(c *call, refused Error) Error { return splitAs(c, refused, string(refused)) }

// splitAs is split with another text for the log: the reply may have a token that looks like a lock's name.
func splitAs(c *call, refused Error, told string) Error {
	s := c.server
	n := s.counters.split.Add(1)
	s.journal.warn("a request was refused because of what lock_keys matches", "client", c.session.addr(), "id", c.session.id,
		"error", told, "all_so_far", n)
	return refused
}

// upstreamFailed counts a failed command for the upstream. The log is told, unless the watcher has reported the upstream gone. The watcher
// may have noticed nothing: the watcher's own connection may stand while others break, or cannot be made.
func (j *journal) upstreamFailed(up *upstream.Redis, cause string) {
	j.counters.upstreamErrors.Add(1)
	if up.Cause() == "" {
		j.warn("a command for the upstream failed", "upstream", up.Addr(),
			"cause", strings.TrimPrefix(cause, "upstream "+up.Addr()+": "))
	}
}
