package quorum

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"lockproxy/quorum/masters"
)

// A lane is the one ordered connection to one master and database. So all commands on one resource go through one lane
// (rule 2), in the order in which they were pushed, except that undos go first: the key they remove was set before.
//
// A lane gathers what waits, writes it in one batch, reads the replies, and gathers again, so batches grow with load.
// A late master loses votes, not its connection (rule 3): only an I/O error or silence ends one.
type lane struct {
	engine *Engine
	master *master
	db     int
	wake   chan struct{}

	mu        sync.Mutex // guards all below
	undos     []*undo
	postponed []*undo // until the next heartbeat
	queue     []request
	down      string  // why there is no connection, once that is known
	busy      instant // when the running batch was gathered; idle if none runs
	current   *link   // link, for nudge
	handing   bool    // the running batch has been answered and is being handed out
	owed      map[hold]bool
	broken    map[hold]*entry // entries of takers, of unknown fate, until the next connection
	closed    bool

	// The rest belongs to the loop.
	link   *link
	last   *link // the connection before
	recent recent
	batch  []request
	calls  []*masters.Call
	clock  masters.Call // TIME, at the end of every batch
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
	if l.busy == idle { // else the loop comes by itself
		l.signal()
	}
	return ""
}

// late says how long the master has owed an answer, if longer than a vote may take: what is sent now cannot be
// answered in time either. It is called with mu held.
func (l *lane) late(now instant) string {
	if l.busy == idle || l.handing || now-l.busy <= l.engine.cfg.InstanceTimeout {
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
		runtime.Gosched() // those who have just been answered may have more to ask: a larger batch costs each of them less
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
	wanted := l.batch[:0]
	for _, r := range l.batch {
		if r.take(now) {
			wanted = append(wanted, r)
		}
	}
	clear(l.batch[len(wanted):])
	l.batch = wanted
	if len(wanted) == 0 {
		l.rest()
	}
	return len(wanted) > 0
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

// rest ends a batch.
func (l *lane) rest() {
	clear(l.batch)
	clear(l.calls)
	l.mu.Lock()
	l.busy, l.handing, l.owed = idle, false, nil
	l.mu.Unlock()
}

// exchange writes the batch, reads the replies, and hands each to its request.
func (l *lane) exchange() {
	stamp := &stamp{from: l.link.clock - 1, open: true}
	l.calls = l.calls[:0]
	for _, r := range l.batch {
		l.calls = append(l.calls, r.command())
		if en, ok := r.(*entry); ok {
			en.stamp = stamp
		}
	}
	l.clock = masters.Call{Args: clockArgs}
	l.calls = append(l.calls, &l.clock)
	began := l.engine.now()
	err := l.link.conn.Exec(l.calls)
	now := l.engine.now()
	l.master.roundTrip.Store(int64(now - began))
	l.mu.Lock()
	l.handing = true
	l.mu.Unlock()

	if ms, ok := millis(&l.clock); ok && err == nil {
		l.link.clock = ms
		stamp.to, stamp.open = ms, false
		l.recent.turn(ms)
	}
	l.link.stamp = stamp
	cause := ""
	if err != nil {
		cause = describe(err)
		if l.link.silent.Load() {
			cause = "is silent"
		}
		l.disconnect(cause) // first, so that no new request comes before the cause is known
	}
	mend := l.handOut(now, cause)
	l.rest()
	if mend != nil && l.link != nil {
		l.mend(mend)
	}
}

// mend does to the link what answers asked for, or gives it up. The lane is busy meanwhile, so that silence ends this too.
func (l *lane) mend(f func(*link) error) {
	l.mu.Lock()
	l.busy = l.engine.waited()
	l.mu.Unlock()
	if err := f(l.link); err != nil {
		l.disconnect(describe(err))
	}
	l.rest()
}

// handOut gives each request its answer, and returns what the answers ask to be done about the link.
func (l *lane) handOut(now instant, cause string) (mend func(*link) error) {
	for i, r := range l.batch {
		c := l.calls[i]
		if !c.Answered {
			r.lost(cause)
			continue
		}
		if c.Err != nil {
			switch code, _, _ := strings.Cut(c.Err.Error(), " "); code {
			case "NOSCRIPT": // the script cache was flushed: those commands have failed, the next will find the scripts
				mend = (*link).loadScripts
			case "READONLY", "NOAUTH", "MASTERDOWN": // it is no longer what the handshake found: shake hands again
				mend = func(*link) error { return c.Err }
			}
		}
		r.reply(now)
	}
	return mend
}

var clockArgs = []any{"TIME"}

// millis reads the reply of TIME.
func millis(c *masters.Call) (int64, bool) {
	t, ok := masters.ParseTime(c.Reply)
	return t.UnixMilli(), ok && c.Answered && c.Err == nil
}

// A hold is a token on a resource.
type hold struct{ name, token string }

// owe notes a release that could not be sent. If a batch that is in flight takes the lock for the same token, as one that
// a stalled master runs when it wakes, or if a broken connection may have, the key is to be removed.
func (l *lane) owe(h hold) {
	l.mu.Lock()
	if l.busy != idle && len(l.owed) < l.engine.cfg.QueueMax {
		if l.owed == nil {
			l.owed = make(map[hold]bool)
		}
		l.owed[h] = true
	}
	en := l.broken[h]
	l.mu.Unlock()
	if en == nil {
		return
	}
	en.round.mu.Lock()
	u := en.round.owner.(taker).owed(en, h)
	en.round.mu.Unlock()
	if u != nil {
		l.pushUndo(u)
	}
}

func (l *lane) owes(h hold) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owed[h]
}

// remember keeps an attempt of unknown fate until the next connection, for owe.
func (l *lane) remember(h hold, en *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = make(map[hold]*entry)
	}
	l.broken[h] = en
}

// nudge makes an idle lane say something, so that a broken connection is found before a command is lost on it.
func (l *lane) nudge(now instant) {
	l.mu.Lock()
	quiet := l.busy == idle && len(l.queue) == 0 && l.down == ""
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
	if quiet {
		l.push(&heartbeat{Call: masters.Call{Args: heartbeatArgs}}, now)
	}
}

// postpone queues an undo for the next heartbeat.
func (l *lane) postpone(u *undo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && len(l.postponed) < l.engine.cfg.QueueMax {
		l.postponed = append(l.postponed, u)
	}
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
			en.giveUp(dropped, cause)
		}
	}
}

// A heartbeat is a command whose answer nobody needs.
type heartbeat struct{ masters.Call }

var heartbeatArgs = []any{"PING"}

func (h *heartbeat) command() *masters.Call { return &h.Call }
func (h *heartbeat) take(instant) bool      { return true }
func (h *heartbeat) reply(instant)          {}
func (h *heartbeat) lost(string)            {}
