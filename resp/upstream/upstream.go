// Package upstream is the Redis for everything except locks, for an application with one Redis URL, which leads to
// lockproxy.
//
// Each client's connection to lockproxy has a connection of its own to the upstream, over which requests and replies go
// unchanged. Only so do SELECT, MULTI, blocking commands, messages and future commands of the server mean the same as
// on one Redis. So there is no pooled client library, but plain connections with framing of our own: a wire.Framer says
// where a reply ends, and nobody looks into the reply.
//
// The package knows how to connect (Dial, DialPatiently), where replies end (wire.Framer), and, from the server's own
// COMMAND, which arguments are keys (Commands, GetKeys). Package resp decides which commands go where.
package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lockproxy/resp/wire"
)

// Options say where the server is, and how to log in.
type Options struct {
	Addr        string
	TLS         func() *tls.Config // of the next connection, with a check that the certificate names Addr's host; nil: no TLS
	Username    string
	Password    func() string           // of the next connection; default: none
	DialTimeout time.Duration           // for connecting and greeting; default 1 s
	Wrap        func(net.Conn) net.Conn // of each new TCP connection; default: unchanged
}

// A Redis is the upstream. A Redis keeps a connection for questions of its own, and one to watch the server. All other
// connections belong to their callers.
type Redis struct {
	opt      Options
	commands atomic.Pointer[Commands]
	answered atomic.Bool // the server has answered, ever
	another  atomic.Bool // a connection was lost: the next may lead to another server, with other commands
	asking   sync.Mutex  // held by whoever asks for commands
	watcher  *watcher    // nil: nobody watches

	turns chan struct{} // has an element for each DialPatiently that is connecting

	mu      sync.Mutex // guards the fields below
	own     *line      // nil: none, or in use for a question
	retryAt time.Time  // until then, failure stands for another attempt
	failure error
	reached time.Time // when a connection was made last
	cause   string    // why the upstream cannot be used, as the watcher found
	barred  error     // why no connection may be made for clients; nil: connections may be made
}

// New returns the upstream, without connecting.
func New(opt Options) *Redis {
	if opt.DialTimeout <= 0 {
		opt.DialTimeout = time.Second
	}
	if opt.Password == nil {
		opt.Password = func() string { return "" }
	}
	if opt.Wrap == nil {
		opt.Wrap = func(c net.Conn) net.Conn { return c }
	}
	return &Redis{opt: opt, turns: make(chan struct{}, turnsMax)}
}

// Addr returns host:port.
func (u *Redis) Addr() string { return u.opt.Addr }

// Commands returns the server's commands. If they are unknown, or may have changed, Commands asks the server. While the
// server does not answer, the former answer holds. Callers at the same time share one question, or its failure
// (failurePause).
func (u *Redis) Commands() (*Commands, error) {
	if known := u.commands.Load(); known != nil && !u.another.Load() {
		return known, nil
	}
	u.asking.Lock()
	defer u.asking.Unlock()
	before := u.commands.Load()
	if !u.another.Swap(false) && before != nil {
		return before, nil
	}
	reply, err := u.ask(context.Background(), "COMMAND")
	if refused, ok := reply.(ReplyError); ok {
		err = fmt.Errorf("upstream %s: COMMAND: %w", u.opt.Addr, refused)
	}
	if err != nil {
		u.another.Store(true)
		if before != nil {
			return before, nil
		}
		return nil, err
	}
	known := parseCommands(reply)
	u.commands.Store(known)
	return known, nil
}

// GetKeys asks the server which arguments are keys. GetKeys returns none if the server says that there are none.
func (u *Redis) GetKeys(args []string) ([]string, error) {
	reply, err := u.ask(context.Background(), append([]string{"COMMAND", "GETKEYS"}, args...)...)
	if err != nil {
		return nil, err
	}
	if refused, ok := reply.(ReplyError); ok && !strings.HasPrefix(string(refused), "ERR ") {
		return nil, fmt.Errorf("upstream %s: COMMAND GETKEYS: %w", u.opt.Addr, refused)
	}
	list, _ := reply.([]any) // an ERR means no keys, or a wrong command
	var names []string
	for _, item := range list {
		if name, ok := item.(string); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// Unblock ends, with an error, the waiting command of the connection with this id at the server. Unblock returns why
// that failed; nil also if the connection waits for nothing. Unblock gives up when ctx ends.
func (u *Redis) Unblock(ctx context.Context, id int64) error {
	return u.demand(ctx, "CLIENT", "UNBLOCK", strconv.FormatInt(id, 10), "ERROR")
}

// KillScript ends the server's running script, or returns why that failed. KillScript needs no SELECT, which a busy
// server refuses.
func (u *Redis) KillScript() error { return u.demand(context.Background(), "SCRIPT", "KILL") }

// demand is ask for a question whose reply matters only if it is an error.
func (u *Redis) demand(ctx context.Context, args ...string) error {
	reply, err := u.ask(ctx, args...)
	if refused, ok := reply.(ReplyError); ok {
		return refused
	}
	return err
}

// ask puts a question of our own, on the connection that is kept for questions. If that connection has broken, ask puts
// the question again on a new one.
func (u *Redis) ask(ctx context.Context, args ...string) (any, error) {
	own := u.keep(nil)
	if own != nil {
		if reply, err := own.ask(ctx, u.opt.DialTimeout, args...); err == nil {
			u.keep(own).close()
			return reply, nil
		}
	}
	conn, err := u.Dial(ctx, Greeting{Name: "lockproxy"})
	if err != nil {
		return nil, err
	}
	own = newLine(conn)
	reply, err := own.ask(ctx, u.opt.DialTimeout, args...)
	if err != nil {
		return nil, u.failed(err)
	}
	u.keep(own).close()
	return reply, nil
}

// keep keeps the connection for the next question, and returns the connection kept before.
func (u *Redis) keep(own *line) (before *line) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, u.own = u.own, own
	return before
}

// A line is a connection for questions of our own.
type line struct {
	conn  net.Conn
	reads *bufio.Reader
}

func newLine(conn net.Conn) *line { return &line{conn, bufio.NewReaderSize(conn, 16<<10)} }

// ask waits for the answer for at most patience, and until ctx ends. After a failure the connection is closed.
func (l *line) ask(ctx context.Context, patience time.Duration, args ...string) (reply any, err error) {
	_ = l.conn.SetDeadline(time.Now().Add(patience))
	stop := context.AfterFunc(ctx, l.close)
	defer stop()
	if _, err = l.conn.Write(wire.AppendCommand(nil, args...)); err == nil {
		reply, err = readReply(l.reads)
	}
	if err != nil {
		l.close()
	}
	return reply, err
}

func (l *line) close() {
	if l != nil {
		_ = l.conn.Close()
	}
}

// Close closes the kept connection, and ends Watch.
func (u *Redis) Close() {
	if u.watcher != nil {
		u.watcher.end()
		<-u.watcher.done
	}
	u.keep(nil).close()
}
