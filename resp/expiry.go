package resp

import (
	"fmt"
	"math"
	"time"

	"lockproxy/resp/wire"
)

// An expiry is the unit and base of a time to live given by a client, as said by the option's name.
type expiry struct {
	unit     time.Duration
	absolute bool // a Unix time
}

var (
	seconds     = expiry{unit: time.Second}
	millis      = expiry{unit: time.Millisecond}
	unixSeconds = expiry{unit: time.Second, absolute: true}
	unixMillis  = expiry{unit: time.Millisecond, absolute: true}
)

// expiryOption finds the expiry of an option of SET.
func expiryOption(name string) (expiry, bool) {
	switch {
	case wire.EqualFold(name, "ex"):
		return seconds, true
	case wire.EqualFold(name, "px"):
		return millis, true
	case wire.EqualFold(name, "exat"):
		return unixSeconds, true
	case wire.EqualFold(name, "pxat"):
		return unixMillis, true
	}
	return expiry{}, false
}

// ttl returns the time to live meant by n now, with Redis's overflow checks. The result is cut to the range of a Duration, far beyond any
// ttl_max. The result is false if Redis would call n invalid.
func (e expiry) ttl(n int64, now func() time.Time) (time.Duration, bool) {
	ms := n
	if e.unit == time.Second {
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return 0, false
		}
		ms = n * 1000
	}
	if !e.absolute && ms <= mostMillis { // independent of the present time
		return clampMillis(ms), true
	}
	unix := now().UnixMilli()
	if e.absolute {
		if ms < math.MinInt64+unix {
			return math.MinInt64, true
		}
		return clampMillis(ms - unix), true
	}
	if ms > math.MaxInt64-unix {
		return 0, false
	}
	return clampMillis(ms), true
}

// mostMillis are the most milliseconds of a Duration.
const mostMillis = math.MaxInt64 / int64(time.Millisecond)

func clampMillis(ms int64) time.Duration {
	return time.Duration(min(max(ms, -mostMillis), mostMillis)) * time.Millisecond
}

// readTTL reads the expiry with which the named command sets a key: a positive number, even of a Unix time. A refusal is returned as a
// reply.
func readTTL(command string, ttlMax time.Duration, e expiry, text string) (time.Duration, Reply) {
	n, ok := wire.ParseInt(text)
	if !ok {
		return 0, errNotInt
	}
	if n <= 0 {
		return 0, errExpire(command)
	}
	ttl, ok := e.ttl(n, time.Now)
	if !ok {
		return 0, errExpire(command)
	}
	return ttl, e.checkMax(text, ttl, ttlMax)
}

// checkTTLMax returns a reply if ttl exceeds ttlMax.
func checkTTLMax(ttl, ttlMax time.Duration) Reply {
	if ttl > ttlMax {
		return errTTLMax(fmt.Sprintf("%d ms", ttl.Milliseconds()), ttlMax)
	}
	return nil
}

// checkMax is checkTTLMax for a TTL given by the client as that number.
func (e expiry) checkMax(number string, ttl, ttlMax time.Duration) Reply {
	if ttl <= ttlMax {
		return nil
	}
	asked := number + " ms"
	if e.unit == time.Second {
		asked = number + " s"
	}
	if e.absolute {
		asked = "until Unix time " + asked
	}
	return errTTLMax(asked, ttlMax)
}
