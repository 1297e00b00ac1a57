package masters

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Redis is a Master reached over TCP or TLS by go-redis.
type Redis struct {
	opt      redis.Options
	dialer   net.Dialer
	tls      func() *tls.Config // nil: none
	wrap     func(net.Conn) net.Conn
	room     *Room
	password func() string // of the next connection; nil: opt has the password
}

// RedisOptions are the options that the masters of a deployment share.
type RedisOptions struct {
	DialTimeout time.Duration           // of TCP and TLS together; default 1 s
	Username    string                  // where the URL names none
	Password    func() string           // of the next connection, where the URL names none; default: none
	TLS         func() *tls.Config      // for rediss:// URLs, of the next connection; default: TLS 1.2 at least, and authorities of the system
	Wrap        func(net.Conn) net.Conn // of each new TCP connection; default: unchanged
	Room        *Room                   // for replies; default: no bound
}

func init() {
	// Every error that go-redis would print reaches the caller, and is logged there once.
	logging.Disable()
}

// NewRedis returns the master at address, a redis:// or rediss:// URL or a plain host:port. NewRedis does not connect.
func NewRedis(address string, o RedisOptions) (*Redis, error) {
	if !strings.Contains(address, "://") {
		address = "redis://" + address
	}
	opt, err := redis.ParseURL(address)
	var malformed *url.Error
	switch {
	case errors.As(err, &malformed): // the error quotes the whole text, with the password
		return nil, errors.New("it is no URL; write redis://user:password@host:port")
	case err != nil:
		return nil, errors.New(strings.TrimPrefix(err.Error(), "redis: "))
	}
	if opt.DB != 0 {
		return nil, fmt.Errorf("master %s: leave the database out of the URL: a client's SELECT names it", opt.Addr)
	}
	if opt.Password != "" {
		o.Password = nil
	} else if opt.Username == "" {
		opt.Username = o.Username
	}
	secure := o.TLS
	switch own := opt.TLSConfig; {
	case own == nil:
		secure = nil
	case o.TLS == nil:
		secure = func() *tls.Config { return own }
	}
	if o.Wrap == nil {
		o.Wrap = func(c net.Conn) net.Conn { return c }
	}
	if o.DialTimeout <= 0 {
		o.DialTimeout = time.Second
	}
	// One connection, no retries, no features that write commands of their own: only the lane decides which commands it
	// carries, and in which order.
	opt.Protocol = 2
	opt.PoolSize, opt.MinIdleConns, opt.MaxRetries = 1, 0, -1
	opt.DialerRetries = 1
	opt.DialTimeout = o.DialTimeout
	// No deadlines on the socket: deadlines cost a few percent of our time. A caller that waits too long closes the
	// connection.
	opt.ReadTimeout, opt.WriteTimeout = -2, -2
	opt.DisableIdentity = true
	opt.ConnMaxIdleTime, opt.ConnMaxLifetime = -1, -1
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &Redis{opt: *opt, dialer: net.Dialer{Timeout: o.DialTimeout, KeepAlive: 15 * time.Second}, password: o.Password,
		tls: secure, wrap: o.Wrap, room: o.Room}, nil
}

// Addr returns host:port.
func (m *Redis) Addr() string { return m.opt.Addr }

// Dial connects, authenticates and selects db.
func (m *Redis) Dial(ctx context.Context, db int) (Conn, error) {
	return m.open(ctx, db, func(c *redis.Conn) error {
		if err := c.Ping(context.Background()).Err(); !isNoPerm(err) {
			return err
		}
		return nil
	})
}

// KillScript ends the script that the master runs, if the script has written nothing.
func (m *Redis) KillScript(ctx context.Context) error {
	c, err := m.open(ctx, 0, func(c *redis.Conn) error { return c.ScriptKill(context.Background()).Err() })
	if err == nil {
		_ = c.Close()
	}
	return err
}

// open connects, authenticates, selects db and says the first words, which must succeed.
func (m *Redis) open(ctx context.Context, db int, words func(*redis.Conn) error) (Conn, error) {
	raw, err := m.dial(ctx)
	if err != nil {
		return nil, err
	}
	// go-redis cannot be interrupted while it waits for the answer to HELLO. Closing the socket under go-redis ends the
	// wait.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()

	first := &heard{Conn: raw}
	opt := m.greeting(first)
	opt.DB = db
	client := redis.NewClient(opt)
	conn := client.Conn()
	err = words(conn)
	_ = conn.Close()
	_ = client.Close()
	if err != nil {
		err = first.turnedAway(err)
		_ = raw.Close()
		return nil, whyEnded(ctx, raw, err)
	}
	return &redisConn{raw: raw, wire: newWire(raw, m.room)}, nil
}

// greeting returns go-redis's options for the first words.
func (m *Redis) greeting(raw net.Conn) *redis.Options {
	opt := m.opt
	opt.Dialer = once(greeted{raw})
	if m.password != nil {
		opt.Password = m.password()
	}
	return &opt
}

// A greeted connection is a connection on which go-redis says the first words. Afterwards the connection is ours.
type greeted struct{ net.Conn }

func (greeted) Close() error { return nil }

// dial opens the socket itself, so that go-redis never dials: a lane must know of every new connection before its first
// command.
func (m *Redis) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, m.opt.DialTimeout)
	defer cancel()
	conn, err := m.dialer.DialContext(ctx, m.opt.Network, m.opt.Addr)
	if err != nil {
		return nil, steady(err)
	}
	conn = m.wrap(conn)
	if !m.TLS() {
		return conn, nil
	}
	config := m.tls().Clone()
	config.ServerName, _, _ = net.SplitHostPort(m.opt.Addr)
	return secure(ctx, conn, config)
}

// TLS says that the URL asks for TLS.
func (m *Redis) TLS() bool { return m.tls != nil }

// once returns a dialer that returns raw, one time.
func once(raw net.Conn) func(context.Context, string, string) (net.Conn, error) {
	used := false
	return func(context.Context, string, string) (net.Conn, error) {
		if used {
			return nil, net.ErrClosed
		}
		used = true
		return raw, nil
	}
}

type redisConn struct {
	raw  net.Conn
	wire *wire
}

func (c *redisConn) Send(calls []*Call) error { return c.wire.send(calls) }

func (c *redisConn) Receive(calls []*Call) error { return c.wire.receive(calls) }

func (c *redisConn) Exec(calls []*Call) error { return c.wire.exec(calls) }

// Close may be called while Send or Receive runs, and ends both.
func (c *redisConn) Close() error { return c.raw.Close() }

// isReply tells a master's error reply from an error of the connection.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// isNoPerm recognises that the user may not run a command.
func isNoPerm(err error) bool {
	return err != nil && isReply(err) && strings.HasPrefix(err.Error(), "NOPERM")
}

var (
	_ Master = (*Redis)(nil)
	_ Conn   = (*redisConn)(nil)
)
