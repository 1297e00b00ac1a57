//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime is what this process has used, by itself and in the kernel. It is 0 where that is not known.
func processorTime() (user, system time.Duration) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}
