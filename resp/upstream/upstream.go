// Package upstream is the Redis that has everything except locks, for an application with one Redis URL, which leads to lockproxy.
//
// Each client's connection to lockproxy has a connection of its own to the upstream, over which requests and replies go as
// they are. Only then do SELECT, MULTI, blocking commands, messages and whatever the server learns one day mean what they
// mean on one Redis. So there is no pooled client
// library, but plain connections with framing of our own: a wire.Framer says where a reply ends, and nobody looks into the reply.
//
// The package knows how to connect (Dial, DialPatiently), where replies end (wire.Framer), and, from the server's
// own COMMAND, which arguments are keys (Commands, GetKeys). What is sent where
// is decided in package resp.
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

// Options say which server it is.
type Options struct {
	Addr        string
	TLS         func() *tls.Config // of the next connection, which looks whether the certificate names Addr's host; nil: no TLS
	Username    string
	Password    func() string           // of the next connection; default: none
	DialTimeout time.Duration           // for connecting and greeting; default 1 s
	Wrap        func(net.Conn) net.Conn // of each new TCP connection; default: as it is
}

// A Redis is the upstream. It keeps a connection for questions of its own, and one to watch it; all others are their callers'.
type Redis struct {
	opt      Options
	commands atomic.Pointer[Commands]
	answered atomic.Bool // it has, ever
	another  atomic.Bool // a connection was lost: the next may lead to another server, with other commands
	asking   sync.Mutex  // held by whoever asks for commands
	watcher  *watcher    // nil: nobody watches

	turns chan struct{} // has an element for each DialPatiently whose turn it is

	mu      sync.Mutex // guards what follows
	own     *line      // nil: none, or somebody asks over it
	retryAt time.Time  // until then, failure stands for another attempt
	failure error
	reached time.Time // when a connection was made last
	cause   string    // why it cannot be used, as the watcher found
	barred  error     // why no connection may be made for clients; nil: they may
}

// New returns the upstream. It does not connect.
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

// Commands returns the server's commands. If they are not known, or may have changed, it asks the server; while that does not answer,
// what was known holds. Callers at the same time share one question, or its failure (failurePause).
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

// GetKeys asks the server which arguments are keys. It returns none if the server says that there are none.
func (u *Redis) GetKeys(args []string) ([]string, error) {
	reply, err := u.ask(context.Background(), append([]string{"COMMAND", "GETKEYS"}, args...)...)
	if err != nil {
		return nil, err
	}
	if refused, ok := reply.(ReplyError); ok && !strings.HasPrefix(string(refused), "ERR ") {
		return nil, fmt.Errorf("upstream %s: COMMAND GETKEYS: %w", u.opt.Addr, refused)
	}
	list, _ := reply.([]any) // an ERR says that there are no keys, or that the command is wrong
	var names []string
	for _, item := range list {
		if name, ok := item.(string); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// Unblock ends, with an error, the command for which the connection of this id at the server waits. It returns why it could not;
// nil if the connection waits for nothing. It gives up when ctx ends.
func (u *Redis) Unblock(ctx context.Context, id int64) error {
	return u.demand(ctx, "CLIENT", "UNBLOCK", strconv.FormatInt(id, 10), "ERROR")
}

// KillScript ends the script that the server runs, or says why it did not. It needs no SELECT, which a busy server refuses.
func (u *Redis) KillScript() error { return u.demand(context.Background(), "SCRIPT", "KILL") }

// demand is ask for a question whose reply matters only if it is an error.
func (u *Redis) demand(ctx context.Context, args ...string) error {
	reply, err := u.ask(ctx, args...)
	if refused, ok := reply.(ReplyError); ok {
		return refused
	}
	return err
}

// ask puts a question of our own, on a connection that is kept for questions. If that connection has broken, it asks again on a new
// one.
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

// keep keeps the connection for the next question, and returns what was kept before.
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

// ask waits for the answer for at most patience, and until ctx ends. If it fails, it closes the connection.
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

// Close closes what is kept, and ends Watch.
func (u *Redis) Close() {
	if u.watcher != nil {
		u.watcher.end()
		<-u.watcher.done
	}
	u.keep(nil).close()
}
