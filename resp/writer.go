package resp

import (
	"sync"
	"time"
)

// flushSize is how many bytes of replies are gathered before they are written even if more are ready.
const flushSize = 64 << 10

// A page is replies encoded to be written, and the locks among them. It is borrowed for one batch: an idle connection
// has none.
type page struct {
	buf    []byte
	grants []grant
}

var pages = sync.Pool{New: func() any { return &page{buf: make([]byte, 0, 4<<10)} }}

// A grant is a slot with a lock whose reply ends at an offset of the buffer being written.
type grant struct {
	slot *slot
	end  int
}

// writeLoop writes replies in the order of their commands until the session ends. What it cannot write any more it
// abandons.
func (s *session) writeLoop() {
	defer s.dropQueue()
	defer s.recovered("writer")
	for {
		batch := s.next()
		if batch == nil {
			s.finish()
			return
		}
		if !s.send(batch) {
			return
		}
	}
}

// next waits for a batch to be written. There is none when the session has ended.
func (s *session) next() *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batch = s.take()
	for s.batch == nil && !s.gone && !(s.closing.Load() && s.head == nil && !s.relaying) {
		s.ready.Wait()
		s.batch = s.take()
	}
	return s.batch
}

// send writes a batch of replies, and says whether the connection is still of use.
func (s *session) send(batch *slot) bool {
	p := pages.Get().(*page)
	ok := true
	for sl := batch; sl != nil; sl = sl.next {
		if !ok {
			sl.out.abandon()
			continue
		}
		if sl.ends {
			s.noteEnd(sl.out.err.Error())
			_ = s.write(p)
			s.finish()
			s.setGone() // what is granted from here on is abandoned
			ok = false
			continue
		}
		reply := sl.final()
		if e, failed := reply.(Error); failed {
			s.server.errors.add(e)
			s.warnRefused(e)
		}
		if !sl.mute {
			p.buf = reply.AppendTo(p.buf, sl.resp3)
		}
		s.beginHold(sl)
		if sl.out.lock != nil {
			s.regain(sl)
			p.grants = append(p.grants, grant{sl, len(p.buf)})
		}
		if len(p.buf) >= flushSize {
			ok = s.write(p)
		}
	}
	ok = ok && s.write(p)
	if cap(p.buf) <= 2*flushSize {
		pages.Put(p)
	}
	s.retire(batch)
	return ok
}

// write writes a page and empties it. If that fails, the locks whose replies were not written whole are abandoned: their client
// cannot know of them. One whose reply was written whole may be in use.
func (s *session) write(p *page) bool {
	n, err := 0, error(nil)
	if len(p.buf) > 0 {
		s.writing.Store(s.server.clock.Load())
		n, err = s.conn.Write(p.buf)
		s.writing.Store(0)
	}
	for _, g := range p.grants {
		//mutant: what was written in part stays
		if g.end <= n {
			g.slot.out.lock = nil // the client's own from here on
		}
		g.slot.out.abandon()
	}
	clear(p.grants)
	p.buf, p.grants = p.buf[:0], p.grants[:0]
	if err != nil {
		s.hangUp(err.Error())
	}
	return err == nil
}

// retire takes written slots out of the counts and lets the reader go on.
func (s *session) retire(batch *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sl := batch; sl != nil; {
		next := sl.next
		s.freeReader(sl)
		s.uncount(sl)
		sl.recycle()
		sl = next
	}
	s.weigh(0)
	s.unthrottle()
	s.batch = nil
	s.tellReader()
	s.turn.Signal()
}

// finish ends the writing side in order.
func (s *session) finish() {
	s.mu.Lock()
	s.written = true
	s.turn.Signal()
	s.tellReader()
	gone := s.gone
	s.mu.Unlock()
	if gone {
		return
	}
	if c, ok := s.conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
		_ = s.conn.SetReadDeadline(time.Now().Add(lingerTime))
		return
	}
	_ = s.conn.Close()
}

// dropQueue abandons what was not written: of the batch that a panic left behind, and of the queue. Locks granted from
// here on are abandoned as they come.
func (s *session) dropQueue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = true
	s.closing.Store(true)
	s.gone = s.gone || s.head != nil
	s.turn.Signal()
	s.tellReader()
	for _, first := range [...]*slot{s.batch, s.head} {
		for sl := first; sl != nil; sl = sl.next {
			s.uncount(sl)
			sl.out.abandon()
		}
	}
	s.weigh(0)
	s.head, s.tail = nil, nil
}
