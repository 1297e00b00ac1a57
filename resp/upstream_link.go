package resp

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"

	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
)

// A link is a session's own connection to the upstream, made when a command needs the upstream. The session's reader writes requests to the
// link. The link's relay (upstream_relay.go) takes the replies to the client.
//
// In the session's queue, a run of commands sent upstream is one slot, ready when all replies of the run are written: replies keep their
// order, and a run costs no more than its bytes. expected lists all requests sent upstream, the client's and the proxy's own, in the order
// of the upstream's answers.
type link struct {
	session *session
	uplink  *uplink
	done    chan struct{} // closed when the relay has ended, or the connection could not be made

	// Only the reader uses these.
	out      *[]byte           // requests not written yet, borrowed from outs; nil: nothing is gathered
	greeting upstream.Greeting // the client's protocol, database and name, as last sent to the upstream
	relied   bool              // uplink.relies, before the link was made
	moving   *moving           // the SELECT under way; nil: none
	mayWait  bool              // a command sent may wait at the upstream, so the upstream was asked for id
	sentAll  bool              // nothing more is sent

	// uplink.mu guards the fields from here on.
	conn     net.Conn           // nil: being made, or failed is set. Reader and relay, once they have seen conn, need no lock
	giveUp   context.CancelFunc // ends the attempt to connect
	failed   error              // why the attempt to connect failed; dead is set, too
	expected []expectation      // the replies owed by the upstream, in order
	stateful bool               // MULTI, WATCH, a subscription or MONITOR: the client could not go on over another connection
	relies   bool               // uplink.relies, as of the last write
	dead     bool               // the link was lost or dropped: the next command needs another link
	id       int64              // the connection's id at the upstream; 0: not known yet, or no command may wait

	// Only the relay uses these. pushes: the upstream has confirmed RESP3, and messages are pushes. Without pushes, messages look like
	// replies, and confirmed says whether messages may come.
	pushes    bool
	confirmed struct{ channels, shards bool }
}

// An expectation is a group of replies owed by the upstream, and says where the replies go.
type expectation struct {
	slot *slot // slot.left replies go to the client when the slot has its turn
	// If slot is nil, n replies are kept from the client. take, if not nil, gets all of them together after the last. If the first reply is
	// an error, take gets the error alone, and no more replies are expected.
	n        int
	take     func(replies []byte)
	confirms bool // the replies confirm subscriptions
}

// errBroken is the cause when a link breaks between the reader's look at the link and the request.
var errBroken = errors.New("the connection was lost")

// connect makes the connection, and starts the relay on a goroutine of its own, so that an idle relay has a small stack.
func (l *link) connect(ctx context.Context, g upstream.Greeting) {
	s, relays := l.session, false
	defer func() {
		if !relays {
			close(l.done)
		}
	}()
	defer s.recovered("upstream connection")
	conn, err := s.server.cfg.Upstream.DialPatiently(ctx, g)
	if late := l.made(conn, err); err == nil && (late || s.replies.isGone()) {
		upstream.BreakOff(conn)
	}
	s.replies.kickUnlessEnding()
	if err == nil {
		relays = true
		go l.relay()
	}
}

// made notes the outcome of the attempt to connect. late says that the link was dropped meanwhile.
func (l *link) made(conn net.Conn, err error) (late bool) {
	l.uplink.mu.Lock()
	defer l.uplink.mu.Unlock()
	l.giveUp()
	l.giveUp = nil
	late = l.dead
	l.conn, l.failed, l.dead = conn, err, late || err != nil
	return late
}

// agree brings the upstream up to date with the client's protocol, database and name.
func (l *link) agree() {
	before, g := l.greeting, l.uplink.greeting()
	l.greeting.RESP3, l.greeting.Name = g.RESP3, g.Name
	if g.RESP3 != before.RESP3 {
		proto := "2"
		if g.RESP3 {
			proto = "3"
		}
		l.ask(expectation{n: 1, take: func(reply []byte) {
			l.pushes = g.RESP3
			l.demand(reply)
		}}, "HELLO", proto)
	}
	if g.DB != before.DB {
		l.move(g.DB)
	}
	if g.Name != before.Name {
		l.ask(expectation{n: 1}, "CLIENT", "SETNAME", g.Name)
	}
}

// demand ends the session if the upstream refuses: the requests behind the refused request would mean something else.
func (l *link) demand(reply []byte) {
	if reply[0] == '-' {
		l.uplink.lost(errorText(reply))
	}
}

