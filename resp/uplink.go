package resp

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"lockproxy/resp/upstream"
)

// An uplink is a session's way to the upstream: the present link, and state that outlives a link. Only the session's reader makes and drops
// links.
type uplink struct {
	session  *session
	relies   bool         // for the reader alone: the client counts on something left at the upstream, such as a script
	sending  atomic.Int64 // when the write to the upstream under way began, 0 if there is none; server clock, ms
	monitors atomic.Bool  // MONITOR was sent

	mu   sync.Mutex // guards the link and its state; before replies.mu
	link *link      // the reader sets it, and may read it without mu
}

// connected returns the session's link, in the client's database and protocol. The reader waits until the link is made. If there can be no
// link, connected returns the reply.
func (u *uplink) connected() (*link, Reply) {
	for {
		if u.link != nil && u.link.sentAll {
			<-u.link.done
		}
		conn, dead, failed := u.state()
		switch {
		case failed != nil:
			u.drop()
			return nil, u.session.server.upstreamFailed(failed)
		case dead:
			u.drop()
		case conn != nil:
			return u.ready()
		case u.link == nil:
			if !u.session.reader.await(u.session.replies.repliesDone) {
				return nil, errEnding
			}
			u.make()
		default:
			made := func() bool {
				conn, dead, _ := u.state()
				return conn != nil || dead
			}
			if !u.session.reader.await(made) {
				return nil, errEnding
			}
		}
	}
}

// ready is connected for a link that is made.
func (u *uplink) ready() (*link, Reply) {
	l := u.link
	if l.relied {
		u.lost("it was away, and what the client left there may be gone")
		return nil, errEnding
	}
	l.agree()
	return l, l.moved()
}

// state returns the link's connection, nil until made; whether the link is dead; and why the connection failed.
func (u *uplink) state() (conn net.Conn, dead bool, failed error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.link == nil {
		return nil, false, nil
	}
	return u.link.conn, u.link.dead, u.link.failed
}

// live returns the link, if made and not known to have ended; else nil.
func (u *uplink) live() *link {
	if conn, dead, _ := u.state(); conn == nil || dead {
		return nil
	}
	return u.link
}

// make starts to connect. Meanwhile the reader waits, and goes on reading, to notice a hang-up of the client: a busy upstream may be silent
// for long.
func (u *uplink) make() {
	g := u.greeting()
	ctx, giveUp := context.WithCancel(context.Background())
	l := &link{session: u.session, uplink: u, giveUp: giveUp, done: make(chan struct{}), greeting: g, pushes: g.RESP3, relied: u.relies}
	u.mu.Lock()
	u.link = l
	u.mu.Unlock()
	if u.session.replies.isGone() {
		giveUp()
	}
	u.session.server.counters.links.Add(1)
	go l.connect(ctx, g)
}

// drop ends the link, of which nothing is expected any more.
func (u *uplink) drop() {
	l := u.link
	if l == nil {
		return
	}
	u.mu.Lock()
	l.dead = true
	l.close()
	u.mu.Unlock()
	<-l.done
	u.session.server.counters.links.Add(-1)
	u.mu.Lock()
	u.link = nil
	u.mu.Unlock()
	u.monitors.Store(false)
}

// close ends the link's connection, if there is a link.
func (u *uplink) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.link != nil {
		u.link.close()
	}
}

// flush writes the requests gathered for the upstream.
func (u *uplink) flush() {
	if u.link != nil {
		u.link.flush()
	}
}

func (u *uplink) greeting() upstream.Greeting {
	return upstream.Greeting{RESP3: u.session.identity.resp3, DB: u.session.identity.db, Name: u.session.identity.name}
}

// lost ends the session, because the client waits for replies that will not come. The log has one line for all such sessions.
func (u *uplink) lost(cause string) {
	if u.session.replies.isGone() {
		return
	}
	u.session.server.journal.upstreamFailed(u.session.server.cfg.Upstream, cause)
	u.session.hangUp("upstream lost: " + cause)
}

// endBlocked shuts down the link's sending side, after the client's. Commands blocked at the upstream end by that; other commands are
// answered.
func (u *uplink) endBlocked() {
	l := u.link
	if l == nil || !l.mayWait || l.sentAll {
		return
	}
	u.mu.Lock()
	waits := len(l.expected) > 0
	u.mu.Unlock()
	if !waits {
		return
	}
	l.sentAll = true
	if conn, ok := l.conn.(interface{ CloseWrite() error }); ok {
		_ = conn.CloseWrite()
	} else {
		_ = l.conn.Close()
	}
}

// A moving is a SELECT sent over a link. The reader waits for the reply, because the upstream may refuse: while a script runs, or where the
// upstream has fewer databases. After a refusal the upstream would run later commands in the old database. uplink.mu guards reply.
type moving struct {
	db    int
	reply []byte
}

// move sends SELECT, unless a SELECT is under way.
func (l *link) move(db int) {
	if l.moving != nil {
		return
	}
	m, s := &moving{db: db}, l.session
	l.moving = m
	l.ask(expectation{n: 1, take: func(reply []byte) {
		l.uplink.mu.Lock()
		m.reply = reply
		l.uplink.mu.Unlock()
		s.replies.kick()
	}}, "SELECT", strconv.Itoa(db))
}

// moved waits for the upstream's reply to the SELECT under way, if any. A refusal is returned.
func (l *link) moved() Reply {
	m, s := l.moving, l.session
	if m == nil {
		return nil
	}
	replied := func() bool {
		l.uplink.mu.Lock()
		defer l.uplink.mu.Unlock()
		return m.reply != nil
	}
	if !s.reader.await(replied) {
		return errEnding
	}
	l.moving = nil
	if m.reply[0] == '-' {
		return Error(errorText(m.reply))
	}
	l.greeting.DB = m.db
	return nil
}

// selectThere moves the link to the client's new database before the client's SELECT is answered, and returns the upstream's refusal.
// Without a link there is nothing to do: the next link begins in the new database, or not at all.
func selectThere(c *call) Reply {
	l := c.session.uplink.live()
	if l == nil || l.sentAll || len(c.args) != 2 {
		return nil
	}
	db, refused := parseDB(c, c.args[1])
	if refused != nil {
		return nil // runSelect gives the error
	}
	if db != l.greeting.DB {
		l.move(db)
	}
	return l.moved()
}
