//go:build !linux

package held

import "time"

func now() Instant { return Instant(time.Since(started)) }
