package quorum

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// A laneQueue holds the requests that wait for a lane's next batch, in the order in which they were pushed, and the undos, which go
// first: the key that an undo removes was set before. A request that cannot be answered in time is turned away at once.
//
// Requests are pushed from any goroutine. The lane's loop takes them out.
type laneQueue struct {
	engine *Engine
	master *master
	wake   chan struct{} // wakes the lane's loop

	mu        sync.Mutex // guards all below
	undos     []*undo
	postponed []*undo // until the next heartbeat
	requests  []request
	pushed    int  // how many requests were ever queued, each counted once
	repeated  int  // how many requests at the head were sent before, in vain; see pushAgain
	again     int  // how many requests are sent again, in the queue or in a batch
	enough    int  // how many requests wake an idle loop
	follows   bool // the loop would write a batch behind the batches under way
	gathering bool // requests are pushed together; see together
	closed    bool

	down           string      // why there is no connection, once the cause is known
	current        *connection // the latest connection, for silence to end
	batchSince     answerTime  // since when the master's next answer is due: the first batch was gathered, or the one before answered; or idle
	handing        bool        // the first batch has been answered and is being handed out
	clockRetry     string      // why the running batch's answer was too slow to tell the time by, if TIME was sent again
	clockRetriedAt answerTime  // when TIME was sent again
}

// idle is the batchSince of a lane without a batch.
const idle answerTime = -1

func newLaneQueue(e *Engine, m *master) laneQueue {
	return laneQueue{engine: e, master: m, wake: make(chan struct{}, 1), batchSince: idle}
}

// push queues a request. If the request cannot be answered in time, push returns the cause and forgets the request.
func (q *laneQueue) push(r request, now answerTime) failure {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.refuses() != "":
		return failure{FailedConnection, q.refuses()}
	case !q.overdue(now).none():
		return q.overdue(now)
	case len(q.requests) >= q.engine.cfg.QueueMax:
		return failure{FailedLate, "has too many commands waiting (queue_max)"}
	}
	q.requests = append(q.requests, r)
	q.pushed++
	if (q.batchSince == idle || q.follows) && !q.gathering && len(q.requests) >= q.enough { // else the loop comes by itself
		q.signal()
	}
	return failure{}
}

// refuses returns why nothing can be sent, or "". The caller holds mu.
func (q *laneQueue) refuses() string {
	if q.closed {
		return ErrClosed.Error()
	}
	return q.down
}

// overdue says for how long an answer of the master has been due, if longer than a vote may take: a request that is sent now cannot
// be answered in time either. The caller holds mu.
func (q *laneQueue) overdue(now answerTime) failure {
	if q.batchSince == idle || q.handing || now.since(q.batchSince) <= q.engine.cfg.InstanceTimeout {
		return failure{}
	}
	return q.late(now, "has not answered for "+now.since(q.batchSince).Round(time.Millisecond).String())
}

// late returns why a vote did not come in time: the master is silent, or the master does answer and is being asked for the time
// again. The caller holds mu.
func (q *laneQueue) late(now answerTime, silent string) failure {
	if q.clockRetry != "" && now.since(q.clockRetriedAt) <= q.engine.cfg.InstanceTimeout {
		return failure{FailedClock, q.clockRetry}
	}
	usual := time.Duration(q.master.roundTrip.Load())
	if q.batchSince != idle && now.since(q.batchSince) > 3*usual { // the way is not long
		return failure{FailedLate, silent}
	}
	return failure{FailedLate, silent + q.engine.raiseTimeout(usual)}
}

// lateness is the cause of a vote that is pending at its round's deadline.
func (q *laneQueue) lateness() failure {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.late(q.engine.waited(), q.engine.lateCause)
}

// pushAgain queues a request of the batch that is being handed out before all others, but after earlier requests of pushAgain. These
// requests were in the queue before, so queue_max does not apply. Without a connection pushAgain returns the cause.
func (q *laneQueue) pushAgain(r request) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cause := q.refuses(); cause != "" {
		return cause
	}
	//mutant: what is sent again goes last
	q.requests = slices.Insert(q.requests, q.repeated, r)
	q.repeated++
	q.again++
	return ""
}

// pushUndo queues an undo, for as long as it takes, if there is room.
func (q *laneQueue) pushUndo(u *undo) bool {
	q.mu.Lock()
	full := q.closed || len(q.undos) >= q.engine.cfg.QueueMax
	if !full {
		q.undos = append(q.undos, u)
		q.signal()
	}
	q.mu.Unlock()
	if full { // the key expires by itself
		u.finish()
	}
	return !full
}

// postpone queues an undo for the next heartbeat, if there is room.
func (q *laneQueue) postpone(u *undo) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.postponed) >= q.engine.cfg.QueueMax {
		return false
	}
	q.postponed = append(q.postponed, u)
	return true
}

// resume queues the undos that were postponed.
func (q *laneQueue) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.postponed) > 0 {
		q.undos = append(q.undos, q.postponed...)
		q.postponed = nil
		q.signal()
	}
}

// together has all requests that f pushes go in one batch: to a master far away, each batch takes long, and clients' requests wait
// for the batch.
func (q *laneQueue) together(f func()) {
	q.hold()
	f()
	q.letGo()
}

// hold lets an idle loop sleep while requests are pushed, until letGo. A busy loop may come meanwhile, and take what is there.
func (q *laneQueue) hold() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gathering = true
}

