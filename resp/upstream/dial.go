package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"lockproxy/resp/wire"
)

// failurePause is how long a failed attempt to connect stands for further attempts. A machine that does not answer must
// not cost each command of a pipeline the whole DialTimeout.
const failurePause = 200 * time.Millisecond

// turnsMax is how many connections for clients are made at once. All of several thousand clients may need theirs at the
// same moment, as after a restart. A server drops connections beyond its room: Redis keeps 511 new ones that it has not
// looked at.
const turnsMax = 64

// A Greeting is how a connection is to begin.
type Greeting struct {
	RESP3 bool
	DB    int
	Name  string
}

// Dial connects and greets. Dial takes at most DialTimeout, and gives up when ctx ends. The connection has no deadline,
// and Dial reads nothing of it but the greeting.
func (u *Redis) Dial(ctx context.Context, g Greeting) (net.Conn, error) {
	return u.try(ctx, g, u.dial)
}

// DialPatiently is Dial, but waits for a silent server once it is connected, as a client waits that sends a command to
// a busy server. If the server has never answered, DialPatiently does not wait: it may be no server, or may not speak
// TLS. If many connect at once, DialPatiently waits for its turn.
func (u *Redis) DialPatiently(ctx context.Context, g Greeting) (net.Conn, error) {
	select {
	case u.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, u.named(ctx.Err())
	}
	over := sync.OnceFunc(func() { <-u.turns })
	defer over()
	defer time.AfterFunc(u.opt.DialTimeout, over).Stop() // others may find the server elsewhere
	if !u.answered.Load() {
		return u.Dial(ctx, g)
	}
	return u.try(ctx, g, u.dialPatiently)
}

// try dials, unless dialling has failed just before, or is barred.
func (u *Redis) try(ctx context.Context, g Greeting, dial func(context.Context, Greeting) (net.Conn, error)) (net.Conn, error) {
	u.mu.Lock()
	failure := u.failure
	if !time.Now().Before(u.retryAt) {
		failure = nil
	}
	if u.barred != nil {
		failure = u.named(u.barred)
	}
	u.mu.Unlock()
	if failure != nil {
		return nil, failure
	}
	begun := time.Now()
	conn, err := dial(ctx, g)
	var refused ReplyError
	switch {
	case errors.As(err, &refused): // the server refuses this greeting, but perhaps not another client's
		return nil, u.named(err)
	case err != nil && (ctx.Err() != nil || u.reachedSince(begun)): // only this connection failed: another was made meanwhile
		return nil, u.named(err)
	case err != nil:
		return nil, u.failed(err)
	}
	u.mu.Lock()
	u.reached = time.Now()
	u.mu.Unlock()
	return conn, nil
}

// bar forbids connections for clients, with the reason why, until a call with nil.
func (u *Redis) bar(why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.barred = why
}

func (u *Redis) isBarred() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.barred != nil
}

// reachedSince says whether a connection has been made after begun.
func (u *Redis) reachedSince(begun time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reached.After(begun)
}

// named returns the error in words for clients, with the upstream's address.
func (u *Redis) named(err error) error {
	return fmt.Errorf("upstream %s: %w", u.opt.Addr, Innermost(err))
}

// failed notes why a question to the upstream failed, and returns the reason in words for clients.
func (u *Redis) failed(err error) error {
	err = u.named(err)
	u.another.Store(true)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.failure, u.retryAt = err, time.Now().Add(failurePause)
	return err
}

// dial takes at most DialTimeout, and ends early if ctx does.
func (u *Redis) dial(ctx context.Context, g Greeting) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, u.opt.DialTimeout)
	defer cancel()
	return u.dialPatiently(ctx, g)
}

// dialPatiently takes at most DialTimeout to connect, and then for the greeting until ctx ends.
func (u *Redis) dialPatiently(ctx context.Context, g Greeting) (net.Conn, error) {
	connecting, cancel := context.WithTimeout(ctx, u.opt.DialTimeout)
	defer cancel()
	conn, err := u.connect(connecting)
	if err != nil {
		return nil, err
	}
	return u.begin(ctx, conn, g)
}

