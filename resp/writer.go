package resp

import (
	"sync"
	"time"
)

// flushSize is the number of gathered bytes at which replies are written even if more are ready.
const flushSize = 64 << 10

// A page is encoded replies to be written, and the locks among the replies. A page is borrowed for one batch: an idle connection has none.
type page struct {
	buf    []byte
	grants []grant
}

var pages = sync.Pool{New: func() any { return &page{buf: make([]byte, 0, 4<<10)} }}

// A grant is a slot with a lock. The slot's reply ends at an offset of the buffer being written.
type grant struct {
	slot *slot
	end  int
}

// A writer writes the replies of one session in the order of the commands, on a goroutine of its own.
type writer struct {
	session *session
	replies *replies
}

// run writes until the session ends. Replies that cannot be written any more are abandoned.
func (w *writer) run() {
	defer w.drop()
	defer w.session.recovered("writer")
	for {
		batch := w.next()
		if batch == nil {
			w.finish()
			return
		}
		if !w.send(batch) {
			return
		}
	}
}

// next waits for a batch to write. After the session's end there is none.
func (w *writer) next() *slot {
	r := w.replies
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batch = r.take()
	for r.batch == nil && !r.gone && !(r.closing.Load() && r.head == nil && !r.relaying) {
		r.ready.Wait()
		r.batch = r.take()
	}
	return r.batch
}

// send writes a batch of replies, and says whether the connection is still of use.
func (w *writer) send(batch *slot) bool {
	p := pages.Get().(*page)
	ok, now := true, time.Now()
	for sl := batch; sl != nil; sl = sl.next {
		if !ok {
			sl.out.abandon()
			continue
		}
		if sl.ends {
			w.session.ending.note(sl.out.err.Error())
			_ = w.write(p)
			w.finish()
			w.session.setGone() // locks granted from here on are abandoned
			ok = false
			continue
		}
		reply := sl.final()
		if e, failed := reply.(Error); failed {
			w.session.server.errors.add(e)
			w.session.server.journal.refused(w.session, e)
		}
		w.session.server.calls.Load().note(sl, now, reply)
		w.session.noteSlow(sl)
		if !sl.mute {
			p.buf = reply.AppendTo(p.buf, sl.resp3)
		}
		if sl.hold != nil {
			w.session.holds.begin(sl)
		}
		if sl.out.lock != nil {
			w.session.holds.regain(sl)
			w.session.server.takers.given(sl, w.session.id)
			p.grants = append(p.grants, grant{sl, len(p.buf)})
		}
		if len(p.buf) >= flushSize {
			ok = w.write(p)
		}
	}
	ok = ok && w.write(p)
	if cap(p.buf) <= 2*flushSize {
		pages.Put(p)
	}
	w.retire(batch)
	return ok
}

// write writes a page and empties the page. If the write fails, locks whose replies were not written whole are abandoned: the client cannot
// know of them. A lock whose reply was written whole may be in use.
func (w *writer) write(p *page) bool {
	n, err := 0, error(nil)
	if len(p.buf) > 0 {
		n, err = w.replies.send(p.buf)
	}
	for _, g := range p.grants {
		//mutant: what was written in part stays
		if g.end <= n {
			w.session.tellGiven(g.slot)
			g.slot.out.lock = nil // the client's own from here on
		}
		g.slot.out.abandon()
	}
	clear(p.grants)
	p.buf, p.grants = p.buf[:0], p.grants[:0]
	if err != nil {
		w.session.hangUp(err.Error())
	}
	return err == nil
}

// retire takes written slots out of the counts and lets the reader go on.
func (w *writer) retire(batch *slot) {
	r := w.replies
	r.mu.Lock()
	defer r.mu.Unlock()
	for sl := batch; sl != nil; {
		next := sl.next
		r.waker.free(sl)
		r.backlog.remove(sl)
		sl.recycle()
		sl = next
	}
	r.backlog.weigh(0)
	r.unthrottle()
	r.batch = nil
	r.waker.tell()
	r.turn.Signal()
}

// finish ends the writing side in order.
func (w *writer) finish() {
	r := w.replies
	r.mu.Lock()
	r.written = true
	r.turn.Signal()
	r.waker.tell()
	gone := r.gone
	r.mu.Unlock()
	if gone {
		return
	}
	if c, ok := r.conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
		_ = r.conn.SetReadDeadline(time.Now().Add(lingerTime))
		return
	}
	_ = r.conn.Close()
}

// drop abandons the unwritten slots: of the batch left behind by a panic, and of the queue. Locks granted from here on are abandoned at the
// grant.
func (w *writer) drop() {
	r := w.replies
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = true
	r.closing.Store(true)
	r.gone = r.gone || r.head != nil
	r.turn.Signal()
	r.waker.tell()
	for _, first := range [...]*slot{r.batch, r.head} {
		for sl := first; sl != nil; sl = sl.next {
			r.backlog.remove(sl)
			sl.out.abandon()
		}
	}
	r.backlog.weigh(0)
	r.head, r.tail = nil, nil
}