func (q *laneQueue) letGo() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gathering = false; (q.batchSince == idle || q.follows) && len(q.requests) > 0 {
		q.signal()
	}
}

func (q *laneQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// await says whether enough requests wait, or an undo, which waits for no others. If not, the loop is woken as soon as enough
// requests wait.
func (q *laneQueue) await(enough int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enough = enough
	return len(q.requests) >= enough || len(q.undos) > 0 || q.closed
}

// awaitNext says whether a request or undo waits, for a batch behind others. If not, the loop is woken when one comes.
func (q *laneQueue) awaitNext() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enough, q.follows = 1, true
	return len(q.requests) > 0 || len(q.undos) > 0
}

// collect moves waiting requests to an empty batch, which runs from now on unless the batch stays empty.
func (q *laneQueue) collect(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.requests = b.requests[:0]
	n := min(len(q.undos), batchMax)
	for _, u := range q.undos[:n] {
		b.requests = append(b.requests, u)
	}
	q.undos = slices.Delete(q.undos, 0, n)
	n = min(len(q.requests), batchMax-n)
	b.requests = append(b.requests, q.requests[:n]...)
	q.requests = slices.Delete(q.requests, 0, n)
	b.again = min(n, q.repeated)
	q.repeated -= b.again
	b.through = q.pushed - len(q.requests)
	q.follows = false
	if len(b.requests) > 0 && q.batchSince == idle {
		q.batchSince = q.engine.waited()
	}
}

// takeUndos takes all undos out.
func (q *laneQueue) takeUndos() []*undo {
	q.mu.Lock()
	defer q.mu.Unlock()
	undos := q.undos
	q.undos = nil
	return undos
}

// runs notes that the master is asked from now on, so that silence ends the connection.
func (q *laneQueue) runs() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batchSince = q.engine.waited()
}

// retriesClock notes why TIME is sent again, for votes that end before the next answer.
func (q *laneQueue) retriesClock(why string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.clockRetry, q.clockRetriedAt = why, q.engine.waited()
}

// handsOut notes that the running batch has been answered.
func (q *laneQueue) handsOut() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.handing = true
}

// rests notes that no batch is under way.
func (q *laneQueue) rests() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batchSince, q.clockRetry, q.handing = idle, "", false
}

// goesOn notes that a batch has been handed out while others are under way: the next answer is due from now on. A batch that has
// waited behind a stalled batch is not late for the wait; nor does a batch behind a stalled batch make the stalled batch less late.
func (q *laneQueue) goesOn() {
	q.mu.Lock()
	defer q.mu.Unlock()
	//mutant: a batch is late by the time that it waited behind another
	q.batchSince, q.clockRetry, q.handing = q.engine.waited(), "", false
}

// over notes that a batch is over, and returns how many of all requests ever queued have been in a finished batch. While a request is
// to be sent again, over returns 0.
func (q *laneQueue) over(b *batch) (done int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.again -= b.again; q.again > 0 {
		return 0
	}
	return b.through
}

// progress returns how many requests were ever queued, and says whether any of them waits or is in flight.
func (q *laneQueue) progress() (pushed int, some bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pushed, q.batchSince != idle || len(q.requests) > 0
}

// A laneQueue knows the state of its lane's connection: requests are refused while there is none.

// connected notes the next connection.
func (q *laneQueue) connected(k *connection) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.down, q.current = "", k
}

// disconnected notes why there is no connection, and takes the requests out, which have failed. Undos stay for the next connection.
func (q *laneQueue) disconnected(cause string) []request {
	q.mu.Lock()
	defer q.mu.Unlock()
	failed := q.requests
	q.again -= q.repeated
	q.down, q.requests, q.repeated = cause, nil, 0
	return failed
}

// endSilence closes the connection if the master has been silent for too long: the running exchange ends, and the lane connects anew.
func (q *laneQueue) endSilence(now answerTime) {
	q.mu.Lock()
	defer q.mu.Unlock()
	//mutant: silence never ends a connection
	if q.batchSince != idle && !q.handing && now.since(q.batchSince) > q.engine.cfg.MasterDeadAfter && q.current != nil {
		q.current.silent.Store(true)
		_ = q.current.conn.Close()
	}
}

// close refuses all requests from now on, and takes out the waiting requests.
func (q *laneQueue) close() ([]request, []*undo) {
	q.mu.Lock()
	defer q.mu.Unlock()
	requests, undos := q.requests, q.undos
	q.requests, q.undos, q.postponed, q.closed = nil, nil, nil, true
	return requests, undos
}

// connection says whether there is a connection and, if there was a connection or a try, why there is none now.
func (q *laneQueue) connection() (up bool, down string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.current != nil && q.down == "", q.down
}

// unreachable returns why the master cannot be asked now, or "".
func (q *laneQueue) unreachable(now answerTime) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.down != "" || q.current == nil {
		return cmp.Or(q.down, "is being connected to")
	}
	return q.overdue(now).text
}

// isIdle says that nothing is due: a connected master has answered, and was sent all undos.
func (q *laneQueue) isIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.down != "" || len(q.undos) == 0 && q.batchSince == idle
}

// pending counts undos and clients' requests that wait.
func (q *laneQueue) pending() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.undos) + len(q.postponed)
	for _, r := range q.requests {
		if _, ok := r.(*entry); ok { // no question of the engine's own
			n++
		}
	}
	return n
}
