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
	wake   chan struct{}

	mu        sync.Mutex // guards all below
	undos     []*undo
	postponed []*undo // until the next heartbeat
	queue     []request
	down      string // why there is no connection, once that is known
	told      masters.Told
	busy      answerTime // when the running batch was gathered; idle if none runs
	vague     string     // that the answer to the running batch came too late to tell the time by; see observe
	asked     answerTime // for the time again, then
	current   *link      // link, for nudge
	handing   bool       // the running batch has been answered and is being handed out
	repeated  int        // so many at the head of queue are of that batch; see pushAgain
	pushed    int        // so many requests were ever queued, each counted once
	owed      map[signature]debt
	broken    map[signature][]*entry // entries of takers, of unknown fate, until the next connection
	filling   map[signature]bool     // of each lock that the master is to be given; see fill.go
	enough    int                    // how many requests wake an idle loop
	gathering bool                   // see together
	closed    bool

	quarantine *quarantine // nil if the master is clean

	behind atomic.Bool // the master is to be told the epochs; see tellOthers

	// The rest belongs to the loop.
	link      *link
	last      *link // the connection before
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

// idle is the busy of a lane without a batch.
const idle answerTime = -1

func newLane(e *Engine, m *master, db int, r roster) *lane {
	l := &lane{
		engine: e, master: m, roster: r, db: db, wake: make(chan struct{}, 1), busy: idle,
		lingering: time.NewTimer(0), filling: map[signature]bool{},
	}
	//mutant: a new database is taken for marked
	l.charges = int(m.marked.Load()) // if there are more, the lane is to mark its database itself
	return l
}

// push queues a request. If the request cannot be answered in time it returns why, and forgets the request.
func (l *lane) push(r request, now answerTime) failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.refuses() != "":
		return failure{FailedConnection, l.refuses()}
	case !l.overdue(now).none():
		return l.overdue(now)
	case len(l.queue) >= l.engine.cfg.QueueMax:
		return failure{FailedLate, "has too many commands waiting (queue_max)"}
	}
	l.queue = append(l.queue, r)
	l.pushed++
	if l.busy == idle && !l.gathering && len(l.queue) >= l.enough { // else the loop comes by itself
		l.signal()
	}
	return failure{}
}

// refuses returns why nothing can be sent, "" if it can. It is called with mu held.
func (l *lane) refuses() string {
	if l.closed {
		return ErrClosed.Error()
	}
	return l.down
}

// overdue says for how long an answer of the master has been due, if longer than a vote may take: what is sent now cannot be
// answered in time either. It is called with mu held.
func (l *lane) overdue(now answerTime) failure {
	if l.busy == idle || l.handing || now.since(l.busy) <= l.engine.cfg.InstanceTimeout {
		return failure{}
	}
	return l.late(now, "has not answered for "+now.since(l.busy).Round(time.Millisecond).String())
}

// late returns why a vote did not come in time: that the master is silent, or that it does answer, and is being asked for the time
// again. It is called with mu held.
func (l *lane) late(now answerTime, silent string) failure {
	if l.vague != "" && now.since(l.asked) <= l.engine.cfg.InstanceTimeout {
		return failure{FailedClock, l.vague}
	}
	usual := time.Duration(l.master.roundTrip.Load())
	if l.busy != idle && now.since(l.busy) > 3*usual { // it is not the way that is long
		return failure{FailedLate, silent}
	}
	return failure{FailedLate, silent + l.engine.raiseTimeout(usual)}
}

// lateness is late for a round that is over.
func (l *lane) lateness() failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late(l.engine.waited(), l.engine.lateCause)
}

// pushUndo queues an undo, for as long as it takes, if there is room.
func (l *lane) pushUndo(u *undo) bool {
	l.mu.Lock()
	full := l.closed || len(l.undos) >= l.engine.cfg.QueueMax
	if !full {
		l.undos = append(l.undos, u)
		l.signal()
	}
	l.mu.Unlock()
	if full { // what it would have removed expires by itself
		u.finish()
	}
	return !full
}

func (l *lane) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
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
	l.mu.Lock()
	//mutant: silence never ends a connection
	if l.busy != idle && !l.handing && now.since(l.busy) > l.engine.cfg.MasterDeadAfter && l.current != nil {
		l.current.silent.Store(true)
		_ = l.current.conn.Close() // its exchange ends, and the lane connects anew
	}
	if len(l.postponed) > 0 {
		l.undos = append(l.undos, l.postponed...)
		l.postponed = nil
		l.signal()
	}
	l.mu.Unlock()
	//mutant: who is away is told of an epoch once
	if l.behind.Load() {
		l.tellEpochs()
	}
	l.together(func() {
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

// together has all that f pushes go in one batch: to a master far away, each batch takes long, and what clients send waits for it.
func (l *lane) together(f func()) {
	l.mu.Lock()
	l.gathering = true
	l.mu.Unlock()
	f()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gathering = false; l.busy == idle && len(l.queue) > 0 {
		l.signal()
	}
}

// postpone queues an undo for the next heartbeat, if there is room.
func (l *lane) postpone(u *undo) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.postponed) >= l.engine.cfg.QueueMax {
		return false
	}
	l.postponed = append(l.postponed, u)
	return true
}

// close ends the lane: every request has failed.
func (l *lane) close() {
	l.mu.Lock()
	l.closed = true
	queue, undos := l.queue, l.undos
	l.queue, l.undos, l.postponed = nil, nil, nil
	l.mu.Unlock()
	drop(queue, ErrClosed.Error())
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
