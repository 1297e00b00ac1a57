package vouch

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A farClock is a clock that steps, far away: its looks are as wide as the ways are long, and so hide the steps.
type farClock struct {
	Clock
	rng        *rand.Rand
	at, offset time.Duration
	up, down   time.Duration // the ways, at least
	locks      []setLock
}

// A setLock was set when the clock was so far ahead, and peak is the most that the clock has shown since.
type setLock struct{ at, offset, peak time.Duration }

func newFarClock(seed uint64) *farClock {
	c := &farClock{Clock: Clock{Rate: modelRate, Tolerance: modelTolerance, Patience: time.Second}, rng: rand.New(rand.NewPCG(seed, 2))}
	c.at, c.up, c.down = time.Hour, time.Duration(c.rng.IntN(80))*time.Millisecond, time.Duration(c.rng.IntN(80))*time.Millisecond
	return c
}

// set sets a lock.
func (c *farClock) set() { c.locks = append(c.locks, setLock{c.at, c.offset, c.at + c.offset}) }

// drop has the clock drop what is over by now.
func (c *farClock) drop() {
	for i := range c.locks {
		c.locks[i].peak = max(c.locks[i].peak, c.at+c.offset)
	}
}

// look asks the clock, which steps before it is read; the answer is late by so much on its way back. It returns what the clock showed. If the clock jumped forwards, its
// master does not vote before all locks are over.
func (c *farClock) look(late, step time.Duration) (shown time.Duration) {
	sent := c.at
	c.at += c.up + time.Duration(c.rng.Int64N(int64(modelTolerance)))
	c.drop()
	c.offset += step
	shown = c.at + c.offset
	c.drop()
	c.at += c.down + late
	if c.Observe(sent, c.at, shown, shown) > 0 {
		c.locks = nil
	}
	c.Confirm()
	return shown
}

// early returns by how much too early the last of the keys was dropped that the clock had dropped when it showed shown, if the votes
// of that look are handed out as Ahead says.
func (c *farClock) early(shown time.Duration) (most time.Duration) {
	ahead := c.Ahead(shown, c.at)
	handed := c.at + max(ahead, 0)
	for _, l := range c.locks {
		bears := time.Duration(2 * modelRate * float64(c.at-l.at))
		most = max(most, l.peak-l.offset-bears-handed)
	}
	return most
}

// Whatever a clock does between looks that count, no key is missed too early: not by what wide looks hide.
func TestNoKeyIsMissedTooEarly(t *testing.T) {
	waited := 0
	for seed := range uint64(500) {
		c := newFarClock(seed)
		c.look(0, 0)
		for range 60 {
			c.set()
			c.at += time.Duration(c.rng.Int64N(int64(500 * time.Millisecond)))
			step := time.Duration(c.rng.Int64N(int64(c.up + c.down + 1)))
			switch c.rng.IntN(8) {
			default:
				step = 0
			case 0:
			case 1:
				step = -step
			case 2: // also by so much that it is seen
				step *= -2
			}
			shown := c.look(0, step)
			if early := c.early(shown); early > time.Millisecond {
				t.Fatalf("seed %d: a key is missed %v too early", seed, early)
			}
			if ahead := c.Ahead(shown, c.at); c.IsMet() && ahead > 2*modelTolerance {
				waited++
			}
		}
	}
	if waited == 0 {
		t.Error("no step was ever waited for")
	}
}

// A clock that keeps its rate is not waited for, however far away, if its answers are late by no more than is usual.
func TestEvenAnswersAreNotWaitedFor(t *testing.T) {
	for seed := range uint64(200) {
		c := newFarClock(seed)
		c.look(0, 0)
		for range 100 {
			passed := time.Duration(c.rng.Int64N(int64(10 * time.Second)))
			c.at += passed
			c.offset += time.Duration(modelRate / 2 * float64(passed) * float64(c.rng.IntN(3)-1))
			late := time.Duration(c.rng.Int64N(int64(modelTolerance)))
			shown := c.look(late, 0)
			if ahead := c.Ahead(shown, c.at); !c.IsMet() || ahead > 2*modelTolerance+time.Duration(modelRate*float64(10*time.Second)) {
				t.Fatalf("seed %d: waited for %v", seed, ahead)
			}
		}
	}
}

// A look that is slow once says nothing. If all are, that is usual.
func TestSlowLooksCountWhenTheyAreUsual(t *testing.T) {
	const ms = time.Millisecond
	look := func(c *Clock, at, back time.Duration) time.Duration {
		c.Observe(at, at+back, at, at)
		ahead := c.Ahead(at+back, at+back) // of a later answer that comes back at once
		return ahead
	}
	near := Clock{Rate: 0.01, Tolerance: 10 * ms, Patience: time.Second}
	look(&near, 0, ms)
	if ahead := look(&near, 100*ms, 80*ms); ahead > 2*ms {
		t.Errorf("after one slow answer, %v are waited for", ahead)
	}
	look(&near, 200*ms, ms)
	for at := 300 * ms; at < 1700*ms; at += 100 * ms {
		look(&near, at, 80*ms)
	}
	if ahead := look(&near, 1800*ms, 80*ms); ahead < 70*ms {
		t.Errorf("after many slow answers, %v are waited for", ahead)
	}
	if ahead := look(&near, 1900*ms, ms); ahead < 70*ms || ahead > 80*ms {
		t.Errorf("when answers are fast again, %v are waited for", ahead)
	}
	if ahead := look(&near, 6*time.Second, ms); ahead > 45*ms {
		t.Errorf("four seconds later, %v are waited for", ahead)
	}
	slow := Clock{Rate: 0.01, Tolerance: 10 * ms, Patience: 50 * ms}
	if look(&slow, 0, 51*ms); slow.floor.known {
		t.Error("a look that took longer than a vote may counts")
	}
}

// Questions that were late leave open how far the clock is ahead.
func TestWhatIsUnevenIsKnown(t *testing.T) {
	const ms = time.Millisecond
	c := Clock{Rate: 0.01, Tolerance: 10 * ms, Patience: time.Second}
	c.Observe(0, 80*ms, 40*ms, 40*ms)
	c.Observe(100*ms, 180*ms, 140*ms, 140*ms)
	if c.Uneven() > ms {
		t.Errorf("even ways: %v", c.Uneven())
	}
	c.Observe(200*ms, 330*ms, 290*ms, 290*ms) // the question was 50 ms late
	if c.Uneven() < 48*ms || c.Uneven() > 50*ms {
		t.Errorf("a question that was 50 ms late: %v", c.Uneven())
	}
	for at := 400 * ms; at < 2*time.Second; at += 100 * ms {
		c.Observe(at, at+80*ms, at+40*ms, at+40*ms)
	}
	if c.Uneven() > 2*ms {
		t.Errorf("long after that: %v", c.Uneven())
	}
}
