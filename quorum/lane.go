package quorum

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"lockproxy/quorum/masters"
)

// A lane is the only connection to a database of a master, and keeps its order. So all commands on one resource go through one lane
// (rule 2), in the order in which they were pushed.
//
// A lane gathers the requests that wait, writes them in one batch, reads the replies, and gathers again, after a moment for the
// clients that were answered to ask again; so batches grow with load. To a master far away a lane writes the next batch while
// replies are under way; see flight. A late master loses votes, not its connection (rule 3): only an
// I/O error or silence ends a connection.
//
// Operations push requests and undos to the queue, note in the ledger the debts of the master, and choose by the clock when keys
// expire. The other parts judge the master.
type lane struct {
	target
	queue    laneQueue
	ledger   ledger
	recovery recovery
	epochs   epochs
	doubt    atomic.Pointer[string] // why the votes of the latest batch did not count; nil if they did

	// The rest belongs to the loop.
	clock    laneClock
	horizon  horizon
	assessor assessor
	dialer   dialer
	distance distance
	batch    *batch   // the batch that is being gathered, or handed out
	spare    []*batch // to be used again

	connection *connection             // nil if there is none
	told       masters.Told            // reports to the log of lost connections
	suspected  bool                    // the master is to be assessed again, and until then its votes do not count
	mending    func(*connection) error // the work on the connection for which answers call; nil if none
	answered   int                     // requests in the batch before
	expected   int                     // requests in the next batch; see linger
	lingering  *time.Timer
}

// A request is one command in a lane. After a take that returned true follows exactly one call of reply or lost.
type request interface {
	command() *masters.Call
	// keeps is for how long masters keep the key that the request may set, if a client relies on the key: the horizon lasts as long.
	keeps() time.Duration
	// take is asked just before the request is written; false drops the request.
	take(now answerTime) bool
	// reply is told that the answer is in command.
	reply(now instant)
	// lost is told that the connection broke before the answer.
	lost(cause string)
}

func newLane(e *Engine, m *master, db int, r roster) *lane {
	t := target{engine: e, master: m, db: db}
	l := &lane{target: t, queue: newLaneQueue(e, m), batch: &batch{}, lingering: time.NewTimer(0)}
	l.ledger.lane = l
	l.clock.target, l.clock.queue = t, &l.queue
	l.horizon.clock = &l.clock
	l.epochs.examiner, l.epochs.slot, l.epochs.roster = l, m.slot, r
	l.recovery.target, l.recovery.examiner, l.recovery.epochs = t, l, &l.epochs
	l.assessor = assessor{target: t, examiner: l, clock: &l.clock, horizon: &l.horizon, epochs: &l.epochs, recovery: &l.recovery}
	//mutant: a new database is taken for marked
	l.assessor.marked = int(m.marked.Load()) // after further jumps the lane is to mark its database itself
	l.dialer = dialer{target: t, clock: &l.clock, assessor: &l.assessor}
	return l
}

// run is the lane's loop. run ends when ctx does.
func (l *lane) run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil || l.connection != nil && !l.connection.flight.isEmpty() {
		if l.connection == nil {
			if l.connect(ctx) {
				failures = 0
				continue
			}
			failures++
			masters.Pause(ctx, failures, func(most time.Duration) time.Duration { return l.dialer.spread(most, failures) })
			continue
		}
		if !l.connection.flight.isEmpty() {
			l.proceed()
			continue
		}
		l.linger()
		if l.gather(ctx) {
			l.exchange()
		}
	}
	if l.connection != nil {
		l.connection.close()
		l.master.disconnected()
	}
	l.close()
}

// isFar says that the master is so far away that a batch is to be written behind others. Near masters answer so soon that a larger
// batch, which costs less, is better.
func (l *lane) isFar() bool { return l.distance.trip >= l.engine.cfg.FarAway }

// proceed takes the next step while batches are under way: hands out the first batch if answered, writes the next batch if allowed, or
// waits for either.
func (l *lane) proceed() {
	f := &l.connection.flight
	if f.hasAnswer() {
		l.complete(f.take())
		return
	}
	var due <-chan time.Time
	var wake <-chan struct{}
	wait, may := f.wait(l.engine.now(), l.distance.trip)
	switch {
	case !may || l.suspected || l.mending != nil: // else the master would never be assessed under load
	case wait > 0:
		l.lingering.Reset(wait)
		due = l.lingering.C
	case l.queue.awaitNext():
		l.follow()
		return
	default:
		wake = l.queue.wake
	}
	select {
	case <-f.done:
		f.read++
	case <-due:
	case <-wake:
	}
	l.lingering.Stop()
}

// follow writes the waiting requests behind the batches under way.
func (l *lane) follow() {
	runtime.Gosched() // for other clients, just answered, to ask again
	l.begin()
	if l.collect() && l.take() {
		l.exchange()
	}
}

// nudge makes the master say something, so that a broken connection is found before a command is lost on it, and a setting that
// costs the master its vote before a vote is.
func (l *lane) nudge(now answerTime) {
	l.queue.endSilence(now)
	l.queue.resume()
	//mutant: who is away is told of an epoch once
	if l.epochs.behind.Load() {
		l.epochs.tell()
	}
	l.queue.together(l.assessor.patrol)
}

// heartbeatArgs ask for nothing: the proof of the batch says the rest.
var heartbeatArgs = []any{"PING"}

// heartbeat makes the master say something.
func (l *lane) heartbeat() { l.ask(heartbeatArgs, nil) }

// ask puts a question to the master, as examiner has it.
func (l *lane) ask(command []any, answer func(reply any)) {
	l.queue.push(&question{Call: masters.Call{Args: command}, lane: l, answer: answer}, l.engine.waited())
}

// suspect has the master assessed again, as examiner has it.
func (l *lane) suspect() { l.suspected = true }

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

// After a batch of fewRequests or fewer, a larger next batch is not worth a wait. lingerMost is the longest wait after larger batches.
const (
	fewRequests = 2
	lingerMost  = 300 * time.Microsecond
)

// linger waits a moment for the clients that have just been answered, because they may ask again: in a larger batch each request
// costs less, here and on the masters. linger expects as many requests as lately, and fewer each time that they do not come.
func (l *lane) linger() {
	l.expected = max(l.answered, l.expected*3/4)
	if l.answered <= fewRequests || l.isFar() { // a later request goes in the next batch, at once
		return
	}
	runtime.Gosched()
	l.lingering.Reset(min(lingerMost, l.engine.cfg.InstanceTimeout/50))
	for !l.queue.await(l.expected) {
		select {
		case <-l.queue.wake:
			continue
		case <-l.lingering.C:
		}
		break
	}
	l.lingering.Stop()
	l.queue.await(1)
}
