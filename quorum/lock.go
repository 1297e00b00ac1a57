package quorum

import "time"

// A Lock is a granted acquire.
type Lock struct {
	attempt *attempt
	until   instant
}

// Until returns when the promised validity ends, on the monotonic clock.
func (l *Lock) Until() time.Time { return l.attempt.engine.epoch.Add(l.until) }

// Abandon undoes the acquire: its client is gone, or the reply would come too late. It does not wait, and only the
// first call counts.
func (l *Lock) Abandon() { l.attempt.undo(func() {}) }
