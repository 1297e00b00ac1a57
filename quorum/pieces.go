package quorum

import (
	"sync"
	"sync/atomic"
)

// A question about many keys, or long values, is asked in pieces. A piece takes a master a millisecond or two at most.
// Questions of other clients go between two pieces, here and on the masters, because a piece begins only when the piece before
// was answered. A master tells of the keys of one piece at one moment. Another piece is another moment.

// The size of a piece: in keys, in bytes of values that scripts look at (pieceMax), and in bytes of values that are only sent
// (getMax).
const (
	PieceKeys = 64
	pieceMax  = 128 << 10
	getMax    = 256 << 10
)

// weighed returns the weight of a piece about so many keys in package admission. One script for many keys is less work for the
// masters than a script for each key, and still less for the proxy.
func weighed(keys int) int { return (keys + 7) / 8 }

// PieceWeight is weighed for a command about so many keys that the engine takes piece by piece.
func PieceWeight(keys int) int { return weighed(min(keys, PieceKeys)) }

// A pacer bounds the pieces of all clients that are under way at one time. Other pieces wait in line. Small pieces need little
// room, so clients that ask about a few keys do not wait for each other.
type pacer struct {
	mu      sync.Mutex // guards all below
	taken   int        // room of pacerRoom in use
	waiting []piece
}

// A piece is a question that waits for room. keys is the room that the question takes.
type piece struct {
	keys int
	run  func()
}

// pacerRoom is the room of two whole pieces.
const pacerRoom = 2 * PieceKeys

// begin calls run when there is room, perhaps at once. A piece that takes no room runs at once. The caller gives the room back
// by end.
func (p *pacer) begin(keys int, run func()) {
	p.mu.Lock()
	if keys > 0 && (len(p.waiting) > 0 || !p.admits(keys)) {
		p.waiting = append(p.waiting, piece{keys, run})
		p.mu.Unlock()
		return
	}
	p.taken += keys
	p.mu.Unlock()
	run()
}

// admits says whether there is room. The first piece always has room. It is called with mu held.
func (p *pacer) admits(keys int) bool { return p.taken == 0 || p.taken+keys <= pacerRoom }

// end gives room back, and runs the pieces that have waited longest.
func (p *pacer) end(keys int) {
	var next []piece
	p.mu.Lock()
	p.taken -= keys
	for len(p.waiting) > 0 && p.admits(p.waiting[0].keys) {
		p.taken += p.waiting[0].keys
		next = append(next, p.waiting[0])
		p.waiting = p.waiting[1:]
	}
	p.mu.Unlock()
	for _, n := range next {
		n.run()
	}
}

// A survey looks at many keys, piece by piece.
type survey struct {
	engine *Engine
	db     int
	names  []string // the names not yet looked at
	how    string

	apart, timeless bool // as in readRound

	// each takes the views of a piece, which are of the first of the names left, and calls next to go on. each is not called
	// after an error.
	each func(names []string, views []View, next func())
	done func(error) // *NoQuorum, ErrClosed
}

func (s *survey) next() {
	if len(s.names) == 0 {
		s.done(nil)
		return
	}
	n := min(len(s.names), PieceKeys)
	room := n
	if room == 1 { // the piece is no more work than any other command on one key
		room = 0
	}
	pacer := &s.engine.pacer
	pacer.begin(room, func() {
		l := &readRound{how: s.how, room: pieceMax, part: true, apart: s.apart, timeless: s.timeless}
		l.round.keys = weighed(n)
		l.done = func(l *readRound) {
			defer pacer.end(room)
			if l.err != nil {
				s.done(l.err)
				return
			}
			told := s.names[:len(l.views)]
			s.names = s.names[len(told):]
			s.each(told, l.views, s.next)
		}
		l.ask(s.engine, s.db, s.names[:n])
	})
}

// A removal is a RemoveAll under way.
type removal struct {
	engine *Engine
	db     int
	done   func(name string, c Changed)
}

func (r *removal) remove(names []string) {
	s := &survey{engine: r.engine, db: r.db, names: names, how: digest, timeless: true, each: r.removeSeen}
	s.done = func(err error) {
		for _, name := range s.names {
			r.done(name, Changed{Err: err})
		}
	}
	s.next()
}

// removeSeen removes the keys of a piece. A key is removed only where it is as the quorum told.
func (r *removal) removeSeen(names []string, views []View, next func()) {
	var done atomic.Int64
	answered := func() {
		if done.Add(1) == int64(1+len(names)) {
			next()
		}
	}
	for i, name := range names {
		one := func(c Changed) {
			r.done(name, c)
			answered()
		}
		if views[i].Exists {
			(&removeRound{done: one}).ask(r.engine, Key{r.db, name}, &views[i])
		} else {
			one(Changed{})
		}
	}
	answered()
}
