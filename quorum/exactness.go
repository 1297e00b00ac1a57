package quorum

import (
	"fmt"
	"time"

	"lockproxy/quorum/masters"
)

// A master's clock is known only through answers that take time. What a batch proves of the clock is of two kinds (docs/proofs.md, "How
// exactly clocks are watched"):
//
//   - What the batch did not find may have been dropped too early, if the clock stepped forwards. Its votes are handed out when whoever
//     set that has been promised no more.
//   - What the batch set may end too early, if the clock was ahead of what the instants were chosen by. Keys are set to expire later by
//     as much as questions have been late lately; if that was not enough, what was set has no vote.

// An exactness is what the answers to TIME prove of one batch.
type exactness struct {
	shown   time.Duration // what the clock showed at most until the batch had been run
	highest time.Duration // how far the clock was ahead of ours at most after that
}

// narrowings is how often a lane asks for the time again where an answer was too slow.
const narrowings = 3

// observe compares the master's clock with ours, and returns why the master's is not to be trusted, if so.
func (l *lane) observe(p *proof) failure {
	if !p.long {
		p.first = p.last
	}
	for tries := 0; ; tries++ {
		first, ok1 := micros(&p.first)
		last, ok2 := micros(&p.last)
		if !ok1 || !ok2 {
			return l.withheld(FailedClock, "did not tell the time", &p.last)
		}
		doubt := l.master.watch.observe(p.sent, p.received, first, last)
		if doubt != "" {
			l.engine.warden.alarm()
		}
		if highest := last - p.sent; tries == 0 {
			l.exact = exactness{max(first, last), highest}
		} else {
			l.exact.highest = min(l.exact.highest, highest)
		}
		if tries >= l.narrows(doubt) {
			return l.settleClock(doubt)
		}
		if took := p.received - p.sent; took <= l.engine.cfg.InstanceTimeout { // else that is what ails it
			l.queue.retriesClock(fmt.Sprintf("answers too unevenly (%v) to tell its clock", took.Round(time.Millisecond)))
		}
		again := proof{first: masters.Call{Args: clockArgs}, long: true, sent: l.engine.catchUp()}
		if l.link.conn.Exec([]*masters.Call{&again.first}) != nil {
			return failure{FailedConnection, "connection lost"} // which the next batch will find out
		}
		again.last, again.received = again.first, l.engine.catchUp()
		p = &again
	}
}

// narrows returns how often the time is to be asked for again: where it would tell whose clock it was that jumped; or once, where
// the question was late that tells when the keys expire that the batch has set.
func (l *lane) narrows(doubt string) int {
	_, known := l.master.watch.early(0, 0)
	switch {
	case !known, doubt != "" && l.master.watch.isVague(l.engine.uncertainty()):
		return narrowings
	case doubt == "" && l.keeps > 0 && l.misjudged():
		return 1
	}
	return 0
}

// misjudged says that the instants at which keys of the batch expire were chosen when too little was known of the master's
// clock: the clock showed more by then, or this process has found out meanwhile that this process had stood still.
func (l *lane) misjudged() bool {
	chosenBy := time.Duration(l.clockKept)*time.Millisecond - l.gathered
	//mutant: what is set expires by a clock that is ahead
	return l.begun != l.master.watch.restarts.Load() || l.exact.highest > chosenBy+l.engine.uncertainty()
}

// settleClock waits until what the batch found gone was not gone too early, as far as locks cannot bear. If that takes longer
// than a vote may take, it returns why the votes do not count.
func (l *lane) settleClock(doubt string) failure {
	if doubt != "" {
		return failure{FailedClock, doubt}
	}
	early, known := l.master.watch.early(l.exact.shown, l.engine.catchUp())
	excess := early - l.engine.uncertainty()
	switch {
	case !known:
		return failure{FailedClock, "answers too slowly to tell its clock" + l.engine.raiseTimeout(time.Duration(l.master.roundTrip.Load()))}
	//mutant: what cannot be told of a clock is ignored
	case excess <= 0:
		return failure{}
	case excess > l.engine.cfg.InstanceTimeout:
		return failure{FailedClock, fmt.Sprintf("may have a clock that jumped by up to %v: its answers were too slow to tell", early.Round(time.Millisecond))}
	}
	time.Sleep(excess)
	return failure{}
}

// inexact is how inexact what is known of a master's clock may be where keys are set by it: an answer that takes longer brings
// no vote.
func (e *Engine) inexact() time.Duration { return max(e.uncertainty(), e.cfg.InstanceTimeout) }

// readClocks notes what the master's clock shows as the batch is gathered: by which keys are set to expire. A key that is relied on is
// kept, in addition, by how much questions have been late lately, less most of what the proof of its batch may leave open.
func (l *lane) readClocks() {
	w, uncertainty := &l.master.watch, l.engine.uncertainty()
	l.clockNow = w.latest(l.gathered, l.link.clock, l.link.clockAt)
	addition := min(max(w.uneven()-uncertainty*3/4, 0), l.engine.cfg.InstanceTimeout).Milliseconds()
	//mutant: nothing is kept in addition
	l.clockKept = l.clockNow + addition
	l.beyond = addition + w.excess(uncertainty).Milliseconds()
	l.clockUnsure = !w.sure(l.engine.inexact())
}

// raiseTimeout says to which instance_timeout a round trip leads, if it takes more than half of the one that is set: a command that
// comes while another is under way waits for both.
func (e *Engine) raiseTimeout(roundTrip time.Duration) string {
	if 2*roundTrip <= e.cfg.InstanceTimeout {
		return ""
	}
	const step = 50 * time.Millisecond
	enough := (3*roundTrip + step - 1).Truncate(step)
	return fmt.Sprintf(": its answers take %v, raise instance_timeout (%v) to %v", roundTrip.Round(time.Millisecond), e.cfg.InstanceTimeout, enough)
}
