package resp

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"

	"lockproxy/quorum/pubsub"
)

// A session is one client connection: its parts, joined by a few methods, and two goroutines. The reader finds and runs commands. The
// writer writes the replies. The replies stand between the two. ending.go has the ways in which a session ends.
type session struct {
	server *Server
	conn   net.Conn
	id     int64
	since  int64        // when the session began; server clock, ms
	active atomic.Int64 // when the client last sent something; server clock, ms

	identity identity
	memory   account
	reader   reader
	replies  replies
	writer   writer
	ending   ending

	subscriptions subscriptions
	holds         holds
	waits         waits

	// Only the reader's goroutine uses these.
	call        call
	reserve     int // bytes of the memory budget reserved for this command, until the slot takes the bytes over
	mute        muting
	caching     bool // the client is going to cache the next reply; see CLIENT CACHING
	transaction transaction

	uplink uplink
}

func newSession(srv *Server, conn net.Conn, id int64) *session {
	s := &session{server: srv, conn: conn, id: id, since: srv.clock.Load()}
	s.active.Store(s.since)
	s.memory = account{session: s, relief: &srv.relief, budget: &srv.relief.memory}
	s.writer = writer{session: s, replies: &s.replies}
	s.replies.init(srv, conn, &s.memory, s.kill)
	s.subscriptions = subscriptions{messages: srv.messages, memory: &s.memory, replies: &s.replies, identity: &s.identity}
	s.holds = holds{server: srv, memory: &s.memory, replies: &s.replies, client: s}
	s.reader.init(s)
	s.uplink.session = s
	s.transaction.memory, s.transaction.most = &s.memory, srv.cfg.Limits.Input
	s.call.session, s.call.server = s, srv
	s.resetIdentity()
	if secure, ok := conn.(*tls.Conn); ok {
		srv.relief.strangers.arrived(s)
		if m, ok := secure.NetConn().(*metered); ok {
			s.reader.wire, m.account, m.counted = m, &s.memory, &s.reader.in.counted
		}
	}
	return s
}

// run serves the connection until its end. Both goroutines have ended when run returns.
func (s *session) run() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.writer.run()
	}()
	s.reader.run()
	s.setGone()
	s.subscriptions.end()
	s.waits.cancel()
	s.reader.line.Leave()
	<-done
	s.uplink.drop()
	//mutant: a held lock is not released with its connection
	s.holds.release()
	s.server.journal.over(s)
	_ = s.conn.Close()
	s.reader.wire.delivered()
	s.reader.in.release()
	s.memory.give(s.reserve)
	s.memory.drop(nameSize(s.identity.name))
	s.transaction.end()
	s.server.relief.strangers.left(s)
}

// newReply returns a slot for the reply to the reader's command, with the client's protocol and CLIENT REPLY mode of now.
func (s *session) newReply() *slot {
	sl := newSlot(&s.replies)
	sl.resp3, sl.mute = s.identity.resp3, s.mute.current
	return sl
}

// answer queues a reply known at once. The writer is woken later, when all commands that arrived together have run.
func (s *session) answer(reply Reply) { s.answerBy(s.newReply(), reply) }

// answerBy is answer with the slot given.
func (s *session) answerBy(sl *slot, reply Reply) {
	sl.out.reply, sl.weight = reply, 1
	if spent := s.replies.add(sl, reply.Size()); spent != "" {
		s.kill(spent)
	}
}

// resetIdentity gives the session the identity of a new client.
func (s *session) resetIdentity() {
	cfg := &s.server.cfg
	s.reader.parser.Authed = len(cfg.Users) == 0
	s.memory.drop(nameSize(s.identity.name))
	if !s.reader.parser.Authed {
		s.server.relief.strangers.arrived(s)
	}
	s.identity.reset(cfg, s.server.clock.Load())
}

// describe is the session's line of CLIENT LIST, in Redis's format. Fields that mean nothing here are zero.
func (s *session) describe() string {
	i, queue, subscribed := &s.identity, &s.replies.backlog, s.subscriptions.perKind()
	i.mu.Lock()
	defer i.mu.Unlock()
	now := s.server.clock.Load()
	cmd := "NULL"
	if last := i.last.Load(); last != nil {
		cmd = *last
	}
	kind := "" // P for a client with subscriptions, N for others
	if s.subscriptions.any() {
		kind = "P"
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%v fd=0 name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=%d multi=-1 qbuf=0 "+
		"qbuf-free=0 argv-mem=%d multi-mem=0 rbs=0 rbp=0 obl=0 oll=%d omem=%d tot-mem=0 events=r cmd=%s user=%s redir=-1 resp=%d\n",
		s.id, s.addr(), s.conn.LocalAddr(), i.name, (now-s.since)/1000, (now-s.active.Load())/1000, cmp.Or(kind, "N"), i.db,
		subscribed[pubsub.Channel], subscribed[pubsub.Pattern], subscribed[pubsub.Shard],
		queue.inBytes.Load(), queue.depth.Load(), queue.outBytes.Load(), cmd, i.user, i.protocol())
}

func (s *session) addr() string { return s.conn.RemoteAddr().String() }

// introduce makes a stranger a client: the stranger has logged in, where users are configured, and completed the TLS handshake, where TLS
// is used.
func (s *session) introduce() {
	s.memory.move(&s.server.relief.memory)
	s.server.relief.strangers.left(s)
}
