package quorum

import (
	"slices"
	"sync/atomic"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
)

// An undo removes the key that one attempt set on one master (rule 4). It goes through the lane that the attempt went
// through, so the undo cannot overtake the attempt. The undo is exact: the key must hold the attempt's token and expire in the
// millisecond that the attempt chose (expiry.go). So a token that is used again, or a constant token, does not cost another attempt its
// vote.
//
// An undo outlives its attempt: a lane keeps it over reconnections until it is answered or the key is gone by itself. If the
// attempt's connection broke and cannot be killed on the master, the attempt's SET may run at any later time: then the undo is
// repeated until the key would be gone.
type undo struct {
	masters.Call
	lane    *lane
	unknown bool          // the command's fate is unknown: the command may still run, if its connection could not be killed
	kept    time.Duration // how long the key was set for
	gone    instant       // when the key must have expired, by the engine's clock; 0 before the first try
	of      ending        // the expiry that no other key of its signature may get until the undo is over; zero if there is none
	begun   bool          // expiries.avoid was called
	misses  int           // how often the undo found no key
	once    bool          // after a miss the undo is not repeated: a key that comes later might be another client's
	done    func()        // called at the first answer, or when there is nothing left to undo; may be nil
	clean   atomic.Bool   // the key is undone, and cannot come back
}

// undoMisses is how often an undo that finds nothing is repeated, with the next heartbeats: another Exec may have replaced the value
// for a while, and puts the value back if that Exec loses.
const undoMisses = 3

// newUndo returns an undo of the key with this signature that was set on a lane's master, for kept, to expire at ends.
func newUndo(l *lane, sig signature, ends int64, kept time.Duration) *undo {
	u := &undo{lane: l, kept: kept, of: ending{sig.hash(), ends}}
	if sig.dump == "" {
		u.Args = luaUndo.whole([]string{sig.name}, sig.token, ends)
	} else {
		u.Args = luaRestoreAll.whole([]string{sig.name}, sig.dump, ends, "", "release")
	}
	return u
}

// newUndo returns an undo of a key that the entry has set, or may have set. The caller holds the round's mu.
func (en *entry) newUndo(sig signature, ends int64, kept time.Duration) *undo {
	u := newUndo(en.lane, sig, ends, kept)
	u.unknown = en.fate == unknown
	return u
}

func (u *undo) command() *masters.Call { return &u.Call }

// keeps is 0: a value that is put back was there before.
func (u *undo) keeps() time.Duration { return 0 }

func (u *undo) take(answerTime) bool {
	now := u.lane.engine.now()
	if u.gone == 0 {
		//mutant: an undo in a later batch goes unsent
		u.gone = now + u.kept + rules.Drift(u.kept, u.lane.engine.cfg.DriftFactor)
	}
	if now >= u.gone {
		u.clean.Store(true)
		u.finish()
		u.end()
		return false
	}
	if !u.begun {
		u.begun = true
		u.lane.clock.expiries.avoid(u.of)
	}
	u.Call = masters.Call{Args: u.Args}
	return true
}

// reply ends the undo, or repeats the undo if the master answered an error, or the key may still come, or come back.
func (u *undo) reply(now instant) {
	did := u.Reply == int64(1)
	if did {
		u.lane.engine.stats.undone.Add(1)
	}
	if !did {
		u.misses++
	}
	//mutant: an undo is not repeated after an error
	//mutant: the undo of what may still run is not repeated
	//mutant: what comes back is not undone
	again := u.Err != nil || !did && (u.unknown && u.lane.dialer.loose || !u.once && u.misses <= undoMisses)
	//mutant: what may come back is not reckoned with
	u.clean.Store(did)
	u.finish()
	if !again || now >= u.gone || !u.lane.queue.postpone(u) {
		u.end()
	}
}

// end lets other keys have the undo's expiry again.
func (u *undo) end() {
	if u.begun {
		u.lane.clock.expiries.free(u.of)
	}
}

// lost keeps the undo for the next connection.
func (u *undo) lost(string) {
	//mutant: an undo is lost with its connection
	if !u.lane.queue.pushUndo(u) {
		u.end()
	}
}

func (u *undo) finish() {
	if u.done != nil {
		u.done()
		u.done = nil
	}
}

// Compensation is one ledger for all operations: each entry of a round has the changes on its master, and their undoing.
//
//	changes          the master's answer, and entry.expires or execRound's ends
//	under which      operation.signatures: name with token, or with DUMP
//	signature
//	taken back       entry.undoing, and entry.undos, which remove or replace exactly these changes (undo.go)
//	revoked          round.revoked: unsent commands must not be sent, and late successes are taken back, too
//
// Three events take something back:
//
//	the round failed, or its client is gone    revoke: on every master
//	an answer comes after that                 settled, with undoAt: on that master
//	a release could not be sent                ledger.owe and settled, with operation.takeBack: one signature on that master
//
// Extensions are not taken back: the lock is the client's, and may stay for longer than the client knows.

// revoke takes back all changes of the operation on any master: revoke returns the undos, to be pushed without mu. revoke is called
// with mu held.
func (r *round) revoke() (undos []*undo) {
	r.revoked = true
	for i := range r.entries {
		undos = r.undoAt(undos, &r.entries[i])
	}
	return undos
}

// undoAt appends, once, the undos of all changes that the operation made on one master, or may have. undoAt is called with mu held.
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

// isUndone says that every key that was taken back on the master is surely gone. The caller holds the round's mu.
func (en *entry) isUndone() bool {
	return !slices.ContainsFunc(en.undos, func(u *undo) bool { return !u.clean.Load() })
}

// pushUndos sends undos, and calls after when all undos of a known fate are answered, or one InstanceTimeout has passed.
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
	left   atomic.Int32
	after  func()
	called atomic.Bool
}

func newWait(e *Engine, n int, after func()) *wait {
	w := &wait{after: after}
	w.left.Store(int32(n))
	e.sweeper.add(e.waited().plus(e.cfg.InstanceTimeout), w)
	return w
}

func (w *wait) one() {
	if w.left.Add(-1) == 0 {
		w.expire()
	}
}

func (w *wait) expire() {
	if w.called.CompareAndSwap(false, true) {
		w.after()
	}
}
