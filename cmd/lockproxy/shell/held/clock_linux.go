package held

import (
	"time"

	"golang.org/x/sys/unix"
)

// now is a clock that also runs while the machine is suspended, which Go's does not on Linux: a lock expires then, too.
func now() Instant {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return Instant(time.Since(started))
	}
	return Instant(t.Nano())
}
