package resp

import (
	"errors"
	"net"
	"sync/atomic"
	"time"

	"lockproxy/resp/upstream"
)

// Sharing. A command that leaves no state at the upstream goes there over a connection that all clients share, a trunk:
// so many requests are read and written in one go, here and there. The first command that needs a connection of its own gives the
// session a link (upstream_link.go), once the replies to earlier commands have come. The session keeps the link until the session
// ends or RESET is sent.
//
// In the session's queue the shared commands of one reading are one slot. The trunk brings their replies there, and the
// session's writer writes them: so a client that does not read holds nobody up. A client that asks for much, or for
// many things ahead of the replies, or does not read them, gets a link, too.

// When a session gets a link: sharedBytes of a request, or of replies to one slot, or sharedAhead replies owed, or more than
// sharedUnread that the client does not read.
const (
	sharedBytes  = 64 << 10
	sharedAhead  = 256
	sharedUnread = 1 << 20
)

// sharedTogether is how many commands may be one slot: their replies are written when all have come. A slot keeps a buffer of
// rawKeep for replies.
const (
	sharedTogether = 64
	rawKeep        = 1 << 10
)

// stallMax is how long a client may hold up the others by reading slowly what is too large to be gathered. Then its connection
// ends. For slowFor after that, or after it has held them up for stallNoted, clients that connect from its host get a link at once:
// over a trunk, the client would ask for the same again, and hold up the others, and perhaps never get it. slowMax bounds how many
// hosts are remembered.
const (
	stallMax   = time.Second
	stallNoted = stallMax / 4
	slowFor    = time.Hour
	slowMax    = 1024
)

// sharing is a session's part in a trunk. Only the reader uses it, except wantsLink.
type sharing struct {
	trunk    *upstream.Trunk
	gathered *slot   // of the commands that are not pushed yet
	requests *[]byte // the text of these commands, borrowed from outs
	wrote    bool    // commands have gone over a trunk since the last WAIT

	wantsLink atomic.Bool // it is to have a link
}

// mayShare says whether the command may go over a trunk.
func (c *call) mayShare() bool {
	return c.sharesTrunk() && c.parser.size <= sharedBytes && c.server.commandsThere().Stateless(c.args)
}

// sharesTrunk says whether the session has no need of a link, so far.
func (s *session) sharesTrunk() bool {
	return s.server.cfg.UpstreamShared && s.link == nil && !s.wantsLink.Load()
}

// share sends the command over a trunk. It returns wait while there is no room, and nil if the session gets a link instead.
func (c *call) share() Reply {
	s := c.session
	if reply := s.joinTrunk(); reply != nil || s.wantsLink.Load() {
		return reply
	}
	s.mu.Lock()
	if s.shares >= sharedAhead || s.outBytes > sharedUnread {
		s.wantsLink.Store(true)
		s.mu.Unlock()
		return nil
	}
	if sl := s.gathered; sl == nil || sl != s.tail || sl.mute != s.mute.current || sl.left >= sharedTogether {
		s.mu.Unlock()
		s.pushShared()
		if s.trunk.Full(s) {
			return wait
		}
		s.mu.Lock()
		if !s.beginRun() {
			s.mu.Unlock()
			return later // the session is ending
		}
	}
	s.addToRun()
	s.mu.Unlock()
	b := upstream.AppendCommand(*s.requests, c.args...)
	*s.requests = b
	s.wrote = true
	c.server.counters.forwarded.Add(1)
	if len(b) >= sendSize {
		s.pushShared()
	}
	return later
}

// joinTrunk makes sure that the session has the trunk of its database and protocol. It leaves another one only when all
// replies have come.
func (s *session) joinTrunk() Reply {
	g := upstream.Greeting{RESP3: s.resp3, DB: s.db, Name: sharedName}
	if s.trunk != nil && s.trunk.Greeting == g && s.trunk.Fit() {
		return nil
	}
	if !s.repliesDone() {
		return wait
	}
	t, err := s.server.trunk(g)
	switch {
	case errors.Is(err, upstream.ErrManyTrunks):
		s.wantsLink.Store(true)
		return nil
	case err != nil:
		return s.server.upstreamFailed(err)
	}
	s.trunk = t
	return nil
}

// sharedName is the name of trunks at the upstream.
const sharedName = "lockproxy-shared"

func (s *Server) trunk(g upstream.Greeting) (*upstream.Trunk, error) {
	return s.cfg.Upstream.Trunk(g, s.cfg.Limits.Write, s.log)
}

// beginRun makes the slot of commands that follow. s.mu is held.
func (s *session) beginRun() bool {
	sl := s.newReply()
	sl.from = gathered
	if !s.push(sl) {
		sl.recycle()
		return false
	}
	s.gathered = sl
	s.requests = borrowOut()
	return true
}

