package resp

import (
	"bytes"
	"errors"
	"sync"

	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
)

// How much a relay reads at once: little while little comes, so that idle clients cost little.
const (
	relaySmall = 4 << 10
	relayLarge = 32 << 10
)

// relayBuffers are large buffers, borrowed while much comes.
var relayBuffers = sync.Pool{New: func() any { b := make([]byte, relayLarge); return &b }}

// capturedMax bounds replies kept from the client.
const capturedMax = 4 << 20

var errGone = errors.New("the client is gone")

// A relay takes the upstream's replies to the client as they come, large replies in pieces, when the reply's slot has its turn. A relay
// gathers no more than one read. Bytes not taken by the client stay with the upstream.
//
// Relay and writer share the client's side of the connection: only one of the two writes at a time. The relay keeps the right until a reply
// is whole.
type relay struct {
	*link
	framer   wire.Framer
	kind     frameKind
	mute     bool // the frame is not written
	quota    int  // how many replies may pass before the next look at the queue
	captured []byte
	start    int // offset of the latest frame in captured
}

// A frameKind says where the frame under way goes.
type frameKind uint8

const (
	between frameKind = iota
	passing           // to the client: a message, no reply
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

// pass handles the bytes read, and returns how many bytes are used. The beginning of a frame stays unused while too short to tell the kind
// of frame.
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

// begin finds the kind of the frame at the beginning of b, and waits for the frame's turn. begin returns false if b is too short.
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

// next returns the upstream's next debt, and the number of debts. Only the relay removes the first.
func (l *link) next() (first expectation, owed int) {
	l.uplink.mu.Lock()
	defer l.uplink.mu.Unlock()
	if len(l.expected) > 0 {
		first = l.expected[0]
	}
	return first, len(l.expected)
}

// isAside says whether the frame is a message instead of a reply, and whether the frame confirms a subscription. more says that b is too
// short to tell.
func (r *relay) isAside(b []byte) (aside, confirms, more bool) {
	if b[0] == '+' && r.session.uplink.monitors.Load() { // each line of MONITOR begins with the time
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

// apart says whether begin has to look at the frame at the beginning of b. Then write must not send the frame together with the reply
// before.
func (r *relay) apart(b []byte) bool {
	aside, _, more := r.isAside(b)
	drained, short := r.drained(b)
	return aside || more || drained || short
}

// write sends to the client as much of b as may pass now, and returns how much.
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

// wrote notes how many replies are written, and gives the turn back unless a reply is written in part.
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

// keep keeps a frame from the client. An error reply stands for all replies expected together.
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

// capture adds to the captured replies. After the last reply capture returns the function that takes them all.
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
		if r.start > 0 { // the first frame tells whether the reply is an error; the rest may be long
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

// lost ends the session if the client misses something with the link. Otherwise the next command makes another link.
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

// die marks the link as dead. missed says whether the link's end cost the client something; matters says whether the client still counts on
// the link.
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
	matters = hearing && !errors.Is(cause, errDrained) // else the wait was ended on purpose
	if missed && !matters && first != nil {
		_, _ = replies.awaitTurn(first) // earlier commands are answered first
	}
	return missed, matters
}
