package quorum

import (
	"context"
	"slices"
	"strings"
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
	wake   chan struct{}

	mu        sync.Mutex // guards all below
	undos     []*undo
	postponed []*undo // until the next heartbeat
	queue     []request
	down      string   // why there is no connection, once that is known
	warned    []string // of these causes the log has, since there was a connection
	busy      instant  // when the running batch was gathered; idle if none runs
	current   *link    // link, for nudge
	handing   bool     // the running batch has been answered and is being handed out
	repeated  int      // so many at the head of queue are of that batch; see pushAgain
	pushed    int      // so many requests were ever queued, each counted once
	owed      map[hold]debt
	broken    map[hold]*entry // entries of takers, of unknown fate, until the next connection
	enough    int             // how many requests wake an idle loop
	closed    bool

	quarantine *quarantine // nil if the master is clean

	behind atomic.Bool // the master is to be told the epochs; see tellOthers

	// The rest belongs to the loop.
	link        *link
	last        *link // the connection before
	expiries    expiries
	loose       bool  // a former connection could not be killed: what it carried may run at any later time
	clockNow    int64 // what the master's clock shows at most while the batch is gathered, ms
	unsure      bool  // that is not known well enough to set a key by it
	gathered    instant
	begun       int64 // of the watch, then
	batch       []request
	calls       []*masters.Call
	words       []any         // of the batch's usual commands; see lay
	extension   masters.Call  // of the horizon, at the head of a batch that needs it
	proof       proof         // at the end of every batch
	keeps       time.Duration // how long what the batch may set lives
	doubt       doubt         // why the votes of the batch do not count
	unkept      doubt         // why those do not count that set something to expire
	quarantined string        // why those do not count that rest on something not being there
	epoch       int64         // of the master, in this batch
	answered    int           // requests in the batch before
	expected    int           // in the next; see linger
	lingering   *time.Timer
	again       bool // the master is to be assessed again
	marked           // the charges that the marks on the master answer, and evictions
}

// A request is one command in a lane. Exactly one of reply and lost follows a take that returned true.
type request interface {
	command() *masters.Call
	// take is asked just before the request is written; false drops it.
	take(now instant) bool
	// reply is told that the answer is in command.
	reply(now instant)
	// lost is told that the connection broke before the answer.
	lost(cause string)
}

// idle is the busy of a lane without a batch.
const idle instant = -1

// batchMax bounds how many requests wait for one exchange.
const batchMax = 1024

func newLane(e *Engine, m *master, db int, r roster) *lane {
	l := &lane{
		engine: e, master: m, roster: r, db: db, wake: make(chan struct{}, 1), busy: idle,
		lingering: time.NewTimer(0),
	}
	if is := m.marked.Load(); is != nil { // else the lane is to mark its database itself
		l.marked = *is
	}
	return l
}

// push queues a request. If the request cannot be answered in time it returns why, and forgets the request.
func (l *lane) push(r request, now instant) doubt {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.refuses() != "":
		return doubt{FailedConnection, l.refuses()}
	case l.late(now) != "":
		return doubt{FailedLate, l.late(now)}
	case len(l.queue) >= l.engine.cfg.QueueMax:
		return doubt{FailedLate, "has too many commands waiting (queue_max)"}
	}
	l.queue = append(l.queue, r)
	l.pushed++
	if l.busy == idle && len(l.queue) >= l.enough { // else the loop comes by itself
		l.signal()
	}
	return doubt{}
}

// refuses returns why nothing can be sent, "" if it can. It is called with mu held.
func (l *lane) refuses() string {
	if l.closed {
		return ErrClosed.Error()
	}
	return l.down
}

// late says how long the master has owed an answer, if longer than a vote may take: what is sent now cannot be
// answered in time either. It is called with mu held.
func (l *lane) late(now instant) string {
	if l.busy == idle || l.handing || now-l.busy <= l.engine.cfg.InstanceTimeout {
		return ""
	}
	return "has not answered for " + (now - l.busy).Round(time.Millisecond).String()
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
		l.master.disconnected("")
	}
	l.close()
}

// gather waits for requests and takes those that are still wanted into the batch.
func (l *lane) gather(ctx context.Context) bool {
	for !l.fill() {
		select {
		case <-l.wake:
		case <-ctx.Done():
			return false
		}
	}
	now := l.engine.waited()
	l.begun = l.master.watch.begun.Load() // before our clock is read: see putRight
	l.gathered = l.engine.catchUp()
	l.clockNow = l.master.watch.latest(l.gathered, l.link.clock, l.link.clockAt)
	if l.unsure = !l.master.watch.sure(l.engine.uncertainty()); l.unsure {
		l.batch = append(l.batch, &question{Call: masters.Call{Args: heartbeatArgs}, lane: l}) // so that it is known afterwards
	}
	n := len(l.batch)
	l.batch = slices.DeleteFunc(l.batch, func(r request) bool { return !r.take(now) })
	if len(l.batch) < n {
		l.takeLate(now)
	}
	if len(l.batch) == 0 {
		l.rest()
	}
	return len(l.batch) > 0
}

