package main

import (
	"net"
	"syscall"
	"time"
)

// vanishedAfter is how long a client's machine may give no sign of life before the client counts as gone.
const vanishedAfter = 30 * time.Second

// clientSockets finds out about clients that vanish without closing their connections, as when their machine loses its
// power, so that what is held for them is released. Where nothing is sent, the kernel asks whether they are there; where
// something was, it counts the time for which they do not confirm it. By default that takes it two and a half minutes, and
// a quarter of an hour.
func clientSockets(writeTimeout time.Duration) net.ListenConfig {
	sockets := net.ListenConfig{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: vanishedAfter / 3, Interval: vanishedAfter / 6, Count: 4},
		Control: func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { unconfirmedMax(int(fd), max(vanishedAfter, writeTimeout)) })
		},
	}
	sockets.SetMultipathTCP(false) // connections would not have what the listening socket was told
	return sockets
}
