package resp

import (
	"bytes"
	"errors"
	"sync"

	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
)

// What a relay reads at once: little while little comes, so that idle clients cost little.
const (
	relaySmall = 4 << 10
	relayLarge = 32 << 10
)

// relayBuffers are the large ones, borrowed while much comes.
var relayBuffers = sync.Pool{New: func() any { b := make([]byte, relayLarge); return &b }}

// capturedMax bounds replies that are kept from the client.
const capturedMax = 4 << 20

var errGone = errors.New("the client is gone")

// A relay takes the upstream's replies to the client as they come, in pieces if they are large, when it is the turn of
// their slot: nothing is gathered but what one read brought. What the client does not take stays with the upstream.
//
// It shares the client's side of the connection with the session's writer: of the two, one writes at a time, and the
// relay keeps the right until a reply is whole.
type relay struct {
	*link
	framer   wire.Framer
	kind     frameKind
	mute     bool // nothing of it is written
	quota    int  // replies that may pass before the queue is looked at again
	captured []byte
	start    int // of the latest frame in captured
}

// A frameKind says what becomes of the frame under way.
type frameKind uint8

const (
	between frameKind = iota
	passing           // a message, which answers nothing
	relaying
	keeping // from the client
)

// relay runs until the connection ends.
func (l *link) relay() {
	defer close(l.done)
	defer l.session.recovered("relay")
	r := &relay{link: l}
	small, large := make([]byte, relaySmall), (*[]byte)(nil) // large is borrowed
	buf, w := small, 0
	for {
		n, err := l.conn.Read(buf[w:])
		w += n
		used, bad := r.pass(buf[:w])
		if bad != nil {
			err = bad
		}
		if err != nil {
			l.lost(err)
			return
		}
		rest := buf[used:w]
		switch {
		case large == nil && w == relaySmall:
			large = relayBuffers.Get().(*[]byte)
			buf = *large
			w = copy(buf, rest)
		case large != nil && w <= relaySmall:
			buf = small
			w = copy(buf, rest)
			relayBuffers.Put(large)
			large = nil
		default:
			w = copy(buf, rest)
		}
	}
}

// pass deals with what came, and returns how many bytes it has used: it leaves the beginning of a frame that is too short to tell
// what the frame is.
func (r *relay) pass(b []byte) (int, error) {
	used := 0
	for used < len(b) {
		if r.kind == between {
			told, err := r.begin(b[used:])
			if !told || err != nil {
				return used, err
			}
		}
		var n int
		var err error
		if r.kind == keeping {
			n, err = r.keep(b[used:])
		} else {
			n, err = r.write(b[used:])
		}
		used += n
		if err != nil {
			return used, err
		}
	}
	return used, nil
}

// begin finds out what the frame at the beginning of b is, and waits for its turn. It returns false if b is too short.
func (r *relay) begin(b []byte) (bool, error) {
	aside, confirms, more := r.isAside(b)
	drained, short := r.drained(b)
	if more || short {
		return false, nil
	}
	replies := &r.session.replies
	first, owed := r.next()
	switch {
	case replies.isGone():
		return true, errGone
	case owed == 0, aside && !(confirms && first.confirms):
		r.kind, r.quota, r.mute = passing, 1, false
		_, err := replies.awaitTurn(nil)
		return true, err
	case first.slot == nil:
		r.kind, r.start = keeping, len(r.captured)
		return true, nil
	}
	left, err := replies.awaitTurn(first.slot)
	if _, owed = r.next(); err == nil && drained && owed == 1 && left == 1 {
		return true, errDrained
	}
	r.kind, r.quota, r.mute = relaying, left, first.slot.mute
	return true, err
}

// next returns what the upstream owes next, and how much it owes in all. Only the relay takes the first away.
func (l *link) next() (first expectation, owed int) {
	l.uplink.mu.Lock()
	defer l.uplink.mu.Unlock()
	if len(l.expected) > 0 {
		first = l.expected[0]
	}
	return first, len(l.expected)
}

// isAside says whether the frame answers nothing, and whether it speaks of a subscription. more says that b is too short to tell.
func (r *relay) isAside(b []byte) (aside, confirms, more bool) {
	if b[0] == '+' && r.session.uplink.monitors.Load() { // each line that MONITOR shows begins with the time
		return len(b) > 1 && '0' <= b[1] && b[1] <= '9', false, len(b) == 1
	}
	push := b[0] == '>'
	if !push && (b[0] != '*' || r.pushes || !r.confirmed.channels && !r.confirmed.shards) {
		return false, false, false
	}
	word, more := wire.FirstWord(b)
	switch string(word) {
	case "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe":
		return push, true, more
	case "message", "pmessage", "smessage":
		return true, false, more
	}
	return push, false, more
}

