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

// A lookout does the same for connections on which something was sent: for its receipt, the kernel would wait a quarter of an hour. It
// closes those whose other end does not confirm it. A client that only reads slowly, or nothing for a while, does confirm, and so does
// an upstream that is busy. TCP_USER_TIMEOUT would need no goroutine, but it ends the connections of such slow clients, too.
type lookout struct {
	patience time.Duration
	cancel   context.CancelFunc
	watching sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns map[*net.TCPConn]struct{}
}

// keepLookout begins one, which lasts until it is ended.
func keepLookout(patience time.Duration) *lookout {
	ctx, cancel := context.WithCancel(context.Background())
	v := &lookout{patience: patience, cancel: cancel, conns: map[*net.TCPConn]struct{}{}}
	v.watching.Go(func() { v.watch(ctx) })
	return v
}

func (v *lookout) add(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.conns[t] = struct{}{}
	}
}

func (v *lookout) end() {
	v.cancel()
	v.watching.Wait()
}

func (v *lookout) watch(ctx context.Context) {
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

// over says whether the connection is closed, as it is now if its other end has vanished.
func (v *lookout) over(c *net.TCPConn) bool {
	since, err := unconfirmed(c)
	if err == nil && since > v.patience {
		_ = c.Close()
		return true
	}
	return err != nil
}

// A vanishing listener keeps a lookout over what it accepts.
type vanishing struct {
	net.Listener
	*lookout
}

// endVanished returns l as such a listener.
func endVanished(l net.Listener, patience time.Duration) *vanishing {
	return &vanishing{l, keepLookout(patience)}
}

func (v *vanishing) Accept() (net.Conn, error) {
	c, err := v.Listener.Accept()
	v.add(c)
	return c, err
}

func (v *vanishing) Close() error {
	v.end()
	return v.Listener.Close()
}
