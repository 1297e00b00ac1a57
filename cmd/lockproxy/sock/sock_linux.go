//go:build !386 && !s390x

package sock

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// Wrap returns a plain TCP connection with cheaper Read and Write, and any other connection unchanged. All else is c's
// own, including deadlines, and closing while others wait.
func Wrap(c net.Conn) net.Conn {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return c
	}
	w := &conn{TCPConn: t, raw: raw}
	w.in.try, w.out.try = w.in.read, w.out.write
	return w
}

type conn struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out transfer
}

// A transfer is the state of one direction: the Read or Write under way.
type transfer struct {
	mu    sync.Mutex // held during the whole transfer
	b     []byte
	n     int
	errno syscall.Errno
	try   func(fd uintptr) bool // a method of the transfer, made into a function once
}

func (c *conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return c.TCPConn.Read(b)
	}
	n, err := c.transfer("read", &c.in, b, c.raw.Read)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) { return c.transfer("write", &c.out, b, c.raw.Write) }

// transfer calls t.try until t.try returns true, and between the calls waits for the socket.
func (c *conn) transfer(op string, t *transfer, b []byte, untilReady func(func(fd uintptr) bool) error) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b, t.n, t.errno = b, 0, 0
	err := untilReady(t.try)
	t.b = nil
	switch {
	case t.errno != 0:
		err = &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(op, t.errno)}
	case err != nil:
		rename(err, op)
	}
	return t.n, err
}

// rename has an error name the operation: "read" as in package net, not "raw-read".
func rename(err error, op string) {
	if named, ok := errors.AsType[*net.OpError](err); ok {
		named.Op = op
	}
}

// read returns false if nothing has come yet.
func (t *transfer) read(fd uintptr) bool {
	t.n, t.errno = call(syscall.SYS_RECVFROM, fd, t.b)
	return t.errno != syscall.EAGAIN || t.again()
}

// write returns false if the socket takes no more yet.
func (t *transfer) write(fd uintptr) bool {
	for t.n < len(t.b) {
		var n int
		n, t.errno = call(syscall.SYS_SENDTO, fd, t.b[t.n:])
		if t.errno != 0 {
			return t.errno != syscall.EAGAIN || t.again()
		}
		t.n += n
	}
	return true
}

// again forgets that the socket was not ready.
func (t *transfer) again() bool {
	t.errno = 0
	return false
}

// call receives or sends, not telling the scheduler: the socket is in non-blocking mode, as all of package net.
func call(trap, fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), syscall.MSG_NOSIGNAL, 0, 0) //nolint:gosec // b stays where it is until the call returns, and is not empty
		switch errno {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
