// Package balanced tells who a client is that comes through a load balancer, by the PROXY protocol, versions 1 and 2
// (haproxy.org/download/3.2/doc/proxy-protocol.txt). The balancer sends a header before the client's first byte.
package balanced

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"
)

const (
	headerTimeout = 5 * time.Second
	// unreadMax is how many connections may be waited for at one time.
	unreadMax = 1024
	warnEvery = time.Minute
)

// Listener returns l, whose connections from these networks may begin with a header. Then RemoteAddr is the client's address. A
// connection without a header, as a balancer's own check, is its own client. From elsewhere a header is no header but input: anybody could
// claim any address.
func Listener(l net.Listener, networks []netip.Prefix, log *slog.Logger) net.Listener {
	b := &listener{
		Listener: l, networks: networks, log: log,
		accepted: make(chan accepted), unread: make(chan struct{}, unreadMax), closed: make(chan struct{}),
	}
	b.running.Go(b.run)
	return b
}

type listener struct {
	net.Listener
	networks []netip.Prefix
	log      *slog.Logger
	accepted chan accepted
	unread   chan struct{} // one for each connection whose header is being read
	running  sync.WaitGroup
	close    sync.Once
	closed   chan struct{}

	mu     sync.Mutex // guards the fields below
	warned time.Time
}

// An accepted is a result of Accept.
type accepted struct {
	conn net.Conn
	err  error
}

// Accept implements net.Listener. A connection whose header is late holds up no other.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It ends the connections whose header is being read.
func (l *listener) Close() error {
	err := l.Listener.Close()
	l.close.Do(func() { close(l.closed) })
	l.running.Wait()
	return err
}

func (l *listener) run() {
	for {
		c, err := l.Listener.Accept()
		switch {
		case err != nil:
			if !l.hand(accepted{err: err}) {
				return
			}
		case !l.mayBegin(c):
			if !l.hand(accepted{conn: c}) {
				_ = c.Close()
			}
		default:
			select {
			case l.unread <- struct{}{}:
				l.running.Go(func() {
					l.read(c)
					<-l.unread
				})
			default:
				l.warn(c, errors.New("too many connections have not sent their header"))
				_ = c.Close()
			}
		}
	}
}

// hand gives Accept its result; false if the listener is closed.
func (l *listener) hand(a accepted) bool {
	select {
	case l.accepted <- a:
		return true
	case <-l.closed:
		return false
	}
}

// mayBegin says whether the connection may begin with a header.
func (l *listener) mayBegin(c net.Conn) bool {
	addr, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return false
	}
	from := addr.AddrPort().Addr().Unmap()
	return slices.ContainsFunc(l.networks, func(n netip.Prefix) bool { return n.Contains(from) })
}

// read reads the header, if there is one.
func (l *listener) read(c net.Conn) {
	done := make(chan struct{})
	defer close(done)
	go func() { // so that Close waits for nobody
		select {
		case <-l.closed:
			_ = c.SetReadDeadline(time.Unix(1, 0))
		case <-done:
		}
	}()
	_ = c.SetReadDeadline(time.Now().Add(headerTimeout))
	r := bufio.NewReader(c)
	header, err := headerOf(r)
	if err != nil && !errors.Is(err, io.EOF) && (!errors.Is(err, os.ErrDeadlineExceeded) || r.Buffered() > 0) {
		l.warn(c, err)
		_ = c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	rest, _ := r.Peek(r.Buffered())
	client := &conn{Conn: c, rest: rest, from: c.RemoteAddr()}
	if header != nil && header.Command.IsProxy() {
		if source, _, ok := header.TCPAddrs(); ok {
			client.from = source
		}
	}
	if !l.hand(accepted{conn: client}) {
		_ = c.Close()
	}
}

// headerOf returns the header that comes first, nil if there is none. It reads no further than tells.
func headerOf(r *bufio.Reader) (*proxyproto.Header, error) {
	for n := 1; ; n++ {
		begin, err := r.Peek(n)
		switch {
		case err != nil:
			return nil, err
		case bytes.Equal(begin, proxyproto.SIGV1), bytes.Equal(begin, proxyproto.SIGV2):
			return proxyproto.Read(r)
		case !bytes.HasPrefix(proxyproto.SIGV1, begin) && !bytes.HasPrefix(proxyproto.SIGV2, begin):
			return nil, nil
		}
	}
}

// warn tells the log why a connection was closed, once a minute.
func (l *listener) warn(c net.Conn, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.warned) < warnEvery {
		return
	}
	l.warned = time.Now()
	l.log.Warn("a connection from proxy_protocol's networks was closed: its header cannot be read", "client", c.RemoteAddr().String(), "cause", cause)
}

// A conn is a client's connection behind its header.
type conn struct {
	net.Conn
	rest []byte // what came with the header
	from net.Addr
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if len(c.rest) > 0 {
		n := copy(b, c.rest)
		if c.rest = c.rest[n:]; len(c.rest) == 0 {
			c.rest = nil
		}
		return n, nil
	}
	return c.Conn.Read(b)
}

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.from }

// CloseWrite shuts down the sending side, as of a net.TCPConn.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