// begin greets on a TCP connection, or closes it. begin gives up when ctx ends.
func (u *Redis) begin(ctx context.Context, plain net.Conn, g Greeting) (net.Conn, error) {
	plain = u.opt.Wrap(plain)
	stop := context.AfterFunc(ctx, func() { _ = plain.SetDeadline(time.Unix(1, 0)) })
	conn, err := u.speak(ctx, plain, g)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = plain.Close()
		return nil, err
	}
	u.answered.Store(true)
	return conn, nil
}

// speak adds TLS to the connection, if the options ask for TLS, and greets.
func (u *Redis) speak(ctx context.Context, plain net.Conn, g Greeting) (net.Conn, error) {
	if u.opt.TLS == nil {
		return plain, u.greet(plain, g)
	}
	config := u.opt.TLS().Clone()
	config.ServerName, _, _ = net.SplitHostPort(u.opt.Addr)
	secure := tls.Client(plain, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return secure, u.greet(secure, g)
}

// keepAlive notices within half a minute a server that vanishes while a client waits there, as in BLPOP.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

// connect tries again after a quarter and half of the time. A server to which many connect at once drops connections
// beyond its room, and the kernel would ask again only after a second.
func (u *Redis) connect(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: keepAlive}
	for range 2 {
		try, cancel := context.WithTimeout(ctx, u.opt.DialTimeout/4)
		conn, err := d.DialContext(try, "tcp", u.opt.Addr)
		cancel()
		if late, ok := errors.AsType[net.Error](err); !ok || !late.Timeout() {
			return conn, err
		}
	}
	return d.DialContext(ctx, "tcp", u.opt.Addr)
}

// greet sends the whole greeting at once, and returns when all replies have come. The greeting has at least one
// command. Otherwise a server that takes no more clients, or wants a login, would say so in the reply to a client's
// first command.
func (u *Redis) greet(conn net.Conn, g Greeting) error {
	var b []byte
	replies := 0
	send := func(args ...string) {
		b = wire.AppendCommand(b, args...)
		replies++
	}
	switch password := u.opt.Password(); {
	case u.opt.Username != "":
		send("AUTH", u.opt.Username, password)
	case password != "":
		send("AUTH", password)
	}
	if g.RESP3 {
		send("HELLO", "3")
	}
	if g.DB != 0 {
		send("SELECT", strconv.Itoa(g.DB))
	}
	needed := replies
	switch {
	case g.Name != "":
		send("CLIENT", "SETNAME", g.Name)
	case needed == 0:
		send("PING")
	}
	if _, err := conn.Write(b); err != nil {
		return err
	}
	r := bufio.NewReader(conn)
	for i := range replies {
		reply, err := readReply(r)
		if err != nil {
			return err
		}
		refused, ok := reply.(ReplyError)
		if ok && (i < needed || refused.WantsLogin() || !there(conn, r)) {
			return refused
		}
	}
	return nil
}

// there says whether the server still answers. A server that takes no more clients says so unasked, in place of the
// first reply, and hangs up.
func there(conn net.Conn, r *bufio.Reader) bool {
	_, _ = conn.Write(wire.AppendCommand(nil, "PING"))
	_, err := readReply(r)
	return err == nil
}

// BreakOff closes a connection at once. With TLS, Close tells the other end first, and waits for seconds if the other
// end takes nothing.
func BreakOff(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	_ = conn.Close()
}

// NoAnswer is the text of Innermost for a timeout.
const NoAnswer = "no answer"

// Innermost is a network error without the operation and the addresses, which the caller names anyway. Its text is the
// same while its cause is.
func Innermost(err error) error {
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return errors.New(NoAnswer)
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok && !name.IsNotFound {
		return errors.New("its name cannot be looked up: the name server fails") // else the text has the port of the question
	}
	if expired, ok := errors.AsType[x509.CertificateInvalidError](err); ok && expired.Reason == x509.Expired {
		const day = "2006-01-02 15:04 MST"
		return fmt.Errorf("its certificate is valid only from %s to %s", // else the text has the time of day
			expired.Cert.NotBefore.UTC().Format(day), expired.Cert.NotAfter.UTC().Format(day))
	}
	if errors.Is(err, io.EOF) {
		return errors.New("it closed the connection")
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		err = call.Err
	}
	return err
}
