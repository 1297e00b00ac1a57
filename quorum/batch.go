package quorum

import (
	"context"
	"slices"
	"strings"
	"time"

	"lockproxy/quorum/masters"
)

// A lane's loop gathers a batch, exchanges the batch with the master, and hands the answers out.

// A batch is the requests that a lane sends together, and the proof in the answers. A batch belongs to the lane's loop; while the
// batch is under way, its calls belong to the reader of the flight.
type batch struct {
	requests  []request
	calls     []*masters.Call
	first     int           // the place of the first request among the calls
	words     []any         // of the usual commands; see lay
	grants    []*grant      // where answers will note grants; see handOut
	keeps     time.Duration // for how long the longest key lives that the batch may set
	extension masters.Call  // of the horizon; at the head, if the batch needs one
	proof     proof         // at the end
	bytes     int           // of the words, about
	through   int           // how many of all queued requests have been in this batch or earlier batches
	again     int           // how many of the requests were sent before, in vain

	reading     reading // of the master's clock
	err         error   // the connection broke before the end of the answers
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

// size returns how many bytes the words of the batch have, about.
func (b *batch) size() (n int) {
	for _, c := range b.calls {
		for _, word := range c.Args {
			switch word := word.(type) {
			case string:
				n += len(word)
			case *string:
				n += len(*word)
			}
			n += 8
		}
	}
	return n
}

func (b *batch) clear() {
	clear(b.requests)
	clear(b.calls)
	clear(b.words)
	b.words, b.grants, b.err, b.proof.received, b.proof.observed = b.words[:0], b.grants[:0], nil, 0, false
}

// begin makes an empty batch the gathered batch.
func (l *lane) begin() {
	if n := len(l.spare); n > 0 {
		l.batch, l.spare = l.spare[n-1], l.spare[:n-1]
		return
	}
	l.batch = &batch{}
}

// gather waits for requests, and takes the requests that are still wanted into a batch.
func (l *lane) gather(ctx context.Context) bool {
	l.begin()
	for !l.collect() {
		select {
		case <-l.queue.wake:
		case <-ctx.Done():
			return false
		}
	}
	return l.take()
}

// collect moves waiting requests into the batch. If nothing waits, the batch is over.
func (l *lane) collect() bool {
	l.queue.collect(l.batch)
	return len(l.batch.requests) > 0
}

// take keeps the requests in the batch that are still wanted. If there are none, the batch is over.
func (l *lane) take() bool {
	b, now := l.batch, l.engine.waited()
	if l.clock.gather(); l.clock.unsure {
		b.requests = append(b.requests, &question{Call: masters.Call{Args: heartbeatArgs}, lane: l}) // so that the clock is known afterwards
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

// takeLate puts the undos that stand for dropped releases at the head of the batch, before the requests that followed the releases.
func (l *lane) takeLate(now answerTime) {
	var first []request
	for _, u := range l.queue.takeUndos() {
		if u.take(now) {
			first = append(first, u)
		}
	}
	l.batch.requests = slices.Insert(l.batch.requests, 0, first...)
}

// exchange writes the batch. If the master is near, it also reads the replies, and hands each to its request. If the master is far
// away, or batches are under way already, the batch is under way, too.
func (l *lane) exchange() {
	b, k := l.batch, l.connection
	b.measure()
	b.extension = l.horizon.extend(b.keeps)
	b.calls = b.proof.head(b.calls[:0], len(b.requests))
	if b.extension.Args != nil {
		b.calls = append(b.calls, &b.extension)
	}
	b.first = len(b.calls)
	for _, r := range b.requests {
		b.calls = append(b.calls, r.command())
	}
	b.calls = b.proof.tail(b.calls, k.restraintArgs)
	b.reading = l.clock.reading
	if l.isFar() || !k.flight.isEmpty() {
		k.flight.write(b)
		return
	}
	b.proof.sent = l.engine.now()
	b.err = k.conn.Exec(b.calls)
	b.proof.received = l.engine.catchUp()
	l.complete(b)
}

// complete reads the proof of the first batch under way, whose answers have come, and hands the answers out. If the connection broke,
// the batches behind are lost, too.
func (l *lane) complete(b *batch) {
	l.turnTo(b)
	l.master.roundTrip.Store(int64(b.proof.received - b.proof.sent))
	l.readProof()
	l.queue.handsOut()
	if b.err != nil {
		l.lose(b)
		return
	}
	l.distance.learn(&b.proof)
	if mend := l.handOut(""); l.mending == nil {
		l.mending = mend
	}
	l.answered = len(b.requests)
	l.rest()
	if l.connection.flight.isEmpty() {
		l.mend()
	}
}

// turnTo makes a batch the batch that is being handed out.
func (l *lane) turnTo(b *batch) {
	//mutant: a batch is judged by the clock as it was when a later one was gathered
	l.batch, l.clock.reading = b, b.reading
}

// lose ends the connection, which broke before the end of the batch was answered, and with the connection all batches behind the
// batch: their effects are unknown.
func (l *lane) lose(b *batch) {
	k, cause := l.connection, masters.Describe(b.err)
	if k.silent.Load() {
		cause = "is silent"
	}
	l.disconnect(cause) // first, so that no new request comes before the cause is known
	l.handOut(cause)
	l.answered = len(b.requests)
	l.rest()
	for !k.flight.isEmpty() {
		l.turnTo(k.flight.take())
		l.batch.unproven, l.batch.epoch = unanswered, k.epoch
		//mutant: a broken connection leaves one batch unknown
		l.handOut(cause)
		l.rest()
	}
	l.mending, l.suspected = nil, false
}

// unanswered is why votes of a broken connection do not count.
var unanswered = failure{FailedConnection, "did not answer to the end of the batch"}

// readProof finds out when the batch ran and whether its votes count.
func (l *lane) readProof() {
	b, k := l.batch, l.connection
	b.unproven, b.unkept, b.epoch = failure{}, failure{}, k.epoch
	b.quarantined = l.recovery.cause()
	if b.err != nil {
		b.unproven = unanswered
		return
	}
	if ms, ok := millis(&b.proof.last); ok {
		l.horizon.learn(&b.extension, &b.proof, ms, k.epoch)
		l.clock.heard, l.clock.heardAt = ms, b.proof.received
	}
	suspected := l.suspected // by an earlier batch
	//mutant: a batch is vouched for by the proof of a later one
	b.unproven = l.assessor.vouch(&b.proof, b.keeps)
	//mutant: a batch counts that was under way when its master became suspect
	if suspected && b.unproven.none() {
		b.unproven = failure{FailedForgot, "is being assessed anew"}
	}
	b.unkept = l.unkeptCause()
	l.showDoubt(b)
}

// showDoubt tells operators why the votes of a batch do not count, until those of a later batch do.
func (l *lane) showDoubt(b *batch) {
	why := b.unproven
	if why.none() {
		why = b.unkept
	}
	if !why.none() {
		l.master.dropped.Add(1)
		l.doubt.Store(&why.text)
	} else if l.doubt.Load() != nil {
		l.doubt.Store(nil)
	}
}

// unkeptCause returns why the keys that the batch set do not count, if they do not although the rest of the batch does.
func (l *lane) unkeptCause() failure {
	switch b := l.batch; {
	case b.keeps == 0:
		return failure{}
	case !l.horizon.covers(b.keeps):
		return l.withheld(FailedHorizon, "has no horizon", &b.extension, b.proof.received)
	case l.clock.misjudged():
		return failure{FailedClock, "answered too late, compared with before, to tell when what was set expires"}
	}
	return failure{}
}

// handOut gives each request its answer, and returns the work on the connection for which the answers call.
func (l *lane) handOut(cause string) (mend func(*connection) error) {
	b := l.batch
	now := b.proof.received
	for _, g := range b.grants {
		g.expires.Load() // The processor loads several places at once. To note the grants one by one would wait for each place in turn.
	}
	for i, r := range b.requests {
		c := b.calls[b.first+i]
		if !c.Answered {
			r.lost(cause)
			continue
		}
		if err := c.Err; err != nil {
			switch code, _, _ := strings.Cut(err.Error(), " "); code {
			case "NOSCRIPT": // the script cache was flushed: a script that is not sent again has failed, the next finds the scripts
				mend = (*connection).loadScripts
				//mutant: a script that was forgotten is not sent again
				if l.sendAgain(i) {
					continue
				}
			case "READONLY", "NOAUTH", "MASTERDOWN": // the server is no longer as in the handshake: shake hands again
				mend = func(*connection) error { return err }
				l.suspect()
			}
		}
		r.reply(now)
	}
	return mend
}

// mend does the work on the connection for which answers have called, and assesses the master anew if the master is suspect; or gives
// the connection up. mend is called when no batch is under way.
func (l *lane) mend() {
	mend, suspected := l.mending, l.suspected
	if l.mending, l.suspected = nil, false; mend == nil && suspected {
		mend = l.reassess
	}
	if mend == nil {
		return
	}
	l.queue.runs() // silence ends this, too
	if err := mend(l.connection); err != nil {
		l.disconnect(masters.Describe(err))
	}
	l.queue.rests()
}

// rest ends the batch.
func (l *lane) rest() {
	b := l.batch
	done := l.queue.over(b)
	if k := l.connection; k == nil || k.flight.isEmpty() {
		l.queue.rests()
	} else if b.proof.received > 0 {
		l.queue.goesOn()
	}
	l.ledger.settle(done)
	b.clear()
	l.spare = append(l.spare, b)
}
