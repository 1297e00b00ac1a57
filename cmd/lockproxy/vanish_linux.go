package main

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// unconfirmed returns for how long the other end has confirmed nothing; 0 unless the kernel has repeated something, or asked, more
// than once. (A client that takes no more is asked ever more rarely whether it does, and one question may just be under way.) The
// error says that c is closed.
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
