package resp

import (
	"net"
	"time"
)

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
