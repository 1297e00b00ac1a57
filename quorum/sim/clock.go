package sim

import "time"

// A clock is the wall clock of a master. It runs at a rate of its own, can be set, and can stand still.
type clock struct {
	since time.Duration // the true time of the latest change
	read  float64       // the reading then, in ns since 1970
	rate  float64       // seconds counted in a true second

	first, steady float64 // the first reading, and the rate then
	leads         []lead  // before and after each change
}

// A lead is how far a clock was ahead of a clock without faults, in ns. A negative lead means that it was behind.
type lead struct {
	at time.Duration // true time
	by float64
}

// epoch is the reading of a clock without an offset when a world begins.
const epoch = 1_000_000_000 * float64(time.Second)

func newClock(offset time.Duration, rate float64) clock {
	return clock{read: epoch + float64(offset), rate: rate, first: epoch + float64(offset), steady: rate}
}

// at returns the reading at a true time, in ns.
func (c *clock) at(now time.Duration) float64 { return c.read + float64(now-c.since)*c.rate }

func (c *clock) millis(now time.Duration) int64 { return int64(c.at(now) / 1e6) }

func (c *clock) micros(now time.Duration) int64 { return int64(c.at(now) / 1e3) }

// lead returns how far the clock is ahead now.
func (c *clock) lead(now time.Duration) lead {
	return lead{now, c.at(now) - c.first - float64(now)*c.steady}
}

// setBack returns by how much the clock was set back, or stood still, since it was furthest ahead after a moment.
func (c *clock) setBack(since lead, now time.Duration) time.Duration {
	is := c.lead(now).by
	most := max(since.by, is)
	for i := len(c.leads) - 1; i >= 0 && c.leads[i].at >= since.at; i-- {
		most = max(most, c.leads[i].by)
	}
	return time.Duration(most - is)
}

// step sets the clock forwards, or backwards.
func (c *clock) step(now, by time.Duration) {
	c.change(now, func() { c.read += float64(by) })
}

// run changes the rate; 0 freezes the clock.
func (c *clock) run(now time.Duration, rate float64) {
	c.change(now, func() { c.rate = rate })
}

// goOn advances the clock while the proxies stand still. To the master this is no fault.
func (c *clock) goOn(now, by time.Duration) {
	c.change(now, func() {
		c.read += float64(time.Duration(float64(by) * c.rate))
		c.first += float64(by) * c.steady
	})
}

func (c *clock) change(now time.Duration, f func()) {
	c.leads = append(c.leads, c.lead(now))
	c.read, c.since = c.at(now), now
	f()
	c.leads = append(c.leads, c.lead(now))
}