// addToRun counts a command in. s.mu is held.
func (s *session) addToRun() {
	sl, size := s.gathered, s.parser.size
	sl.left++
	s.shares++
	sl.weight++
	s.depth.Add(1)
	sl.size += size
	s.inBytes.Add(int64(size))
	if s.reserve >= countedFrom {
		sl.reserve += s.reserve
		s.reserve = 0
	}
}

// pushShared gives what is gathered to the trunk. If that has ended since joinTrunk, so does the session.
func (s *session) pushShared() {
	sl, requests := s.gathered, s.requests
	if sl == nil {
		return
	}
	s.gathered, s.requests = nil, nil
	if !s.trunk.Push(*requests, sl.left, sl) { // nobody else changes left before the slot is pushed
		sl.Lost(errBroken)
	}
	returnOut(requests)
}

// Replies takes what the trunk brings, and does not wait for the client unless it is too much to be gathered.
func (sl *slot) Replies(b []byte, n int) {
	if !sl.gathers(b, n) {
		sl.stream(b, n)
	}
}

// gathers gathers replies for the writer. It returns false if they have to be streamed.
func (sl *slot) gathers(b []byte, n int) bool {
	s := sl.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return true
	}
	if sl.from == gathered && !s.gather(sl, b) {
		sl.from = relayed
		s.wantsLink.Store(true)
	}
	if sl.from == relayed {
		return false
	}
	s.shares -= n
	if sl.left -= n; sl.left == 0 {
		s.tellReady(sl)
	}
	return true
}

// gather adds to what waits for the client, and says whether that is within the limits. s.mu is held.
func (s *session) gather(sl *slot, b []byte) bool {
	if sl.mute {
		return true
	}
	if s.countOutput(sl, len(b)) != "" {
		return false
	}
	sl.raw = append(sl.raw, b...)
	if sl.output > sharedBytes {
		s.wantsLink.Store(true)
	}
	return true
}

// stream writes to the client what cannot be gathered, when it is the slot's turn. Meanwhile the trunk waits, and all its clients.
func (sl *slot) stream(b []byte, n int) {
	s := sl.session
	begun := time.Now()
	end := time.AfterFunc(stallMax-sl.stalled, func() {
		s.noteSlow()
		s.kill("output limit reached: the client reads too slowly to share a connection; when it connects again it has its own")
	})
	defer end.Stop()
	s.mu.Lock()
	err := s.takeTurn(sl)
	raw := sl.raw
	sl.raw = nil
	s.mu.Unlock()
	if err != nil {
		return
	}
	for _, part := range [][]byte{raw, b} {
		if _, err := s.conn.Write(part); err != nil {
			s.hangUp(err.Error())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sl.stalled += time.Since(begun)
	if s.gone {
		return
	}
	s.shares -= n
	if sl.left -= n; sl.left == 0 {
		if sl.stalled >= stallNoted {
			s.noteSlow()
		}
		s.popRelayed(sl)
		s.giveTurn()
	}
}

func (s *session) noteSlow() { s.server.slow.Add(s.host(), time.Now()) }

// isSlow says whether the session is to have a link from the start.
func (s *session) isSlow() bool {
	if s.server.slow.Len() == 0 {
		return false // the common case costs nothing
	}
	at, ok := s.server.slow.Get(s.host())
	return ok && time.Since(at) < slowFor
}

func (s *session) host() string {
	host, _, _ := net.SplitHostPort(s.addr())
	return host
}

// Lost ends the session, whose client waits for replies that will not come.
func (sl *slot) Lost(cause error) { sl.session.upstreamLost(cause.Error()) }

// settleWrites is called before a command goes over the link. WAIT waits for the writes of its own connection only. So before it,
// something is written over the link, which comes after all that the client wrote over a trunk: a message, that no pattern of a
// subscriber's matches where the upstream has such (from Redis 7 on). If the upstream refuses it, WAIT would count too many replicas, so
// the session ends. Inside MULTI, WAIT does not wait.
func (c *call) settleWrites(l *link) {
	if !c.wrote || c.transaction.stage == queuingThere || !equalFold(c.args[0], "wait") && !equalFold(c.args[0], "waitaof") {
		return
	}
	publish := "PUBLISH"
	if c.server.commandsThere().Has("spublish") {
		publish = "SPUBLISH"
	}
	l.ask(expectation{n: 1, take: func(reply []byte) {
		if reply[0] == '-' {
			l.session.upstreamLost(publish + " " + waitChannel + ", which lockproxy sends before WAIT: " + errorText(reply))
		}
	}}, publish, waitChannel, "")
	c.wrote = false
}

// waitChannel is for messages that nobody needs to hear.
const waitChannel = reservedPrefix + "wait"
