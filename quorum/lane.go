package quorum

import (
	"context"
	"strings"
	"sync"
	"time"

	"lockproxy/quorum/masters"
)

// A lane is one ordered connection to one master and database. All commands on one resource go to one lane (rule 2),
// in the order in which they were pushed, except that undos go first: the key they remove was set before.
//
// A lane gathers what waits, writes it in one batch, reads the replies, and gathers again, so batches grow with load.
// A late master loses votes, not its connection (rule 3): only an I/O error or silence ends one.
type lane struct {
	engine *Engine
	master *master
	db     int
	wake   chan struct{}

	mu     sync.Mutex // guards all below
	undos  []*undo
	queue  []request
	down   string  // why there is no connection, once that is known
	busy   instant // when the running batch was written; idle if none runs
	owed   map[hold]bool
	closed bool

	// The rest belongs to the loop.
	link     *link
	last     *link // the connection before
	unkilled bool  // a former connection could not be killed: what it held may still run
	batch    []request
	spare    []request // the queue's other buffer
	calls    []*masters.Call
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

const (
	idle     instant = -1
	batchMax         = 1024
)

func newLane(e *Engine, m *master, db int) *lane {
	return &lane{engine: e, master: m, db: db, wake: make(chan struct{}, 1), busy: idle}
}

// push queues a request. If the request cannot be answered in time it returns the cause, and forgets the request.
func (l *lane) push(r request, now instant) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrClosed.Error()
	case l.down != "":
		return l.down
	case l.late(now) != "":
		return l.late(now)
	case len(l.queue) >= l.engine.cfg.QueueMax:
		return "has too many commands waiting (queue_max)"
	}
	l.queue = append(l.queue, r)
	l.signal()
	return ""
}

// late says how long the master has owed an answer, if longer than a vote may take: what is sent now cannot be
// answered in time either. It is called with mu held.
func (l *lane) late(now instant) string {
	if l.busy == idle || now-l.busy <= l.engine.cfg.InstanceTimeout {
		return ""
	}
	return "has not answered for " + (now - l.busy).Round(time.Millisecond).String()
}

// pushUndo queues an undo, for as long as it takes.
func (l *lane) pushUndo(u *undo) {
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
	for {
		l.mu.Lock()
		l.batch = l.batch[:0]
		n := min(len(l.undos), batchMax)
		for _, u := range l.undos[:n] {
			l.batch = append(l.batch, u)
		}
		l.undos = append(l.undos[:0], l.undos[n:]...)
		n = min(len(l.queue), batchMax-n)
		l.batch = append(l.batch, l.queue[:n]...)
		if n == len(l.queue) {
			clear(l.queue)
			l.queue, l.spare = l.spare[:0], l.queue[:0]
		} else {
			l.queue = append(l.queue[:0], l.queue[n:]...)
		}
		l.mu.Unlock()
		if len(l.batch) > 0 {
			break
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return false
		}
	}
	now := l.engine.now()
	wanted := l.batch[:0]
	for _, r := range l.batch {
		if r.take(now) {
			wanted = append(wanted, r)
		}
	}
	clear(l.batch[len(wanted):])
	l.batch = wanted
	return len(wanted) > 0
}

// exchange writes the batch, reads the replies, and hands each to its request.
func (l *lane) exchange() {
	l.calls = l.calls[:0]
	for _, r := range l.batch {
		l.calls = append(l.calls, r.command())
	}
	began := l.engine.now()
	l.setBusy(began)
	err := l.link.conn.Exec(l.calls)
	now := l.engine.now()
	l.setBusy(idle)
	l.master.roundTrip.Store(int64(now - began))

	cause := ""
	if err != nil {
		cause = describe(err)
		l.disconnect(cause) // first, so that no new request comes before the cause is known
	}
	forgotten := false
	for i, r := range l.batch {
		if c := l.calls[i]; c.Answered {
			forgotten = forgotten || c.Err != nil && strings.HasPrefix(c.Err.Error(), "NOSCRIPT")
			r.reply(now)
		} else {
			r.lost(cause)
		}
	}
	l.mu.Lock()
	l.owed = nil
	l.mu.Unlock()
	clear(l.batch)
	clear(l.calls)
	if forgotten && l.link != nil {
		// The script cache was flushed. Those commands have failed; the next ones will find the scripts.
		if err := l.link.loadScripts(); err != nil {
			l.disconnect(describe(err))
		}
	}
}

// A hold is a token on a resource.
type hold struct{ name, token string }

// owe notes a release that could not be sent while a batch is in flight. If that batch takes the lock for the same
// token, as one that a stalled master runs when it wakes, the key is to be removed.
func (l *lane) owe(h hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy == idle || len(l.owed) >= l.engine.cfg.QueueMax {
		return
	}
	if l.owed == nil {
		l.owed = make(map[hold]bool)
	}
	l.owed[h] = true
}

func (l *lane) owes(h hold) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owed[h]
}

func (l *lane) setBusy(t instant) {
	l.mu.Lock()
	l.busy = t
	l.mu.Unlock()
}

// nudge makes an idle lane say something, so that a broken connection is found before a command is lost on it.
func (l *lane) nudge(now instant) {
	l.mu.Lock()
	quiet := l.busy == idle && len(l.queue) == 0 && l.down == ""
	l.mu.Unlock()
	if quiet {
		l.push(&heartbeat{Call: masters.Call{Args: heartbeatArgs}}, now)
	}
}

// close ends the lane: every request has failed.
func (l *lane) close() {
	l.mu.Lock()
	l.closed = true
	queue, undos := l.queue, l.undos
	l.queue, l.undos = nil, nil
	l.mu.Unlock()
	for _, r := range queue {
		r.lost(ErrClosed.Error())
	}
	for _, u := range undos {
		u.finish()
	}
}

// A heartbeat is a command whose answer nobody needs.
type heartbeat struct{ masters.Call }

var heartbeatArgs = []any{"PING"}

func (h *heartbeat) command() *masters.Call { return &h.Call }
func (h *heartbeat) take(instant) bool      { return true }
func (h *heartbeat) reply(instant)          {}
func (h *heartbeat) lost(string)            {}
