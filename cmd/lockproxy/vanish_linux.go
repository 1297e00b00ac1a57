package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// unconfirmedMax bounds how long what is sent may be unconfirmed, or wait for a client that reads nothing, on the connections
// that a listening socket accepts. A kernel that cannot do it goes by its own patience.
func unconfirmedMax(fd int, d time.Duration) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
}
