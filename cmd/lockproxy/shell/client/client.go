// Package client speaks to a lockproxy, one command at a time over one connection.
//
// Proxies is a list of proxies of the same masters; any proxy will do. Connect goes through the list, beginning with the proxy used
// last, until a proxy answers and takes the login. A connection is not used again after an error, other than a Refusal: a late reply
// could be taken for another command's.
package client

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// dialMax is how long connecting to one proxy may take, with TLS and login.
const dialMax = 3 * time.Second

// Login is the login at a proxy. Without a password there is no login.
type Login struct {
	User     string
	Password string
}

// Proxies are proxies of the same masters, for one goroutine at a time.
type Proxies struct {
	Addrs    []string // host:port
	Login    Login
	Name     string      // of this client, for the proxies' lists; without spaces
	TLS      *tls.Config // nil: without TLS
	Database int
	next     int // of Addrs
}

// Unreachable says that no proxy could be used, with the cause for each proxy that was tried.
type Unreachable struct{ Causes []string }

func (u *Unreachable) Error() string { return strings.Join(u.Causes, "; ") }

// Connect connects to the first proxy that answers. Each proxy has dialMax, and all together have until the deadline. If no proxy
// answers, the error is an *Unreachable.
func (p *Proxies) Connect(deadline time.Time) (*Conn, error) {
	failed := &Unreachable{}
	for range p.Addrs {
		c, err := p.connect(p.Addrs[p.next], deadline)
		if err == nil {
			return c, nil
		}
		failed.Causes = append(failed.Causes, p.Addrs[p.next]+" "+Reason(err))
		p.Advance()
		if !time.Now().Before(deadline) {
			break
		}
	}
	return nil, failed
}

// Advance makes the next proxy of the list the first to be tried.
func (p *Proxies) Advance() { p.next = (p.next + 1) % len(p.Addrs) }

func (p *Proxies) connect(addr string, deadline time.Time) (*Conn, error) {
	if most := time.Now().Add(dialMax); most.Before(deadline) {
		deadline = most
	}
	dialer := &net.Dialer{Deadline: deadline}
	raw, err := dialer.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if p.TLS != nil {
		cfg := p.TLS.Clone()
		if cfg.ServerName == "" {
			cfg.ServerName, _, _ = net.SplitHostPort(addr)
		}
		raw = tls.Client(raw, cfg)
	}
	c := &Conn{Addr: addr, raw: raw, in: bufio.NewReader(raw)}
	if err := p.greet(c, deadline); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// greet logs in and selects the database.
func (p *Proxies) greet(c *Conn, deadline time.Time) error {
	hello := []string{"HELLO", "3"}
	if p.Login.Password != "" {
		user := p.Login.User
		if user == "" {
			user = "default"
		}
		hello = append(hello, "AUTH", user, p.Login.Password)
	}
	if p.Name != "" {
		hello = append(hello, "SETNAME", p.Name)
	}
	if _, err := c.Do(deadline, hello...); err != nil {
		return p.guessTLS(err)
	}
	if p.Database > 0 {
		if _, err := c.Do(deadline, "SELECT", strconv.Itoa(p.Database)); err != nil {
			return err
		}
	}
	return nil
}

// guessTLS adds to the error of a first command what mends a connection with TLS on one side only.
func (p *Proxies) guessTLS(err error) error {
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain {
		return errors.New("does not speak TLS: leave the flags and variables of TLS out")
	}
	if p.TLS == nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) {
		return errors.New("closed the connection: if it speaks TLS, give --tls, or --tls-ca")
	}
	return err
}

// Reason puts an error of a connection into few words.
func Reason(err error) string {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "did not answer in time"
	}
	if refused, ok := errors.AsType[Refusal](err); ok {
		switch refused.Code() {
		case "NOAUTH":
			return "needs a login: " + mendLogin
		case "WRONGPASS":
			return "does not take the login: " + mendLogin
		}
		return "answered " + string(refused)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return strings.TrimPrefix(op.Err.Error(), "connect: ")
	}
	return err.Error()
}

const mendLogin = "set LOCKPROXY_PROXY_USER and LOCKPROXY_PROXY_PASSWORD, or --password-file"

// A Conn is a connection to a proxy.
type Conn struct {
	Addr string
	raw  net.Conn
	in   *bufio.Reader
}

// Do sends a command and returns its reply. An error reply of the proxy is a Refusal, and the connection can be used again. After any
// other error the connection must not be used.
func (c *Conn) Do(deadline time.Time, args ...string) (any, error) {
	if err := c.raw.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if _, err := c.raw.Write(encode(args)); err != nil {
		return nil, err
	}
	for {
		first, err := c.in.Peek(1)
		if err != nil {
			return nil, err
		}
		push := first[0] == '>' // a push is no reply; Peek's bytes do not last
		reply, err := readReply(c.in, 0)
		if err != nil {
			return nil, err
		}
		if push {
			continue
		}
		if refused, is := reply.(Refusal); is {
			return nil, refused
		}
		return reply, nil
	}
}

// Close ends the connection.
func (c *Conn) Close() { _ = c.raw.Close() }

func encode(args []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}