// fill moves what waits into the batch.
func (l *lane) fill() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batch = l.batch[:0]
	n := min(len(l.undos), batchMax)
	for _, u := range l.undos[:n] {
		l.batch = append(l.batch, u)
	}
	l.undos = slices.Delete(l.undos, 0, n)
	n = min(len(l.queue), batchMax-n)
	l.batch = append(l.batch, l.queue[:n]...)
	l.queue = slices.Delete(l.queue, 0, n)
	if len(l.batch) == 0 {
		return false
	}
	l.busy = l.engine.waited()
	return true
}

// lay returns the words of a command as Args, for as long as the batch lasts: a command that is built for each master
// then costs no memory of its own.
func (l *lane) lay(words ...any) []any {
	from := len(l.words)
	l.words = append(l.words, words...)
	return l.words[from:len(l.words):len(l.words)]
}

// rest ends a batch.
func (l *lane) rest() {
	clear(l.batch)
	clear(l.calls)
	clear(l.words)
	l.words = l.words[:0]
	l.mu.Lock()
	l.busy, l.handing, l.repeated = idle, false, 0
	l.forgetOwed()
	l.mu.Unlock()
}

// exchange writes the batch, reads the replies, and hands each to its request.
func (l *lane) exchange() {
	l.calls = l.proof.begin(l.calls[:0], len(l.batch))
	l.extendHorizon()
	first := len(l.calls)
	for _, r := range l.batch {
		l.calls = append(l.calls, r.command())
	}
	l.calls = l.proof.ask(l.calls)
	l.proof.sent = l.engine.now()
	err := l.link.conn.Exec(l.calls)
	now := l.engine.catchUp()
	l.proof.received = now
	l.master.roundTrip.Store(int64(now - l.proof.sent))
	l.readProof(err)
	l.mu.Lock()
	l.handing = true
	l.mu.Unlock()
	cause := ""
	if err != nil {
		cause = masters.Describe(err)
		if l.link.silent.Load() {
			cause = "is silent"
		}
		l.disconnect(cause) // first, so that no new request comes before the cause is known
	}
	mend := l.handOut(l.calls[first:], now, cause)
	if mend == nil && l.again {
		mend = l.reassess
	}
	l.again = false
	l.answered = len(l.batch)
	l.rest()
	if mend != nil && l.link != nil {
		l.mend(mend)
	}
}

// readProof finds out when the batch ran and whether its votes count.
func (l *lane) readProof(err error) {
	l.doubt, l.unkept, l.epoch = doubt{}, doubt{}, l.link.epoch
	l.quarantined = l.quarantineCause()
	if err != nil {
		l.doubt = doubt{FailedConnection, "did not answer to the end of the batch"}
		return
	}
	if ms, ok := millis(&l.proof.last); ok {
		l.learnHorizon(ms)
		l.link.clock, l.link.clockAt = ms, l.proof.received
	}
	l.doubt, l.unkept = l.vouch(), l.unkeptCause()
	if !l.doubt.none() || !l.unkept.none() {
		l.master.dropped.Add(1)
	}
}

// mend does to the link what answers asked for, or gives it up. The lane is busy meanwhile, so that silence ends this too.
func (l *lane) mend(f func(*link) error) {
	l.mu.Lock()
	l.busy = l.engine.waited()
	l.mu.Unlock()
	if err := f(l.link); err != nil {
		l.disconnect(masters.Describe(err))
	}
	l.rest()
}

// handOut gives each request its answer, and returns what the answers ask to be done about the link.
func (l *lane) handOut(calls []*masters.Call, now instant, cause string) (mend func(*link) error) {
	for i, r := range l.batch {
		c := calls[i]
		if !c.Answered {
			r.lost(cause)
			continue
		}
		if c.Err != nil {
			switch code, _, _ := strings.Cut(c.Err.Error(), " "); code {
			case "NOSCRIPT": // the script cache was flushed: what is not sent again has failed, the next will find the scripts
				mend = (*link).loadScripts
				if l.sendAgain(i) {
					continue
				}
			case "READONLY", "NOAUTH", "MASTERDOWN": // it is no longer what the handshake found: shake hands again
				mend = func(*link) error { return c.Err }
			}
		}
		r.reply(now)
	}
	return mend
}

// nudge makes a lane say something, so that a broken connection is found before a command is lost on it, and what may cost the
// master its vote.
func (l *lane) nudge(now instant) {
	l.mu.Lock()
	if l.busy != idle && !l.handing && now-l.busy > l.engine.cfg.MasterDeadAfter && l.current != nil {
		l.current.silent.Store(true)
		_ = l.current.conn.Close() // its exchange ends, and the lane connects anew
	}
	if len(l.postponed) > 0 {
		l.undos = append(l.undos, l.postponed...)
		l.postponed = nil
		l.signal()
	}
	l.mu.Unlock()
	if l.behind.Load() {
		l.tell()
	}
	l.ask([]any{"INFO"}, l.patrol) // each lane, as each is judged by what its own connection was told
	if l.master.tellsAppend() {
		l.ask([]any{"CONFIG", "GET", masters.AppendSettings}, l.patrolAppend)
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
		if en, ok := r.(*entry); ok {
			en.giveUp(dropped, doubt{FailedConnection, cause})
		}
	}
}
