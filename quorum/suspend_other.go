//go:build !linux && !darwin

package quorum

import "time"

// bootTime says that no such clock is known on this system.
func bootTime() (time.Duration, bool) { return 0, false }
