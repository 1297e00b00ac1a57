package resp

import (
	"fmt"
	"math"
	"time"

	"lockproxy/resp/wire"
)

// An expiry is a time to live as a client gave it: a number with the unit and base that the option's name says.
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

// expiryOption finds the expiry that an option of SET names.
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

// ttl returns the time to live that n means now, with Redis's overflow checks; the result is cut to what a Duration
// can hold, far beyond any ttl_max. It is false if Redis would call n invalid.
func (e expiry) ttl(n int64, now func() time.Time) (time.Duration, bool) {
	ms := n
	if e.unit == time.Second {
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return 0, false
		}
		ms = n * 1000
	}
	if !e.absolute && ms <= mostMillis { // whatever time it is
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

// mostMillis are as many as a Duration can hold.
const mostMillis = math.MaxInt64 / int64(time.Millisecond)

func clampMillis(ms int64) time.Duration {
	return time.Duration(min(max(ms, -mostMillis), mostMillis)) * time.Millisecond
}

// readTTL reads the expiry that the command of that name sets a key with: a positive number, even of a Unix time. It returns a reply if
// that is refused.
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

// checkMax is checkTTLMax for a TTL that the client gave as that number.
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
