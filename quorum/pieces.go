package quorum

import (
	"sync"
	"sync/atomic"
)

// What is asked about many keys, or long values, is asked in pieces. Each takes a master a millisecond or two at most, and what others
// ask goes between two pieces: here, as the next piece begins when the one before was answered, and on the masters. What is told of
// the keys of one piece is so at one moment on each master. Another piece is another moment.

// The size of a piece. pieceMax is for values that scripts look at, and getMax for those that are only sent.
const (
	PieceKeys = 64
	pieceMax  = 128 << 10
	getMax    = 256 << 10
)

// weighed is what a piece about so many keys is to package admission. One script for many keys is less work than one for each, for
// the masters, and still less for the proxy.
func weighed(keys int) int { return (keys + 7) / 8 }

// PieceWeight is weighed for a command about so many keys that the engine takes piece by piece.
func PieceWeight(keys int) int { return weighed(min(keys, PieceKeys)) }

// A pacer lets only so many pieces be under way at one time, whoever asks: the others wait in line. Small ones need little room, so
// clients that ask about a few keys do not wait for each other.
type pacer struct {
	mu      sync.Mutex // guards all below
	taken   int        // of pacerRoom
	waiting []piece
}

// A piece takes room as if it were about so many keys.
type piece struct {
	keys int
	run  func()
}

// pacerRoom is as much as two whole pieces need.
const pacerRoom = 2 * PieceKeys

// begin calls run when there is room, perhaps at once; for what takes none, at once. It gives the room back by end.
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

// admits says whether there is room. There always is for the first. It is called with mu held.
func (p *pacer) admits(keys int) bool { return p.taken == 0 || p.taken+keys <= pacerRoom }

// end gives room back, and lets those go on who have waited longest.
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
	names  []string // that are left
	how    string
	apart  bool // as in looking
	// each takes what a piece has told of the first so many of the keys that were left, and calls next to go on. It is not called
	// for an error.
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
	if room == 1 { // it is no more than any other command on one key
		room = 0
	}
	pacer := &s.engine.pacer
	pacer.begin(room, func() {
		l := &readRound{how: s.how, room: pieceMax, part: true, apart: s.apart}
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
	s := &survey{engine: r.engine, db: r.db, names: names, how: digest, each: r.removeSeen}
	s.done = func(err error) {
		for _, name := range s.names {
			r.done(name, Changed{Err: err})
		}
	}
	s.next()
}

// removeSeen removes the keys of a piece, as a quorum holds them.
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
