package sim

import "time"

// A clock is the wall clock of a master: it runs at a rate of its own, can be set, and can stand
// still.
type clock struct {
	since time.Duration // the true time of the latest change
	read  float64       // what it read then, in ns since 1970
	rate  float64       // seconds it counts in a true second

	first, steady float64 // what it read at first, and its rate then
}

// epoch is what a clock without an offset reads when a world begins.
const epoch = 1_000_000_000 * float64(time.Second)

func newClock(offset time.Duration, rate float64) clock {
	return clock{read: epoch + float64(offset), rate: rate, first: epoch + float64(offset), steady: rate}
}

// at returns what the clock reads at a true time, in ns.
func (c *clock) at(now time.Duration) float64 { return c.read + float64(now-c.since)*c.rate }

func (c *clock) millis(now time.Duration) int64 { return int64(c.at(now) / 1e6) }

func (c *clock) micros(now time.Duration) int64 { return int64(c.at(now) / 1e3) }

// behind returns by how much faults have set the clock back, all in all.
func (c *clock) behind(now time.Duration) time.Duration {
	return time.Duration(max(c.first+float64(now)*c.steady-c.at(now), 0))
}

// step sets the clock forwards, or backwards.
func (c *clock) step(now, by time.Duration) { c.read, c.since = c.at(now)+float64(by), now }

// run changes the rate; 0 freezes the clock.
func (c *clock) run(now time.Duration, rate float64) { c.read, c.since, c.rate = c.at(now), now, rate }
