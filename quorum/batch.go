package quorum

import (
	"context"
	"slices"
	"strings"
	"time"

	"lockproxy/quorum/masters"
)

// A lane's loop gathers a batch, exchanges it with the master, and hands the answers out.

// A batch is what a lane sends together, and what the answers prove. It belongs to the lane's loop.
type batch struct {
	requests []request
	calls    []*masters.Call
	words    []any         // of the usual commands; see lay
	keeps    time.Duration // for how long the longest key lives that the batch may set
	proof    proof         // at the end

	unproven    failure // why the votes do not count
	unkept      failure // why votes for keys that the batch set do not count
	quarantined string  // why votes that rest on something not being there do not count
	epoch       int64   // of the master
}

// batchMax bounds how many requests wait for one exchange.
const batchMax = 1024

// lay returns the words of a command as Args, for as long as the batch lasts: a command that is built for each master
// then costs no memory of its own.
func (b *batch) lay(words ...any) []any {
	from := len(b.words)
	b.words = append(b.words, words...)
	return b.words[from:len(b.words):len(b.words)]
}

// measure notes for how long the longest key lives that the batch may set.
func (b *batch) measure() {
	b.keeps = 0
	for _, r := range b.requests {
		//mutant: the horizon is never extended
		b.keeps = max(b.keeps, r.keeps())
	}
}

func (b *batch) clear() {
	clear(b.requests)
	clear(b.calls)
	clear(b.words)
	b.words = b.words[:0]
}

// gather waits for requests, and takes the requests that are still wanted into the batch.
func (l *lane) gather(ctx context.Context) bool {
	for !l.collect() {
		select {
		case <-l.queue.wake:
		case <-ctx.Done():
			return false
		}
	}
	b, now := &l.batch, l.engine.waited()
	if l.clock.gather(); l.clock.unsure {
		b.requests = append(b.requests, &question{Call: masters.Call{Args: heartbeatArgs}, batch: b}) // so that the clock is known afterwards
	}
	n := len(b.requests)
	b.requests = slices.DeleteFunc(b.requests, func(r request) bool { return !r.take(now) })
	//mutant: a late release follows what came after it
	if len(b.requests) < n {
		l.takeLate(now)
	}
	if len(b.requests) == 0 {
		l.rest()
	}
	return len(b.requests) > 0
}

// collect moves what waits into the batch.
func (l *lane) collect() bool {
	l.batch.requests = l.queue.collect(l.batch.requests[:0])
	return len(l.batch.requests) > 0
}

// takeLate puts the undos that stand for dropped releases at the head of the batch, before what came after the releases.
func (l *lane) takeLate(now answerTime) {
	var first []request
	for _, u := range l.queue.takeUndos() {
		if u.take(now) {
			first = append(first, u)
		}
	}
	l.batch.requests = slices.Insert(l.batch.requests, 0, first...)
}

// exchange writes the batch, reads the replies, and hands each to its request.
func (l *lane) exchange() {
	b := &l.batch
	b.measure()
	b.calls = l.horizon.extend(b.proof.head(b.calls[:0], len(b.requests)), b.keeps)
	first := len(b.calls)
	for _, r := range b.requests {
		b.calls = append(b.calls, r.command())
	}
	b.calls = b.proof.tail(b.calls, l.connection.restraintArgs)
	b.proof.sent = l.engine.now()
	err := l.connection.conn.Exec(b.calls)
	now := l.engine.catchUp()
	b.proof.received = now
	l.master.roundTrip.Store(int64(now - b.proof.sent))
	l.readProof(err)
	l.queue.handsOut()
	cause := ""
	if err != nil {
		cause = masters.Describe(err)
		if l.connection.silent.Load() {
			cause = "is silent"
		}
		l.disconnect(cause) // first, so that no new request comes before the cause is known
	}
	mend := l.handOut(b.calls[first:], now, cause)
	if mend == nil && l.suspected {
		mend = l.reassess
	}
	l.suspected = false
	l.answered = len(b.requests)
	l.rest()
	if mend != nil && l.connection != nil {
		l.mend(mend)
	}
}

// readProof finds out when the batch ran and whether its votes count.
func (l *lane) readProof(err error) {
	b := &l.batch
	b.unproven, b.unkept, b.epoch = failure{}, failure{}, l.connection.epoch
	b.quarantined = l.recovery.cause()
	if err != nil {
		b.unproven = failure{FailedConnection, "did not answer to the end of the batch"}
		return
	}
	if ms, ok := millis(&b.proof.last); ok {
		l.horizon.learn(&b.proof, ms, l.connection.epoch)
		l.clock.heard, l.clock.heardAt = ms, b.proof.received
	}
	b.unproven = l.assessor.vouch(&b.proof, b.keeps)
	b.unkept = l.unkeptCause()
	if !b.unproven.none() || !b.unkept.none() {
		l.master.dropped.Add(1)
	}
}

// unkeptCause returns why the keys that the batch set do not count, if they do not although the rest of the batch does.
func (l *lane) unkeptCause() failure {
	switch b := &l.batch; {
	case b.keeps == 0:
		return failure{}
	case !l.horizon.covers(b.keeps):
		return l.withheld(FailedHorizon, "has no horizon", &l.horizon.extension, b.proof.received)
	case l.clock.misjudged():
		return failure{FailedClock, "answered too late, compared with before, to tell when what was set expires"}
	}
	return failure{}
}

// handOut gives each request its answer, and returns what the answers ask to be done about the connection.
func (l *lane) handOut(calls []*masters.Call, now instant, cause string) (mend func(*connection) error) {
	for i, r := range l.batch.requests {
		c := calls[i]
		if !c.Answered {
			r.lost(cause)
			continue
		}
		if c.Err != nil {
			switch code, _, _ := strings.Cut(c.Err.Error(), " "); code {
			case "NOSCRIPT": // the script cache was flushed: a script that is not sent again has failed, the next finds the scripts
				mend = (*connection).loadScripts
				//mutant: a script that was forgotten is not sent again
				if l.sendAgain(i) {
					continue
				}
			case "READONLY", "NOAUTH", "MASTERDOWN": // the server is no longer as in the handshake: shake hands again
				mend = func(*connection) error { return c.Err }
			}
		}
		r.reply(now)
	}
	return mend
}

// mend does to the connection what answers asked for, or gives the connection up. The lane is busy meanwhile, so that silence ends this too.
func (l *lane) mend(f func(*connection) error) {
	l.queue.runs()
	if err := f(l.connection); err != nil {
		l.disconnect(masters.Describe(err))
	}
	l.rest()
}

// rest ends a batch.
func (l *lane) rest() {
	l.batch.clear()
	l.ledger.settle(l.queue.rest())
}
