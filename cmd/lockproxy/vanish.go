package main

import (
	"context"
	"maps"
	"net"
	"sync"
	"time"
)

// vanishedAfter is the longest silence of a client's machine before the client counts as gone.
const vanishedAfter = 30 * time.Second

// clientSockets detects clients that vanish without closing their connections, as when a machine loses its power. Their locks can then
// be released. On an idle connection, the kernel probes the client. With the default settings the probes take two and a half minutes.
func clientSockets() net.ListenConfig {
	sockets := net.ListenConfig{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: vanishedAfter / 3, Interval: vanishedAfter / 6, Count: 4},
	}
	sockets.SetMultipathTCP(false) // unconfirmed looks at one path only
	return sockets
}

// A lookout detects vanished clients on connections with unconfirmed data: the kernel would wait a quarter of an hour for the receipt.
// A lookout closes a connection whose other end confirms nothing. A client that reads slowly, or nothing for a while, does confirm, and
// so does a busy upstream. TCP_USER_TIMEOUT would need no goroutine, but would end the connections of slow clients, too.
type lookout struct {
	patience time.Duration
	cancel   context.CancelFunc
	watching sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns map[*net.TCPConn]struct{}
}

// keepLookout begins a lookout. The caller ends the lookout by end.
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

// over closes the connection if its other end has vanished, and says whether the connection is closed.
func (v *lookout) over(c *net.TCPConn) bool {
	since, err := unconfirmed(c)
	if err == nil && since > v.patience {
		_ = c.Close()
		return true
	}
	return err != nil
}

// A vanishing listener keeps a lookout over the connections that the listener accepts.
type vanishing struct {
	net.Listener
	*lookout
}

// endVanished returns l as a vanishing listener.
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
