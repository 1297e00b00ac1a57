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

// A link is a session's own connection to the upstream, made when a command needs it. The session's reader writes requests
// to it, and its relay (upstream_relay.go) takes the replies to the client.
//
// In the session's queue a run of commands that went upstream is one slot, which is ready when all their replies have
// been written: so replies keep their order, and a run costs no more than its bytes. What was sent upstream, by the
// client's will or by ours, stands in expected, in the order in which the upstream will answer it.
type link struct {
	session *session
	uplink  *uplink
	done    chan struct{} // closed when the relay has ended, or there is none as the connection could not be made

	// Only the reader uses these.
	out      *[]byte           // what is not written yet, borrowed from outs; nil: nothing is gathered
	greeting upstream.Greeting // the protocol, database and name of the client, as the upstream was told
	relied   bool              // uplink.relies, before the link was made
	moving   *moving           // the SELECT under way; nil: none
	mayWait  bool              // some command that was sent may have to wait for something, and the upstream was asked for id
	sentAll  bool              // nothing more is sent

	// uplink.mu guards what follows.
	conn     net.Conn           // nil: it is being made, or failed is set. The reader and the relay, which have seen it, need not lock
	giveUp   context.CancelFunc // ends the attempt to make it
	failed   error              // why it could not be made; dead is set, too
	expected []expectation      // in order
	stateful bool               // MULTI, WATCH, a subscription or MONITOR: the client could not go on over another connection
	relies   bool               // uplink.relies, as of the last write
	dead     bool               // it was lost, or dropped: the next command needs another
	id       int64              // of the connection at the upstream; 0: not known yet, or no command may have to wait

	// Only the relay uses these. pushes: the upstream has confirmed RESP3, and messages are pushes. Else they look like replies,
	// and confirmed says whether there may be any.
	pushes    bool
	confirmed struct{ channels, shards bool }
}

// An expectation is of replies that the upstream owes, and says what is to become of them.
type expectation struct {
	slot *slot // as many replies as it lacks go to the client when this slot has its turn
	// If slot is nil, n replies are kept from the client. take, if not nil, gets them together when all have come. If the
	// first is an error, take gets that alone, and no more are expected.
	n        int
	take     func(replies []byte)
	confirms bool // they confirm subscriptions
}

// errBroken is why nothing could be sent over a connection that was there a moment ago.
var errBroken = errors.New("the connection was lost")

// connect makes the connection, and begins to relay: on another goroutine, as an idle one is to have a small stack.
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

// made notes the outcome of the attempt to connect, and says whether the link was dropped meanwhile.
func (l *link) made(conn net.Conn, err error) (late bool) {
	l.uplink.mu.Lock()
	defer l.uplink.mu.Unlock()
	l.giveUp()
	l.giveUp = nil
	late = l.dead
	l.conn, l.failed, l.dead = conn, err, late || err != nil
	return late
}

// agree gives the link the protocol, database and name of the client, where these have changed.
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

// demand ends the session if the upstream refuses: the requests behind this one would mean something else.
func (l *link) demand(reply []byte) {
	if reply[0] == '-' {
		l.uplink.lost(errorText(reply))
	}
}

// takeID takes the connection's id at the upstream.
func (l *link) takeID(reply []byte) {
	id, _ := wire.ParseInt(strings.TrimRight(string(reply[1:]), "\r\n"))
	if reply[0] != ':' {
		id = 0
	}
	l.uplink.mu.Lock()
	l.id = id
	l.uplink.mu.Unlock()
}

// errorText is what an error that the upstream replied says.
func errorText(reply []byte) string { return strings.TrimRight(string(reply[1:]), "\r\n") }

// ask sends a request of which the client does not see the replies.
func (l *link) ask(e expectation, args ...string) {
	if !l.expect(e) {
		l.uplink.lost(errBroken.Error())
	}
	l.send(args)
}

// expect notes what the upstream is going to owe. It returns false if the link was lost.
func (l *link) expect(e expectation) bool {
	l.uplink.mu.Lock()
	defer l.uplink.mu.Unlock()
	l.expected = append(l.expected, e)
	return !l.dead
}

// met drops the first expectation. It does not move the others: there may be many. uplink.mu is held.
func (l *link) met() {
	first, rest := l.expected[:0], l.expected[1:]
	l.expected[0] = expectation{}
	if len(rest) == 0 {
		rest = first // its room is for the next
	}
	l.expected = rest
}

// sendSize is how many bytes of requests are gathered before they are written even if more are to come.
const sendSize = 64 << 10

// outs are borrowed to gather requests in, until they are written: an idle link has none.
var outs = sync.Pool{New: func() any { return new([]byte) }}

func borrowOut() *[]byte {
	b := outs.Get().(*[]byte)
	*b = (*b)[:0]
	return b
}

func returnOut(b *[]byte) {
	if cap(*b) <= 2*sendSize {
		outs.Put(b)
	}
}

// send gathers a request. flush writes it. Its end is not written before: only then is it noted what the request leaves at the
// upstream, and a link that breaks before that would not be missed.
func (l *link) send(args []string) {
	if l.out == nil {
		l.out = borrowOut()
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

// flush writes what is gathered.
func (l *link) flush() {
	if l.out == nil {
		return
	}
	l.write(*l.out)
	returnOut(l.out)
	l.out = nil
}

// write waits for an upstream that does not read, for Limits.Write at most. It returns b, empty. First it notes whether the client
// has state at the upstream, as by what is written.
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
		upstream.BreakOff(l.conn) // the relay finds out what that means
	}
	return b[:0]
}

// pushRelayed gives the command its place in the queue. It returns false if the session is ending.
func (l *link) pushRelayed() bool {
	placed, lost := l.place()
	if lost {
		l.uplink.lost(errBroken.Error())
	}
	return placed
}

// place is pushRelayed; lost says that the link was lost since the reader looked.
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

// close ends the connection, or the attempt to make it. uplink.mu is held.
func (l *link) close() {
	switch {
	case l.conn != nil:
		upstream.BreakOff(l.conn)
	case l.giveUp != nil:
		l.giveUp()
	}
}
