package quorum

import (
	"context"
	"time"

	"lockproxy/quorum/masters"
)

// A lane is the one ordered connection to one master and database. So all commands on one resource go through one lane
// (rule 2), in the order in which they were pushed, except that undos go first: the key they remove was set before.
//
// A lane gathers what waits, writes it in one batch, reads the replies, and gathers again, after a moment for those who were
// answered to ask again; so batches grow with load.
// A late master loses votes, not its connection (rule 3): only an I/O error or silence ends one.
type lane struct {
	target
	queue    laneQueue // what waits
	ledger   ledger    // what is owed
	recovery recovery  // the master's quarantine
	epochs   epochs    // the masters' epochs
	horizon  horizon   // the master's horizon
	clock    laneClock // the master's clock
	assessor assessor  // may the master vote?
	dialer   dialer    // makes the connections

	// The rest belongs to the loop.
	link      *link // nil if there is none
	told      masters.Told
	batch     batch
	suspected bool // the master is to be assessed again
	answered  int  // requests in the batch before
	expected  int  // requests in the next batch; see linger
	lingering *time.Timer
}

// A request is one command in a lane. Exactly one of reply and lost follows a take that returned true.
type request interface {
	command() *masters.Call
	// keeps is for how long masters keep what the request may set, if a client may rely on that: the horizon must last as long.
	keeps() time.Duration
	// take is asked just before the request is written; false drops it.
	take(now answerTime) bool
	// reply is told that the answer is in command.
	reply(now instant)
	// lost is told that the connection broke before the answer.
	lost(cause string)
}

func newLane(e *Engine, m *master, db int, r roster) *lane {
	t := target{engine: e, master: m, db: db}
	l := &lane{target: t, queue: newLaneQueue(e, m), lingering: time.NewTimer(0)}
	l.ledger.lane = l
	l.clock.target, l.clock.queue = t, &l.queue
	l.horizon.clock = &l.clock
	l.epochs.examiner, l.epochs.slot, l.epochs.roster = l, m.slot, r
	l.recovery.target, l.recovery.examiner, l.recovery.epochs = t, l, &l.epochs
	l.assessor = assessor{target: t, examiner: l, clock: &l.clock, horizon: &l.horizon, epochs: &l.epochs, recovery: &l.recovery}
	//mutant: a new database is taken for marked
	l.assessor.marked = int(m.marked.Load()) // if there are more, the lane is to mark its database itself
	l.dialer = dialer{target: t, clock: &l.clock, assessor: &l.assessor}
	return l
}

// run is the lane's loop. It ends when ctx does.
func (l *lane) run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		if l.link == nil {
			if l.connect(ctx) {
				failures = 0
				continue
			}
			failures++
			l.dialer.pause(ctx, failures)
			continue
		}
		l.linger()
		if l.gather(ctx) {
			l.exchange()
		}
	}
	if l.link != nil {
		l.link.close()
		l.master.disconnected()
	}
	l.close()
}

// nudge makes the master say something: so a broken connection is found before a command is lost on it, and so is whatever
// may cost the master its vote.
func (l *lane) nudge(now answerTime) {
	l.queue.endSilence(now)
	l.queue.resume()
	//mutant: who is away is told of an epoch once
	if l.epochs.behind.Load() {
		l.epochs.tell()
	}
	l.queue.together(l.assessor.patrol)
}

// close ends the lane: every request has failed.
func (l *lane) close() {
	requests, undos := l.queue.close()
	drop(requests, ErrClosed.Error())
	for _, u := range undos {
		u.finish()
	}
}

// drop fails requests that were not sent.
func drop(queue []request, cause string) {
	for _, r := range queue {
		switch r := r.(type) {
		case *entry:
			r.giveUp(dropped, failure{FailedConnection, cause})
		case *fill:
			//mutant: a fill that was not sent keeps others away
			r.over()
		case *page:
			r.lost(cause)
		}
	}
}
