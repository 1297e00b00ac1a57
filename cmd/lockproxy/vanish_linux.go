package main

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// unconfirmed returns the time since the other end last confirmed something; 0 unless the kernel has repeated data, or probed, more
// than once. (The kernel probes a client with a full window ever more rarely, and a single probe may just be under way.) An error says
// that c is closed.
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
