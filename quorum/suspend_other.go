//go:build !linux && !darwin

package quorum

import "time"

// bootTime is not known here.
func bootTime() (time.Duration, bool) { return 0, false }
