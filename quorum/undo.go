package quorum

import (
	"sync/atomic"
	"time"

	"lockproxy/quorum/masters"
)

// noAnswer stands for the time of an answer that never came.
const noAnswer instant = -1

// An undo removes the key that one attempt set on one master (rule 4). It goes through the lane that the attempt went
// through, so it cannot overtake it, and it is exact: the key must hold the attempt's token, and must not have more
// time left than the attempt's own key can have. A token that is used again, or a constant one, therefore does not
// cost another attempt its vote.
//
// It outlives the attempt: a lane keeps it over reconnections until it is answered or the key is gone by itself.
type undo struct {
	masters.Call
	lane     *lane
	kept     instant
	answered instant // when the attempt's command was answered, or noAnswer
	gone     instant // when the key must have expired
	repeat   bool    // the attempt's command may still run: undo again until gone
	done     func()  // called at the first answer, or when there is nothing left to undo; may be nil
}

func newUndo(l *lane, a *attempt, answered instant) *undo {
	return &undo{
		Call:     masters.Call{Args: []any{"EVAL", luaUndo.text, int64(1), a.req.Key.Name, a.req.Token, int64(0)}},
		lane:     l,
		kept:     a.kept,
		answered: answered,
		gone:     l.engine.now() + a.kept + Drift(a.kept, l.engine.cfg.DriftFactor),
	}
}

func (u *undo) command() *masters.Call { return &u.Call }

// take computes, as late as can be, how much time the attempt's own key can have left: it was set before its answer
// came, and the master's clock may be slow by the drift factor.
func (u *undo) take(now instant) bool {
	if now >= u.gone {
		u.finish()
		return false
	}
	left := u.kept
	if u.answered != noAnswer {
		since := float64(now-u.answered) * (1 - u.lane.engine.cfg.DriftFactor)
		left -= instant(since)
	}
	u.Answered = false
	u.repeat = u.answered == noAnswer && u.lane.unkilled
	u.Args[5] = ceilMillis(left).Milliseconds()
	return true
}

// repeatEvery is how often an undo is repeated where the master does not let us kill the old connection.
const repeatEvery = time.Second

func (u *undo) reply(now instant) {
	if u.Reply == int64(1) {
		u.lane.engine.stats.undone.Add(1)
	}
	if u.repeat && now < u.gone {
		time.AfterFunc(repeatEvery, func() { u.lane.pushUndo(u) })
	}
	u.finish()
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
	w := &wait{deadline: e.now() + e.cfg.InstanceTimeout, after: after}
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
