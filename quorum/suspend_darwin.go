package quorum

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime reads the clock that goes on while the machine sleeps: here that one is called monotonic, and the one that Go
// calls so does not.
func bootTime() (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return time.Duration(t.Nano()), err == nil
}
