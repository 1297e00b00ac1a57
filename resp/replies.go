package resp

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// replies are one connection's replies in the order of its commands. The reader gives each command a slot. The engine's outcomes, or the
// upstream, fill the slot. One writer writes ready slots from the head on (writer.go). The relay of the upstream's replies takes turns with
// the writer (turn.go).
//
// The reader waits in its Read, or in hearOut when the client sends nothing more. Some methods wake the reader for another look at the
// waiting command, and say so.
type replies struct {
	server  *Server
	conn    net.Conn           // to the client
	kill    func(cause string) // ends the connection at once
	backlog backlog
	writing atomic.Int64 // when the write to the client under way began, 0 if there is none; server clock, ms
	closing atomic.Bool  // no command is run any more; set with mu held

	mu         sync.Mutex // guards the fields from here on
	ready      sync.Cond  // the writer waits for work
	head, tail *slot
	batch      *slot // the slots being written, no longer in the queue
	latest     *slot // the youngest slot in the queue that leads or is a message; the next message goes right behind
	untold     *slot // the youngest slot in the queue that confirms a subscription confirmed by the upstream
	alone      int   // commands in flight with overlapNone
	owed       int   // slots in the queue with replies still owed by the upstream
	reads      reads
	waker      waker
	throttled  bool      // the reader waits for the backlog to go down
	gone       bool      // the client is gone; closing is set, too
	written    bool      // the writer has ended
	turn       sync.Cond // the relay waits to write
	relaying   bool      // the relay writes to the client, or is in the midst of a frame
	relayedBy  *slot     // the slot whose replies the relay writes; nil: a message
}

func (r *replies) init(srv *Server, conn net.Conn, memory *account, kill func(cause string)) {
	r.server, r.conn, r.kill = srv, conn, kill
	r.backlog.limits, r.backlog.memory = &srv.cfg.Limits, memory
	r.waker.conn = conn
	r.reads.size = firstReadSize
	r.ready.L, r.turn.L = &r.mu, &r.mu
}

// enter gives a slot its place behind slots that it may overlap. If the slot has to wait, enter returns false, and wakes the reader when
// the slot in the way is ready. If the connection is ending and answers nothing more, enter returns false, too.
func (r *replies) enter(sl *slot) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waker.waitFor = r.conflict(sl); r.waker.waitFor == nil && sl.reads && r.reads.greedy() {
		r.waker.waitFor = oldestRead(r.head)
	}
	if r.waker.waitFor != nil || !r.push(sl) {
		return false
	}
	r.reads.under += count(sl.reads)
	r.alone += count(sl.overlap == overlapNone)
	return true
}

// add gives a slot with a known reply its place. size is the reply's. If a limit forbids the reply to wait, add returns the limit. The
// writer is woken later, when all commands that arrived together have run.
func (r *replies) add(sl *slot, size int) (spent string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.push(sl) {
		return ""
	}
	return r.backlog.output(sl, size)
}

// push appends a slot. It returns false if the connection is ending and answers nothing more. mu is held.
func (r *replies) push(sl *slot) bool {
	if r.closing.Load() {
		return false
	}
	if r.tail == nil {
		r.head = sl
	} else {
		//mutant: replies overtake each other
		r.tail.next = sl
	}
	r.tail = sl
	if sl.leads {
		r.latest = sl
	}
	r.owed += count(sl.owedThere())
	r.backlog.add(sl)
	return true
}

// deliver puts a message into the queue, in front of commands that wait for their outcomes. size counts towards the output limit. If a
// limit forbids the message to wait, deliver returns the limit.
func (r *replies) deliver(sl *slot, size int) (spent string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing.Load() {
		sl.recycle()
		return ""
	}
	r.backlog.weigh(sl.memory)
	after := r.latest
	if after == nil {
		after = r.relayedBy // some of the slot's replies are written
	}
	if after == nil {
		sl.next, r.head = r.head, sl
	} else {
		sl.next, after.next = after.next, sl
	}
	if sl.next == nil {
		r.tail = sl
	}
	r.latest = sl
	if r.head.left == 0 {
		r.ready.Signal()
	}
	return r.backlog.output(sl, size)
}

