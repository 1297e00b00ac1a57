package quorum

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"lockproxy/quorum/vouch"
)

// A watch follows one master's clock, over all its lanes and connections. From a jump until the monitor has found out whose clock
// jumped, no vote of the master counts.
type watch struct {
	restarts atomic.Int64 // how often following the clock was begun anew

	mu     sync.Mutex // guards all below
	clock  vouch.Clock
	from   instant       // when our clock was put right: answers to earlier questions do not count
	first  instant       // when the first question was sent that was answered
	steady instant       // when the latest question without a jump in its answer was sent
	hidden time.Duration // how far the clock may have stepped by then without being noticed
	jumped bool          // the clock has jumped, and the monitor has not explained the jump yet
	jump   time.Duration // by how much, in all
	ahead  time.Duration // how far the clock jumped forwards, whether or not it came back

	confirmations int    // how many jumps forwards were confirmed: after each, the master may have forgotten locks
	confirmation  string // the latest of these jumps, in words
}

// askedAsleep is observe's reason for ignoring an answer; the clock itself is not in doubt.
const askedAsleep = "was asked while this process stood still"

// observe takes the first and last time that the clock showed between sent and received. observe returns the clock, as look does, and
// why the clock is not to be trusted, or "".
func (w *watch) observe(sent, received instant, first, last time.Duration) (clock vouch.Clock, doubt string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if sent < w.from {
		return w.clock, w.doubtOf(sent)
	}
	if !w.clock.Known() {
		w.first = sent
	}
	if by := w.clock.Observe(sent, received, first, last); by != 0 {
		w.jumped, w.jump, w.ahead = true, w.jump+by, w.ahead+max(by, 0)
	}
	if !w.jumped && sent >= w.steady {
		w.steady, w.hidden = sent, w.clock.Tolerance+w.clock.Reach()
	}
	return w.clock, w.doubtOf(sent)
}

// doubt returns why the clock is not to be trusted now, in the answer to a question sent at the time sent; or "".
func (w *watch) doubt(sent instant) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.doubtOf(sent)
}

// doubtOf is doubt for who holds mu.
func (w *watch) doubtOf(sent instant) string {
	switch {
	case sent < w.from:
		return askedAsleep
	case w.jumped:
		return "has a clock that jumped by " + w.jump.Round(time.Millisecond).String()
	}
	return ""
}

// look returns the clock as known now: a copy, which only tells. The copy goes by our clock as it was when look was called, so a moment of
// our clock is read first.
func (w *watch) look() vouch.Clock {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

// when returns the moment of ours at which the master's clock shows at, in ms, as far as the clock is known now.
func (w *watch) when(now instant, at int64) vouch.Span {
	clock, then := w.look(), now+time.Duration(at)*time.Millisecond
	return vouch.Span{Lo: then - clock.Latest(now), Hi: then - clock.Earliest(now)}
}

// restrict lets the clock be followed more strictly, as vouch.Clock has it.
func (w *watch) restrict(rate float64, tolerance time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock.Restrict(rate, tolerance)
}

// endSuspicion forgets a jump and, if the clock jumped forwards, has the master quarantined. Both happen at once: a batch that was
// vouched for between the two would count. The caller holds mu.
func (w *watch) endSuspicion(ahead time.Duration) {
	w.jumped, w.jump, w.ahead = false, 0, 0
	//mutant: no quarantine after a jump forwards
	if ahead > 0 { // even if the clock is right again by now: keys that expired are gone
		w.confirmations++
		w.confirmation = "its clock jumped forwards by " + ahead.Round(time.Millisecond).String()
	}
}

// confirmed returns how many jumps forwards were confirmed, and the latest in words.
func (w *watch) confirmed() (int, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.confirmations, w.confirmation
}

// jumpSince returns the span that this clock's jump is in, while the jump is not explained. t is when the first clock was found to
// have jumped. A clock that was steady at t or later has jumped by no more than goes unnoticed. A clock that was not known before t
// may have jumped by anything. jumpSince returns nil if the master has answered no question since t, or if its clock is known less
// exactly than as a rule, by more than d.
func (w *watch) jumpSince(t instant, d time.Duration) *vouch.Span {
	w.mu.Lock()
	defer w.mu.Unlock()
	by, jumped := w.clock.Jumped()
	switch {
	//mutant: a clock that is met after a standstill denies it
	case w.steady >= t && w.first >= t:
		return &vouch.Span{Lo: math.MinInt64 / 2, Hi: math.MaxInt64 / 2}
	case w.steady >= t:
		//mutant: a clock that cannot tell denies a standstill
		return &vouch.Span{Lo: -w.hidden, Hi: w.hidden}
	//mutant: a jump is judged by a slow answer
	case !jumped, w.clock.IsVague(d):
		return nil
	}
	return &by
}

// ignore says that our clock is about to be put right: until then no answer can be compared with our clock.
func (w *watch) ignore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from = math.MaxInt64
}

// clear explains a jump by ours: before t this process stood still for by. Our clock has been put right by put, and shows now. clear
// returns how far the master's clock has jumped forwards by itself, besides.
func (w *watch) clear(t instant, by, put time.Duration, now instant) (ahead time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restarts.Add(1)
	if !w.jumped && w.steady >= t { // this clock was met after the standstill
		by = 0
	}
	//mutant: a standstill hides a jump that came back
	ahead = min(w.ahead, w.ahead-w.jump) // a jump back was the clock's own: no standstill shows as a jump back
	ahead = max(ahead, w.clock.Clear(by, put), 0)
	w.from = now
	w.endSuspicion(ahead)
	return ahead
}

// confirm explains a jump as the master's own clock's. confirm returns how far the clock jumped in all, and how far forwards.
func (w *watch) confirm() (by, ahead time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	by, ahead = w.jump, w.ahead
	w.clock.Confirm()
	//mutant: a jump is forgotten before it is confirmed
	w.endSuspicion(ahead)
	return by, ahead
}
