package quorum

import (
	"context"
	"sync"
	"sync/atomic"
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
	engine *Engine
	master *master
	roster roster // of the database
	db     int
	peers  laneSet // the lanes of the database, this one among them
	queue  laneQueue
	ledger ledger

	mu         sync.Mutex  // guards quarantine
	quarantine *quarantine // nil if the master is clean

	behind atomic.Bool // the master is to be told the epochs; see tellOthers

	// The rest belongs to the loop.
	link      *link
	last      *link // the connection before
	told      masters.Told
	expiries  expiries
	loose     bool // a former connection could not be killed: what it carried may run at any later time
	running        // the batch
	answered  int  // requests in the batch before
	expected  int  // in the next; see linger
	lingering *time.Timer
	suspect   bool // the master is to be assessed again
	witness   witness
	charges   int // for which the database has been marked
	ends      ends
	refused   instant // since when the server is refused: a later one was known under its address; 0 if it is not
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
	l := &lane{
		engine: e, master: m, roster: r, db: db, queue: newLaneQueue(e, m), lingering: time.NewTimer(0),
	}
	l.ledger.lane = l
	//mutant: a new database is taken for marked
	l.charges = int(m.marked.Load()) // if there are more, the lane is to mark its database itself
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
			l.pause(ctx, failures)
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
	if l.behind.Load() {
		l.tellEpochs()
	}
	l.queue.together(func() {
		//mutant: settings concern database 0
		l.ask([]any{"INFO"}, l.patrol) // each lane, as each is judged by what its own connection was told
		//mutant: one database's lane knows what is kept on disk
		//mutant: fsync always is not noticed
		if l.master.tellsAppend() {
			l.ask([]any{"CONFIG", "GET", masters.AppendSettings}, l.patrolFiles)
			l.ask([]any{"CONFIG", "GET", masters.PlaceSettings}, l.patrolFiles)
			//mutant: who grants nothing knows of no horizon
			l.ask([]any{"GET", endKey}, l.hearEnd)
			if l.master.answersFirst() {
				l.ask([]any{"CONFIG", "GET", masters.ScriptLimit}, l.patrolFiles)
			}
			l.witness.write(l)
		}
	})
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
