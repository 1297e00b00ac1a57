package quorum

import "time"

// A Lock is what a granted acquire, or an Exec that set keys, has taken, or what an extension has made longer.
type Lock struct {
	engine *Engine
	taken  takings
	until  instant
}

// takings are what an operation has taken, or made longer.
type takings interface {
	undo(after func()) // of an extension does nothing
	appendKeys(to []Key) []Key
}

// AppendKeys appends the keys that the lock consists of. The names are the request's.
func (l *Lock) AppendKeys(to []Key) []Key { return l.taken.appendKeys(to) }

// Until returns when the promised validity ends, on the monotonic clock. That clock stands still while the machine is
// suspended, so it is earlier each time by what was slept since.
func (l *Lock) Until() time.Time {
	l.engine.catchUp()
	return l.engine.timeAt(l.until)
}

// Abandon undoes the lock, because its client is gone or the reply would come too late. What an extension made longer stays.
// Abandon does not wait, and only the first call does anything.
func (l *Lock) Abandon() {
	//mutant: an abandoned lock is not undone
	l.taken.undo(func() {})
}