// tellFirst holds messages from the upstream back until the slot is written: the slot confirms the subscription to these messages.
func (r *replies) tellFirst(sl *slot) {
	r.mu.Lock()
	r.untold = sl
	r.mu.Unlock()
}

// wakeWriter tells the writer of replies given at once by handlers. The replies are written together.
func (r *replies) wakeWriter() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.head != nil && r.head.left == 0 {
		r.ready.Signal()
	}
}

// take removes the ready slots at the head. Once the client is gone, no lock may be handed out any more, so take stops before the first
// slot with a lock. mu is held.
func (r *replies) take() *slot {
	if r.relaying {
		return nil
	}
	first := r.head
	var end *slot
	for sl := first; sl != nil && sl.left == 0; sl = sl.next {
		if r.gone && sl.out.lock != nil {
			break
		}
		if r.latest == sl {
			r.latest = nil
		}
		if r.untold == sl {
			r.untold = nil
		}
		end = sl
	}
	if end == nil {
		return nil
	}
	r.head = end.next
	if r.head == nil {
		r.tail = nil
	}
	end.next = nil
	return first
}

// stop has the writer end after the queued slots and the slot last, if not nil. No command is run any more.
func (r *replies) stop(last *slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last != nil {
		r.push(last)
	}
	r.closing.Store(true)
	r.ready.Signal()
}

// abandon notes that the client is gone: no lock is handed out any more, and the writer ends.
func (r *replies) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = true
	r.closing.Store(true)
	r.ready.Signal()
	r.turn.Signal()
	r.waker.tell()
}

func (r *replies) isGone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}

// isWritten says whether the writer has ended.
func (r *replies) isWritten() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written
}

// send writes to the client, for the writer or the relay, and returns how many bytes were written. The janitor ends a write of more than
// Limits.Write.
func (r *replies) send(b []byte) (int, error) {
	r.writing.Store(r.server.clock.Load())
	defer r.writing.Store(0)
	return r.conn.Write(b)
}

// rearm clears the deadline that woke the reader, and says whether the reader is to go on. Once the writer has ended, the deadline is the
// writer's: until then the client may take the last reply and close.
func (r *replies) rearm() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.written && r.conn.SetReadDeadline(time.Time{}) == nil
}

// kick wakes the reader: it is the client's turn in line, or the upstream has replied to a request of the proxy's own.
func (r *replies) kick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waker.wake()
}

// kickUnlessEnding is kick, unless the connection is ending: then the reader waits undisturbed for the client to close.
func (r *replies) kickUnlessEnding() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closing.Load() {
		r.waker.wake()
	}
}

// admits says whether the reader may run another command with a pipeline of most commands. If not, the reader is woken when enough replies
// are written.
func (r *replies) admits(most int) bool {
	if !r.backlog.full(most) {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.throttled = r.backlog.full(most)
	return !r.throttled
}

// isIdle says whether no reply waits to be written.
func (r *replies) isIdle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head == nil && r.batch == nil
}

// lookAgain lets a throttled reader go on, if other clients have given back the lacking memory.
func (r *replies) lookAgain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unthrottle()
}

// unthrottle lets a throttled reader go on, once enough replies are written. mu is held.
func (r *replies) unthrottle() {
	if r.throttled && r.backlog.drained() {
		r.throttled = false
		r.waker.wake()
	}
}

// A waker wakes the reader of a connection for another look at the waiting command. replies.mu guards the fields, and is held when a method
// is called.
type waker struct {
	conn    net.Conn
	waitFor *slot         // the reader waits for this slot to be ready
	sentAll chan struct{} // tells the reader of changes once the client sends nothing more; nil before
}

// wake ends the reader's Read. Once the client sends nothing more, the reader does not read, and is told instead.
func (w *waker) wake() {
	if w.sentAll != nil {
		w.tell()
		return
	}
	_ = w.conn.SetReadDeadline(time.Unix(1, 0))
}

// tell has the reader look at changes, once the client sends nothing more.
func (w *waker) tell() {
	select {
	case w.sentAll <- struct{}{}:
	default:
	}
}

// free lets the reader go on, if it waits for the slot.
func (w *waker) free(sl *slot) {
	if w.waitFor == sl {
		w.waitFor = nil
		w.wake()
	}
}
