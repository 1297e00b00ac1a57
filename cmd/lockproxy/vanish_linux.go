package main

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// unconfirmed returns for how long the client has confirmed nothing, 0 if nothing was sent to it again: where it takes no more,
// the kernel asks ever more rarely whether it does, and one question may be under way. The error says that c is closed.
func unconfirmed(c *net.TCPConn) (since time.Duration, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil && (info.Retransmits > 1 || info.Probes > 1) {
			since = time.Duration(info.Last_ack_recv) * time.Millisecond
		}
	})
	return since, err
}
