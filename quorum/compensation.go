package quorum

import (
	"slices"
	"sync/atomic"
)

// Compensation is one ledger for all operations: each entry of a round has what was set on its master, and how that is taken back.
//
//	what was set     the master's answer, and entry.expires or execRound's ends
//	under which      operation.signatures: name with token, or with DUMP
//	signature
//	taken back       entry.undoing, and entry.undos, which remove or replace exactly what was set (undo.go)
//	revoked          round.revoked: what has not been sent must not be sent, and what is answered late is taken back, too
//
// Three events take something back:
//
//	the round failed, or its client is gone    revoke: on every master
//	an answer comes after that                 settled, with undoAt: on that master
//	a release could not be sent                ledger.owe and settled, with operation.takeBack: one signature on that master
//
// Extensions are not taken back: the lock is the client's, and may stay for longer than the client knows.

// revoke takes back all that the operation did on any master: it returns the undos, to be pushed without mu. It is called with mu held.
func (r *round) revoke() (undos []*undo) {
	r.revoked = true
	for i := range r.entries {
		undos = r.undoAt(undos, &r.entries[i])
	}
	return undos
}

// undoAt appends what takes back all that the operation did on one master, or may have: once. It is called with mu held.
func (r *round) undoAt(to []*undo, en *entry) []*undo {
	if en.undoing {
		return to
	}
	n := len(to)
	to = r.operation.appendUndos(to, en)
	en.undos = to[n:len(to):len(to)]
	en.undoing = len(en.undos) > 0
	return to
}

// isUndone says that all that was taken back on the master is surely gone. It is called with the round's mu held.
func (en *entry) isUndone() bool {
	return !slices.ContainsFunc(en.undos, func(u *undo) bool { return !u.clean.Load() })
}

// pushUndos sends undos, and calls after when all those of a known fate are answered, or one InstanceTimeout has passed.
func pushUndos(e *Engine, undos []*undo, after func()) {
	sure := 0
	for _, u := range undos {
		if !u.unknown {
			sure++
		}
	}
	var w *wait
	if sure > 0 {
		w = newWait(e, sure, after)
	}
	for _, u := range undos {
		if !u.unknown {
			u.done = w.one
		}
		u.lane.queue.pushUndo(u)
	}
	if sure == 0 {
		after()
	}
}

// A wait calls after once: when the last of several things is done, or when one InstanceTimeout has passed.
type wait struct {
	left     atomic.Int32
	deadline answerTime
	after    func()
	called   atomic.Bool
}

func newWait(e *Engine, n int, after func()) *wait {
	w := &wait{deadline: e.waited().plus(e.cfg.InstanceTimeout), after: after}
	w.left.Store(int32(n))
	e.sweeper.add(w)
	return w
}

func (w *wait) one() {
	if w.left.Add(-1) == 0 {
		w.expire()
	}
}

func (w *wait) due() answerTime { return w.deadline }

func (w *wait) expire() {
	if w.called.CompareAndSwap(false, true) {
		w.after()
	}
}
