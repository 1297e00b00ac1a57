package main

import (
	"context"
	"maps"
	"net"
	"sync"
	"time"
)

// vanishedAfter is how long a client's machine may give no sign of life before the client counts as gone.
const vanishedAfter = 30 * time.Second

// clientSockets finds out about clients that vanish without closing their connections, as when their machine loses its
// power, so that what is held for them is released. On a connection on which nothing is sent, the kernel asks whether the client is
// there. With the default settings that takes two and a half minutes.
func clientSockets() net.ListenConfig {
	sockets := net.ListenConfig{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: vanishedAfter / 3, Interval: vanishedAfter / 6, Count: 4},
	}
	sockets.SetMultipathTCP(false) // unconfirmed looks at one path only
	return sockets
}

// A vanishing listener does the same for connections on which something was sent: for its receipt, the kernel would wait a quarter
// of an hour. The listener closes those whose clients do not confirm it. A client that only reads slowly, or nothing for a while,
// does confirm. TCP_USER_TIMEOUT would need no goroutine, but it ends the connections of such slow clients, too.
type vanishing struct {
	net.Listener
	patience time.Duration
	cancel   context.CancelFunc
	watching sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns map[*net.TCPConn]struct{}
}

// endVanished returns l as such a listener, which watches what it accepts until it is closed.
func endVanished(l net.Listener, patience time.Duration) *vanishing {
	ctx, cancel := context.WithCancel(context.Background())
	v := &vanishing{Listener: l, patience: patience, cancel: cancel, conns: map[*net.TCPConn]struct{}{}}
	v.watching.Go(func() { v.watch(ctx) })
	return v
}

func (v *vanishing) Accept() (net.Conn, error) {
	c, err := v.Listener.Accept()
	if t, ok := c.(*net.TCPConn); ok {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.conns[t] = struct{}{}
	}
	return c, err
}

func (v *vanishing) Close() error {
	v.cancel()
	v.watching.Wait()
	return v.Listener.Close()
}

func (v *vanishing) watch(ctx context.Context) {
	tick := time.NewTicker(v.patience / 6)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			v.mu.Lock()
			maps.DeleteFunc(v.conns, func(c *net.TCPConn, _ struct{}) bool { return v.over(c) })
			v.mu.Unlock()
		}
	}
}

// over says whether the connection is closed, as it is now if its client has vanished.
func (v *vanishing) over(c *net.TCPConn) bool {
	since, err := unconfirmed(c)
	if err == nil && since > v.patience {
		_ = c.Close()
		return true
	}
	return err != nil
}
