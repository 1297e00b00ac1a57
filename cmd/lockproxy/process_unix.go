//go:build unix

package main

import (
	"math"
	"syscall"
	"time"
)

// processorTime is the processor time of this process, by itself and in the kernel; 0 if unknown.
func processorTime() (user, system time.Duration) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}

// filesMax is how many files this process may have open at once; 0 if unknown. Go has raised the limit as far as the system permits.
func filesMax() int {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	return int(min(r.Cur, math.MaxInt32))
}
