//go:build !unix

package main

import "time"

// processorTime is not known here.
func processorTime() (user, system time.Duration) { return 0, 0 }

// filesMax is not known here.
func filesMax() int { return 0 }
