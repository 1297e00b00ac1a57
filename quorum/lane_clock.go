package quorum

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// A master's clock is known only through answers that take time. A batch proves two things of the clock (docs/proofs.md, "How
// exactly clocks are watched"):
//
//   - A key that the batch did not find may have been dropped too early, if the clock stepped forwards. The batch's votes are handed
//     out when the client that had set the key has been promised no more.
//   - A key that the batch set may end too early, if the clock was ahead of the time by which the key's end was chosen. Keys are
//     set to end later by as much as questions have been late lately. If that was not enough, the master's vote for the key does
//     not count.

// A laneClock is a master's clock as known to one lane. A laneClock belongs to the lane's loop.
type laneClock struct {
	target
	queue *laneQueue // told when TIME is sent again

	heard       int64    // the latest TIME, in ms: the base of the clock while its watch knows nothing
	heardAt     instant  // when the latest TIME was answered
	tellsExpiry bool     // the master tells exactly when a key expires
	expiries    expiries // the chosen instants

	reading
}

// A reading is the knowledge of the clock since a batch was gathered. The batch keeps the reading until its answers are handed out.
type reading struct {
	gathered   instant
	generation int64         // of the master's watch when the batch was gathered
	now        int64         // the latest that the clock may have shown then, ms
	kept       int64         // the time from which the expiry of relied-on keys counts: now, or later
	beyond     int64         // by how much kept may be ahead of the clock, besides uncertainty, ms
	width      int64         // by how much kept may be ahead of the clock, ms
	unsure     bool          // now is not known well enough to set a key
	shown      time.Duration // the latest time that the clock showed until the batch had been run
	highest    time.Duration // how far the clock was ahead of ours at most after the batch
}

// narrowings is how often a lane sends TIME again where an answer was too slow.
const narrowings = 3

// meet asks for the time over a new connection: the first batch needs the time, and the answer shows how far the clock was set
// since the connection before.
func (c *laneClock) meet(k *connection) error {
	for range 1 + narrowings {
		doubt, err := c.ask(k.conn)
		clock := c.master.watch.look()
		if err != nil || doubt == "" && clock.IsMet() {
			return err
		}
		if doubt != askedAsleep && doubt != "" {
			c.engine.monitor.suspectClock()
			break
		}
	}
	return nil
}

// ask returns why the clock is not to be trusted, or "".
func (c *laneClock) ask(conn masters.Conn) (doubt string, err error) {
	clock, sent := &masters.Call{Args: clockArgs}, c.engine.now()
	if err := conn.Exec([]*masters.Call{clock}); err != nil {
		return "", err
	}
	c.heard, _ = millis(clock)
	c.heardAt = c.engine.catchUp()
	if shown, ok := micros(clock); ok {
		_, doubt = c.master.watch.observe(sent, c.heardAt, shown, shown)
	}
	return doubt, nil
}

// gather notes the clock's time as a batch is gathered: the time from which the expiry of keys counts. A relied-on key is kept
// longer, by the recent lateness of questions, less most of the doubt that the proof of its batch may leave.
func (c *laneClock) gather() {
	uncertainty := c.engine.uncertainty()
	c.generation = c.master.watch.restarts.Load() // before our clock is read: see putRight
	c.gathered = c.engine.catchUp()
	clock := c.master.watch.look()
	c.now = c.heard + (c.gathered - c.heardAt).Milliseconds() + 1
	if clock.Known() {
		c.now = latest(&clock, c.gathered)
	}
	addition := min(max(clock.Uneven()-uncertainty*3/4, 0), c.engine.cfg.InstanceTimeout).Milliseconds()
	//mutant: nothing is kept in addition
	c.kept = c.now + addition
	c.beyond = addition + max(clock.Width()-uncertainty, 0).Milliseconds()
	c.width = c.kept - c.earliest(c.gathered)
	c.unsure = !clock.Known() || clock.Width() > c.engine.inexact()
}

// latest returns the latest time, in ms, that a clock may show at our moment now.
func latest(clock *vouch.Clock, now instant) int64 {
	return int64(math.Ceil(float64(clock.Latest(now)) / float64(time.Millisecond)))
}

// inexact bounds the error in a master's clock where keys are set by the clock: an answer that takes longer brings no vote.
func (e *Engine) inexact() time.Duration { return max(e.uncertainty(), e.cfg.InstanceTimeout) }

// earliest returns the time, in ms, that the clock shows at least at our moment at. If nothing is known of the clock, earliest returns
// the latest TIME.
func (c *laneClock) earliest(at instant) int64 {
	clock := c.master.watch.look()
	if !clock.Known() {
		return c.heard
	}
	return int64(math.Floor(float64(clock.Earliest(at)) / float64(time.Millisecond)))
}

