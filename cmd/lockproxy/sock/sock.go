// Package sock makes TCP connections cheaper to read and write.
//
// Go's scheduler is told of every system call, because the call might block. A socket in non-blocking mode does not
// block: it says that there is nothing to read, and then Go waits in another way. Nevertheless a busy proxy pays for
// the telling. The first call after each moment without work wakes the scheduler's watch, a thread which then looks
// every few dozen microseconds for a while. During a call, the kernel may give the processor to another process, as it
// does all the time where others have work too. Then the scheduler goes on with another thread. The connections of this
// package call untold. They also receive and send, as sockets do, where package net reads and writes, as files do: this
// spares the kernel its layer of files.
package sock

import "net"

// Listener returns l with connections as from Wrap.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Wrap(c), nil
}
