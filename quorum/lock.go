package quorum

import "time"

// A Lock is what a granted acquire, or an Exec that set keys, has taken, or what an extension has made longer.
type Lock struct {
	engine *Engine
	taken  interface{ undo(after func()) } // of an extension nothing
	until  instant
}

// Until returns when the promised validity ends, on the monotonic clock: earlier by what the machine has been suspended
// since it was asked before.
func (l *Lock) Until() time.Time {
	l.engine.catchUp()
	return l.engine.timeAt(l.until)
}

// Abandon undoes it: its client is gone, or the reply would come too late. It does not wait, and only the first call
// counts.
func (l *Lock) Abandon() { l.taken.undo(func() {}) }
