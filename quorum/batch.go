package quorum

import (
	"context"
	"slices"
	"strings"
	"time"

	"lockproxy/quorum/masters"
)

// A lane's loop gathers a batch, exchanges it with the master, and hands the answers out. running is the batch, from when it is
// gathered, and what is known of it. It belongs to the loop.
type running struct {
	batch       []request
	calls       []*masters.Call
	words       []any // of the batch's usual commands; see lay
	gathered    instant
	begun       int64         // of the watch, then
	clockNow    int64         // what the master's clock shows at most while the batch is gathered, ms
	clockKept   int64         // by which keys are set to expire that are relied on: clockNow, or later
	beyond      int64         // by how much clockKept may be ahead of the clock, besides uncertainty, ms
	clockUnsure bool          // clockNow is not known well enough to set a key by it
	exact       exactness     // what the answers to TIME prove
	keeps       time.Duration // the longest that a key lives which the batch may set
	extension   masters.Call  // of the horizon, at the head of a batch that needs it
	proof       proof         // at the end of every batch
	unproven    failure       // why the votes of the batch do not count
	unkept      failure       // why votes for keys that it set do not count
	quarantined string        // why votes that rest on something not being there do not count
	epoch       int64         // of the master
}

// batchMax bounds how many requests wait for one exchange.
const batchMax = 1024

// gather waits for requests and takes those that are still wanted into the batch.
func (l *lane) gather(ctx context.Context) bool {
	for l.batch = l.queue.collect(l.batch[:0]); len(l.batch) == 0; l.batch = l.queue.collect(l.batch[:0]) {
		select {
		case <-l.queue.wake:
		case <-ctx.Done():
			return false
		}
	}
	now := l.engine.waited()
	l.begun = l.master.watch.restarts.Load() // before our clock is read: see putRight
	l.gathered = l.engine.catchUp()
	if l.readClocks(); l.clockUnsure {
		l.batch = append(l.batch, &question{Call: masters.Call{Args: heartbeatArgs}, lane: l}) // so that it is known afterwards
	}
	n := len(l.batch)
	l.batch = slices.DeleteFunc(l.batch, func(r request) bool { return !r.take(now) })
	//mutant: a late release follows what came after it
	if len(l.batch) < n {
		l.takeLate(now)
	}
	if len(l.batch) == 0 {
		l.rest()
	}
	return len(l.batch) > 0
}

// lay returns the words of a command as Args, for as long as the batch lasts: a command that is built for each master
// then costs no memory of its own.
func (l *lane) lay(words ...any) []any {
	from := len(l.words)
	l.words = append(l.words, words...)
	return l.words[from:len(l.words):len(l.words)]
}

// exchange writes the batch, reads the replies, and hands each to its request.
func (l *lane) exchange() {
	l.calls = l.proof.head(l.calls[:0], len(l.batch))
	l.extendHorizon()
	first := len(l.calls)
	for _, r := range l.batch {
		l.calls = append(l.calls, r.command())
	}
	l.calls = l.proof.tail(l.calls, l.link.restraintArgs)
	l.proof.sent = l.engine.now()
	err := l.link.conn.Exec(l.calls)
	now := l.engine.catchUp()
	l.proof.received = now
	l.master.roundTrip.Store(int64(now - l.proof.sent))
	l.readProof(err)
	l.queue.handsOut()
	cause := ""
	if err != nil {
		cause = masters.Describe(err)
		if l.link.silent.Load() {
			cause = "is silent"
		}
		l.disconnect(cause) // first, so that no new request comes before the cause is known
	}
	mend := l.handOut(l.calls[first:], now, cause)
	if mend == nil && l.suspect {
		mend = l.reassess
	}
	l.suspect = false
	l.answered = len(l.batch)
	l.rest()
	if mend != nil && l.link != nil {
		l.mend(mend)
	}
}

// readProof finds out when the batch ran and whether its votes count.
func (l *lane) readProof(err error) {
	l.unproven, l.unkept, l.epoch = failure{}, failure{}, l.link.epoch
	l.quarantined = l.quarantineCause()
	if err != nil {
		l.unproven = failure{FailedConnection, "did not answer to the end of the batch"}
		return
	}
	if ms, ok := millis(&l.proof.last); ok {
		l.learnHorizon(ms)
		l.link.clock, l.link.clockAt = ms, l.proof.received
	}
	l.unproven, l.unkept = l.vouch(), l.unkeptCause()
	if !l.unproven.none() || !l.unkept.none() {
		l.master.dropped.Add(1)
	}
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
				//mutant: a script that was forgotten is not sent again
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

// mend does to the link what answers asked for, or gives it up. The lane is busy meanwhile, so that silence ends this too.
func (l *lane) mend(f func(*link) error) {
	l.queue.runs()
	if err := f(l.link); err != nil {
		l.disconnect(masters.Describe(err))
	}
	l.rest()
}

// rest ends a batch.
func (l *lane) rest() {
	clear(l.batch)
	clear(l.calls)
	clear(l.words)
	l.words = l.words[:0]
	l.ledger.settle(l.queue.rest())
}
