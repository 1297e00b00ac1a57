package quorum

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime reads the clock that goes on while the machine is suspended. On this system that is CLOCK_MONOTONIC; Go's monotonic
// clock is another one, which stands still.
func bootTime() (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return time.Duration(t.Nano()), err == nil
}
