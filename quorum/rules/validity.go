package rules

import (
	"math"
	"time"
)

// ClockFloor is the part of the drift that does not depend on the TTL.
// 2 ms: Redis expires to 1 ms, and small TTLs need a floor.
const ClockFloor = 2 * time.Millisecond

// Drift returns how far a master's clock and ours may come apart while a lock with this TTL lives:
// drift = TTL × factor + 2 ms.
func Drift(ttl time.Duration, factor float64) time.Duration {
	return time.Duration(math.Ceil(float64(ttl)*factor)) + ClockFloor
}

// Validity returns how long a lock may still be relied upon: TTL − elapsed − drift. A lock without positive validity must
// not be used at all.
func Validity(ttl, elapsed time.Duration, factor float64) time.Duration {
	//mutant: validity without drift
	return ttl - elapsed - Drift(ttl, factor)
}

// TTLMin returns the shortest TTL, in whole milliseconds, of which a whole millisecond of validity is left if no time elapses.
// A client that sets a shorter TTL gives the lock up, as ShedLock does in its unlock: the change is made, and nothing is promised.
func TTLMin(factor float64) time.Duration {
	ttl := time.Millisecond
	for Validity(ttl, 0, factor) < time.Millisecond {
		ttl += time.Millisecond
	}
	return ttl
}

// Kept returns how long masters are told to keep the key of a lock: TTL + drift + grace, in whole milliseconds, rounded
// up. A client that counts the TTL from its own send is then never ahead of the masters.
func Kept(ttl, grace time.Duration, factor float64) time.Duration {
	//mutant: keys kept without drift and grace
	//mutant: keys kept without drift
	return CeilMillis(ttl + Drift(ttl, factor) + grace)
}

// Shown is the inverse of Kept: the remaining TTL that a client is told, when a quorum will hold the key
// for so much longer. Shown is exact for a key just set that expires when the client asked (see quorum.sighting), and at least
// 1 ms, because the key is there.
func Shown(remaining, grace time.Duration, factor float64) time.Duration {
	ttl := time.Duration(float64(remaining-ClockFloor-grace) / (1 + factor))
	return max(ttl.Truncate(time.Millisecond), time.Millisecond)
}

// CeilMillis rounds up to whole milliseconds.
func CeilMillis(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}
