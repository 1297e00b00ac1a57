package resp

import (
	"net"
	"time"
)

// A waker wakes the reader of a connection, so that the reader looks again at the command that waits. replies.mu guards it, and is held
// when its methods are called.
type waker struct {
	conn    net.Conn
	waitFor *slot         // the reader waits for this slot to be ready
	sentAll chan struct{} // not nil: the client sends nothing more. Tells the reader that something has changed
}

// wake ends the reader's Read. A reader whose client sends nothing more does not read, and is told.
func (w *waker) wake() {
	if w.sentAll != nil {
		w.tell()
		return
	}
	_ = w.conn.SetReadDeadline(time.Unix(1, 0))
}

// tell lets the reader of a client that sends nothing more look at what has changed.
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
