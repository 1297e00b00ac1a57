package quorum

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime reads the clock that goes on while the machine is suspended.
func bootTime() (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano()), err == nil
}