// apart says whether the frame at the beginning of b is none that write may hand on with the reply before it: begin looks at it.
func (r *relay) apart(b []byte) bool {
	aside, _, more := r.isAside(b)
	drained, short := r.drained(b)
	return aside || more || drained || short
}

// write hands on as much as may pass now, and returns how much that was.
func (r *relay) write(b []byte) (int, error) {
	n, replies := 0, 0
	for n < len(b) && replies < r.quota {
		if replies > 0 && r.apart(b[n:]) {
			break
		}
		k, ends, err := r.framer.Next(b[n:])
		n += k
		if err != nil {
			return n, err
		}
		if ends {
			replies++
		}
	}
	if !r.mute {
		if _, err := r.session.replies.send(b[:n]); err != nil {
			return n, errGone
		}
	}
	return n, r.wrote(replies)
}

// wrote notes that so many replies are written, and gives the turn back if none is written in part.
func (r *relay) wrote(replies int) error {
	r.uplink.mu.Lock()
	defer r.uplink.mu.Unlock()
	var sl *slot
	if r.kind == relaying {
		sl = r.expected[0].slot
	}
	r.quota -= replies
	whole := r.framer.Between()
	done, err := r.session.replies.wrote(sl, replies, whole)
	if done {
		r.met()
	}
	if whole && err == nil {
		r.kind = between
	}
	return err
}

// keep keeps a frame from the client. A reply that is an error stands for all that were expected together.
func (r *relay) keep(b []byte) (int, error) {
	n, ends, err := r.framer.Next(b)
	if err != nil {
		return n, err
	}
	take, err := r.capture(b[:n], ends)
	if take != nil {
		replies := r.captured
		r.captured = nil
		take(replies)
	}
	return n, err
}

// capture adds to what is kept, and returns who gets it if that is all.
func (r *relay) capture(b []byte, ends bool) (take func(replies []byte), err error) {
	r.uplink.mu.Lock()
	defer r.uplink.mu.Unlock()
	e := &r.expected[0]
	if e.take != nil {
		r.captured = append(r.captured, b...)
		if len(r.captured) > capturedMax {
			return nil, wire.ErrFraming
		}
	}
	if !ends {
		return nil, nil
	}
	r.kind = between
	if e.confirms {
		r.confirm(r.captured[r.start:])
		if r.start > 0 { // the first tells whether it is an error; names may be long, and many
			r.captured = r.captured[:r.start]
		}
	}
	if e.n--; e.n > 0 && (e.take == nil || r.captured[0] != '-') {
		return nil, nil
	}
	take = e.take
	r.met()
	return take, nil
}

// confirm notes from a confirmation whether messages may come.
func (r *relay) confirm(reply []byte) {
	some := !bytes.HasSuffix(reply, []byte("\r\n:0\r\n"))
	switch word, _ := wire.FirstWord(reply); string(word) {
	case "ssubscribe", "sunsubscribe":
		r.confirmed.shards = some
	case "subscribe", "psubscribe", "unsubscribe", "punsubscribe":
		r.confirmed.channels = some
	}
}

// lost ends the session, unless there was nothing on the link: then the next command makes another.
func (l *link) lost(cause error) {
	upstream.BreakOff(l.conn)
	missed, matters := l.die(cause)
	switch {
	case !missed:
	case !matters, errors.Is(cause, errGone):
		l.session.hangUp(cause.Error())
	default:
		l.uplink.lost(upstream.Innermost(cause).Error())
	}
}

// die marks the link as dead. It says whether something was missed on it, and whether that matters to the client.
func (l *link) die(cause error) (missed, matters bool) {
	replies := &l.session.replies
	gone, hearing, relaying := replies.seenByRelay()
	l.uplink.mu.Lock()
	var first *slot
	if len(l.expected) > 0 {
		first = l.expected[0].slot
	}
	relies := l.relies && hearing // a client that sends nothing more needs nothing there
	idle := len(l.expected) == 0 && !l.stateful && !relies && !relaying
	missed = !idle && !l.dead && !gone
	l.dead = true
	l.uplink.mu.Unlock()
	matters = hearing && !errors.Is(cause, errDrained) // else its wait was ended on purpose
	if missed && !matters && first != nil {
		_, _ = replies.awaitTurn(first) // what came before is answered
	}
	return missed, matters
}