// takeID notes the connection's id at the upstream.
func (l *link) takeID(reply []byte) {
	id, _ := wire.ParseInt(strings.TrimRight(string(reply[1:]), "\r\n"))
	if reply[0] != ':' {
		id = 0
	}
	l.uplink.mu.Lock()
	l.id = id
	l.uplink.mu.Unlock()
}

// errorText is the text of an upstream's error.
func errorText(reply []byte) string { return strings.TrimRight(string(reply[1:]), "\r\n") }

// ask sends a request whose replies the client does not see.
func (l *link) ask(e expectation, args ...string) {
	if !l.expect(e) {
		l.uplink.lost(errBroken.Error())
	}
	l.send(args)
}

// expect adds an expectation. expect returns false if the link was lost.
func (l *link) expect(e expectation) bool {
	l.uplink.mu.Lock()
	defer l.uplink.mu.Unlock()
	l.expected = append(l.expected, e)
	return !l.dead
}

// met drops the first expectation. The others are not moved: there may be many. uplink.mu is held.
func (l *link) met() {
	first, rest := l.expected[:0], l.expected[1:]
	l.expected[0] = expectation{}
	if len(rest) == 0 {
		rest = first // reuse the room
	}
	l.expected = rest
}

// sendSize is the number of gathered bytes at which requests are written before a flush.
const sendSize = 64 << 10

// outs are buffers for gathered requests, borrowed until the requests are written: an idle link has no buffer.
var outs = sync.Pool{New: func() any { return new([]byte) }}

// send gathers a request; flush writes the request. send never writes a request's last bytes: only flush notes the state left at the
// upstream by the request. Were the request whole before the note, a broken link might not be missed.
func (l *link) send(args []string) {
	if l.out == nil {
		l.out = outs.Get().(*[]byte)
	}
	b := wire.AppendHeader(*l.out, '*', len(args))
	for _, arg := range args {
		if len(b) >= sendSize {
			b = l.write(b)
		}
		b = wire.AppendHeader(b, '$', len(arg))
		for len(arg) > sendSize {
			b = l.write(append(b, arg[:sendSize]...))
			arg = arg[sendSize:]
		}
		b = append(append(b, arg...), '\r', '\n')
	}
	*l.out = b
}

// flush writes the gathered requests.
func (l *link) flush() {
	if l.out == nil {
		return
	}
	*l.out = l.write(*l.out)
	if cap(*l.out) <= 2*sendSize {
		outs.Put(l.out)
	}
	l.out = nil
}

// write writes b, and returns b emptied. For an upstream that does not read, write waits Limits.Write at most. First, write notes the state
// that the client has at the upstream once b is written.
func (l *link) write(b []byte) []byte {
	l.noteState()
	if len(b) == 0 {
		return b
	}
	s := l.session
	s.reader.line.Leave()
	l.uplink.sending.Store(s.server.clock.Load())
	_, err := l.conn.Write(b)
	l.uplink.sending.Store(0)
	if err != nil {
		upstream.BreakOff(l.conn) // the relay notices, and decides
	}
	return b[:0]
}

// pushRelayed gives the command its place in the queue. pushRelayed returns false if the session is ending.
func (l *link) pushRelayed() bool {
	placed, lost := l.place()
	if lost {
		l.uplink.lost(errBroken.Error())
	}
	return placed
}

// place is pushRelayed. lost says that the link was lost since the reader's last look.
func (l *link) place() (placed, lost bool) {
	l.uplink.mu.Lock()
	defer l.uplink.mu.Unlock()
	if l.dead {
		return false, true
	}
	var last *slot
	if n := len(l.expected); n > 0 {
		last = l.expected[n-1].slot
	}
	fresh := l.session.newReply()
	fresh.left, fresh.weight, fresh.from = 1, 1, relayed
	sl := l.session.replies.owe(last, fresh)
	if sl == fresh {
		l.expected = append(l.expected, expectation{slot: fresh})
	} else {
		fresh.recycle()
	}
	return sl != nil, false
}

func (l *link) noteState() {
	u, s := l.uplink, l.session
	stage := s.transaction.stage
	stateful := stage == watchingThere || stage == queuingThere || u.monitors.Load()
	for _, t := range s.subscriptions.all() {
		stateful = stateful || s.server.router.isThere(t)
	}
	u.mu.Lock()
	l.relies, l.stateful = u.relies, stateful
	u.mu.Unlock()
}

// close ends the connection, or the attempt to connect. uplink.mu is held.
func (l *link) close() {
	switch {
	case l.conn != nil:
		upstream.BreakOff(l.conn)
	case l.giveUp != nil:
		l.giveUp()
	}
}
