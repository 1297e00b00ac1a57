package quorum

import (
	"sync/atomic"
	"time"
)

// A fenceClock proposes fences: microseconds of the wall clock since 1970, or more if masters are known to have seen more. So
// proxies need no second round because their clocks differ.
type fenceClock struct {
	wall func() time.Time
	last atomic.Int64 // the largest that was proposed
	seen atomic.Int64 // the largest fence seen, less what the engine's clock showed then, in µs

	unseeded   atomic.Bool  // a master that could be seeded is not
	nextReseed atomic.Int64 // instant
}

// fenceMost bounds what is proposed, so that fences stay well below 2^53, which is as far as doubles count. It is in the year 2112.
const fenceMost = 1 << 52

// reseedEvery bounds how often locks take the time to seed masters that they do not need.
const reseedEvery = time.Second

// reseed notes that a master which is not seeded has granted, though not among the first to answer.
func (c *fenceClock) reseed() { c.unseeded.Store(true) }

// mayReseed says, once, whether there is such a master, and it is time.
func (c *fenceClock) mayReseed(now instant) bool {
	next := c.nextReseed.Load()
	if !c.unseeded.Load() || int64(now) < next || !c.nextReseed.CompareAndSwap(next, int64(now+reseedEvery)) {
		return false
	}
	c.unseeded.Store(false)
	return true
}

// next returns a number that was not proposed before.
func (c *fenceClock) next(now instant) int64 {
	n := min(max(c.wall().UnixMicro(), c.seen.Load()+now.Microseconds()), fenceMost)
	for {
		last := c.last.Load()
		if n = max(n, last+1); c.last.CompareAndSwap(last, n) {
			return n
		}
	}
}

// learn takes a fence that a master has.
func (c *fenceClock) learn(fence int64, now instant) { raise(&c.seen, fence-now.Microseconds()) }
