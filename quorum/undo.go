package quorum

import (
	"sync/atomic"

	"lockproxy/quorum/masters"
)

// An undo removes the key that one attempt set on one master (rule 4). It goes through the lane that the attempt went
// through, so it cannot overtake it, and it is exact: the key must hold the attempt's token, and must have been set, by
// the master's own clock, while the attempt's batch ran. A token that is used again, or a constant one, therefore does
// not cost another attempt its vote. Two keys set in the same millisecond are told apart by recent.
//
// It outlives the attempt: a lane keeps it over reconnections until it is answered or the key is gone by itself. If the
// attempt's connection broke, and the master does not let it be killed, its SET may run at any later time: then no undo
// can tell that key from a younger one, and leaves it to its TTL.
type undo struct {
	masters.Call
	entry *entry
	lane  *lane
	kept  instant
	gone  instant // when the key must have expired; 0 before the first try
	done  func()  // called at the first answer, or when there is nothing left to undo; may be nil

	timeless bool // the command does not need the times of the batch
}

// A stamp says when a batch ran, in milliseconds on the master's clock. The lane that wrote the batch fills it in before
// it hands out the replies; if the connection broke, when the connection has been killed.
type stamp struct {
	from, to int64 // no command of the batch ran before from or after to
	open     bool  // to is not known: the batch may still run
	era      int   // of the master's clock: after a jump its times from before mean nothing
}

// newUndo takes the command, luaUndo or luaPutBack, whose times take fills in, and how long the key was set for.
func newUndo(en *entry, kept instant, args []any) *undo {
	return &undo{Call: masters.Call{Args: args}, entry: en, lane: en.lane, kept: kept}
}

// pushUndos sends undos, and calls after when the certain ones are answered, or one InstanceTimeout has passed.
func pushUndos(e *Engine, certain, possible []*undo, after func()) {
	for _, u := range possible {
		u.lane.pushUndo(u)
	}
	if len(certain) == 0 {
		after()
		return
	}
	w := newWait(e, len(certain), after)
	for _, u := range certain {
		u.done = w.one
		u.lane.pushUndo(u)
	}
}

func (u *undo) command() *masters.Call { return &u.Call }

// take is called by the lane, which alone knows the stamp.
func (u *undo) take(now instant) bool {
	if u.gone == 0 {
		u.gone = now + u.kept + Drift(u.kept, u.lane.engine.cfg.DriftFactor)
	}
	s := u.entry.stamp
	if now >= u.gone || !u.timeless && (s.open || s.era != u.lane.master.watch.era() || u.entry.hasPassed()) {
		u.finish()
		return false
	}
	u.Call = masters.Call{Args: u.Args}
	if !u.timeless {
		u.Args[6], u.Args[7] = s.from, s.to
	}
	return true
}

// reply is the end, unless the master answered an error: then the undo is tried again.
func (u *undo) reply(now instant) {
	if u.Reply == int64(1) {
		u.lane.engine.stats.undone.Add(1)
	}
	u.finish()
	if u.Err != nil && now < u.gone {
		u.lane.postpone(u)
	}
}

// lost keeps the undo for the next connection.
func (u *undo) lost(string) { u.lane.pushUndo(u) }

func (u *undo) finish() {
	if u.done != nil {
		u.done()
		u.done = nil
	}
}

// A wait calls after once: when the last of several things is done, or when one InstanceTimeout has passed.
type wait struct {
	left     atomic.Int32
	deadline instant
	after    func()
	called   atomic.Bool
}

func newWait(e *Engine, n int, after func()) *wait {
	w := &wait{deadline: e.waited() + e.cfg.InstanceTimeout, after: after}
	w.left.Store(int32(n))
	e.sweeper.add(w)
	return w
}

func (w *wait) one() {
	if w.left.Add(-1) == 0 {
		w.expire()
	}
}

func (w *wait) due() instant { return w.deadline }

func (w *wait) expire() {
	if w.called.CompareAndSwap(false, true) {
		w.after()
	}
}