// observe compares the clock with ours, by the proof of a batch, and returns why the clock is not to be trusted, if so. keeps is
// for how long the longest key lives that the batch may have set.
func (c *laneClock) observe(k *connection, p *proof, keeps time.Duration) failure {
	received := p.received
	for tries := 0; ; tries++ {
		p.observe(&c.master.watch)
		first, ok1 := micros(&p.first)
		last, ok2 := micros(&p.last)
		if !ok1 || !ok2 {
			return c.withheld(FailedClock, "did not tell the time", &p.last, received)
		}
		clock, doubt := p.clock, cmp.Or(p.doubt, c.master.watch.doubt(p.sent))
		if doubt != "" {
			c.engine.monitor.suspectClock()
		}
		if highest := last - p.sent; tries == 0 {
			c.shown, c.highest = max(first, last), highest
		} else {
			c.highest = min(c.highest, highest)
		}
		if tries >= c.narrows(&clock, doubt, keeps) {
			return c.settle(&clock, doubt, p.received)
		}
		if took := p.received - p.sent; took <= c.engine.cfg.InstanceTimeout { // else the slow answer is the cause
			c.queue.retriesClock(fmt.Sprintf("answers too unevenly (%v) to tell its clock", took.Round(time.Millisecond)))
		}
		k.flight.drain() // first, so that the answer is as quick as can be
		c.observeBehind(k)
		again := proof{first: masters.Call{Args: clockArgs}, long: true, sent: c.engine.catchUp()}
		if k.conn.Exec([]*masters.Call{&again.first}) != nil {
			return failure{FailedConnection, "connection lost"} // the next batch will find the loss out
		}
		again.last, again.received = again.first, c.engine.catchUp()
		p = &again
	}
}

// observeBehind has the watch follow the clock by the batches behind, which are answered, before a later answer does. Else a step back
// between the two would seem a step forwards, and the master would be quarantined for nothing.
func (c *laneClock) observeBehind(k *connection) {
	for _, b := range k.flight.batches {
		if found, err := parseMarks(&b.proof.marks); b.err == nil && err == nil {
			k.hasNewBounds(c.engine, found) // first, as for a batch that is handed out
			b.proof.observe(&c.master.watch)
		}
	}
}

// narrows returns how often TIME is to be sent again: where the answer would tell whose clock jumped; or once, where the question was
// late that tells when the batch's keys expire.
func (c *laneClock) narrows(clock *vouch.Clock, doubt string, keeps time.Duration) int {
	switch {
	case !clock.IsMet(), doubt != "" && clock.IsVague(c.engine.uncertainty()):
		return narrowings
	case doubt == "" && keeps > 0 && c.misjudged():
		return 1
	}
	return 0
}

// misjudged says that the instants at which keys of the batch expire were chosen when too little was known of the clock: the clock
// showed more by then, or this process has found out meanwhile that this process had stood still.
func (c *laneClock) misjudged() bool {
	chosenBy := time.Duration(c.kept)*time.Millisecond - c.gathered
	//mutant: what is set expires by a clock that is ahead
	return c.generation != c.master.watch.restarts.Load() || c.highest > chosenBy+c.engine.uncertainty()
}

// settle waits until each key that the batch found gone would be gone by a clock that never stepped, to within uncertainty. If the
// wait is longer than InstanceTimeout, settle does not wait, and returns why the votes do not count. now is a moment of our clock before
// the clock was observed: if our clock is put right in between, settle waits for longer, not for less.
func (c *laneClock) settle(clock *vouch.Clock, doubt string, now instant) failure {
	if doubt != "" {
		return failure{FailedClock, doubt}
	}
	early := clock.Ahead(c.shown, now)
	excess := early - c.engine.uncertainty()
	switch {
	case !clock.IsMet():
		return failure{FailedClock, "answers too slowly to tell its clock" + c.engine.raiseTimeout(time.Duration(c.master.roundTrip.Load()))}
	//mutant: what cannot be told of a clock is ignored
	case excess <= 0:
		return failure{}
	case excess > c.engine.cfg.InstanceTimeout:
		return failure{FailedClock, fmt.Sprintf("may have a clock that jumped by up to %v: its answers were too slow to tell", early.Round(time.Millisecond))}
	}
	time.Sleep(excess)
	return failure{}
}

// expiry chooses an instant for a key that the gathered batch sets.
func (c *laneClock) expiry(hash uint64, at int64) int64 {
	gap := int64(1)
	if !c.tellsExpiry {
		gap = 2*expirySlack + 1
	}
	c.expiries.unsure[place(hash)] = c.width
	return c.expiries.choose(hash, at, gap)
}

// expiryAnew chooses an instant for a key that other masters have: they may already keep the key for longer than the client asked.
func (c *laneClock) expiryAnew(hash uint64, at int64) int64 {
	at = c.expiry(hash, at)
	_, most := c.expiries.surplus(hash, at, expirySlack, 0)
	c.expiries.unsure[place(hash)] += most + 4*(2*expirySlack+1)
	return at
}

// surplus returns by how much longer than asked a key is kept that ends within slack of an instant: at least, and at most.
func (c *laneClock) surplus(sig signature, ends, slack int64) (least, most int64) {
	return c.expiries.surplus(sig.hash(), ends, slack, c.width)
}

// raiseTimeout returns the instance_timeout that a round trip calls for, if the round trip takes more than half of the configured
// timeout: a command that comes while another is under way waits for both.
func (e *Engine) raiseTimeout(roundTrip time.Duration) string {
	if 2*roundTrip <= e.cfg.InstanceTimeout {
		return ""
	}
	const step = 50 * time.Millisecond
	enough := (3*roundTrip + step - 1).Truncate(step)
	return fmt.Sprintf(": its answers take %v, raise instance_timeout (%v) to %v", roundTrip.Round(time.Millisecond), e.cfg.InstanceTimeout, enough)
}
