// Package held takes a lock at a lockproxy, and keeps it for as long as its owner wants.
//
// Enter: proxies, a key, a TTL. Leave: a Lock, and until when the lock is surely held, by a clock of this machine. The instant is the
// validity in the reply, counted from before the request was sent, and so never later than the masters' expiry.
//
// A Lock extends itself by EXTEND, a third of the TTL after the last extension, through any proxy that answers. HOLD is not used. A
// proxy gives a lock with HOLD to the next client as soon as the proxy sees the connection end, perhaps long before this side does:
// then a command would outlive its lock. Without HOLD a broken connection costs nothing: the lock is extended through another
// connection or proxy, or lasts until the known instant.
//
// If a quorum refuses an extension, the lock is lost, and Lost is closed. If no proxy answers, the lock lasts as long as Until lies
// ahead. A caller that waits for the end of a lock looks at both.
package held

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"

	"lockproxy/cmd/lockproxy/shell/client"
)

// An Instant is a time of this machine's clock, which also runs while the machine is suspended.
type Instant time.Duration

var started = time.Now()

// Left is the time until the instant.
func (i Instant) Left() time.Duration { return time.Duration(i - now()) }

// replyMax is how long a proxy may take for a reply, beyond the wait in the request.
const replyMax = 5 * time.Second

// A Request describes a lock to take.
type Request struct {
	Key  string
	TTL  time.Duration
	Wait time.Duration // the longest wait in line, while somebody else holds the lock
	// WaitForProxy is how long unreachable proxies are tried again.
	WaitForProxy time.Duration
	// Stop, when closed, ends the waiting.
	Stop <-chan struct{}
}

// Errors of Take, beside *client.Unreachable, client.Refusal, and errors that name a proxy and its failure.
var (
	ErrNotGranted = errors.New("somebody else holds the lock")
	ErrStopped    = errors.New("stopped while waiting")
)

// retryPause is the time between two tries of unreachable proxies.
const retryPause = 250 * time.Millisecond

// Take takes the lock. The lock then extends itself until Stop, or until the lock is lost. If a failed try took a lock after all, the
// proxy gives the lock back, as its client is gone, or the lock expires.
func Take(proxies *client.Proxies, req Request) (*Lock, error) {
	began := time.Now()
	patience := began.Add(req.WaitForProxy)
	lapse := 0 // tries that failed in a row
	for {
		l, err := try(proxies, req, max(req.Wait-time.Since(began), 0))
		refused, isRefusal := errors.AsType[client.Refusal](err)
		switch {
		case err == nil || errors.Is(err, ErrNotGranted) || errors.Is(err, ErrStopped):
			return l, err
		case isRefusal && refused.Code() != "NOQUORUM": // another proxy would say the same
			return nil, err
		}
		proxies.Advance()
		lapse++
		_, unreachable := errors.AsType[*client.Unreachable](err)
		switch {
		case unreachable && time.Now().After(patience), !unreachable && lapse >= len(proxies.Addrs):
			return nil, err
		case unreachable:
			select {
			case <-req.Stop:
				return nil, ErrStopped
			case <-time.After(retryPause):
			}
		}
	}
}

// try asks one proxy for the lock.
func try(proxies *client.Proxies, req Request, wait time.Duration) (*Lock, error) {
	conn, err := proxies.Connect(time.Now().Add(time.Minute))
	if err != nil {
		return nil, err
	}
	over := make(chan struct{})
	defer close(over)
	stopped := make(chan struct{})
	go func() { // hanging up gives up the place in line
		select {
		case <-req.Stop:
			close(stopped)
			conn.Close()
		case <-over:
		}
	}()
	l := &Lock{Token: newToken(), key: req.Key, ttl: req.TTL, proxies: proxies, conn: conn, lost: make(chan struct{})}
	sent := now()
	reply, err := conn.Do(time.Now().Add(wait+replyMax), "LOCK", req.Key, millis(req.TTL), "TOKEN", l.Token, "WAIT", millis(wait))
	select {
	case <-stopped:
		return nil, ErrStopped
	default:
	}
	switch {
	case err != nil:
		conn.Close()
		if _, isRefusal := errors.AsType[client.Refusal](err); isRefusal {
			return nil, err
		}
		return nil, fmt.Errorf("%s %s", conn.Addr, client.Reason(err))
	case reply == nil:
		conn.Close()
		return nil, ErrNotGranted
	}
	fields := client.Fields(reply)
	validity, _ := fields["validity"].(int64)
	l.Fence, _ = fields["fence"].(int64)
	l.grant(sent, validity)
	if l.Until().Left() < req.TTL/2 { // after a wait in line, sent is too long ago to count from
		if err := l.extend(); err != nil {
			conn.Close()
			return nil, fmt.Errorf("%s granted the lock, and then: %w", conn.Addr, err)
		}
	}
	l.keep()
	return l, nil
}

// newToken makes a token that names the holder (user, machine, process) to an operator.
func newToken() string {
	name, host := "?", "?"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return fmt.Sprintf("%.32s@%.64s:%d:%s", name, host, os.Getpid(), strings.ToLower(rand.Text()))
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// A Lock is held, until it is lost, cannot be extended any more, or is released.
type Lock struct {
	Token string
	Fence int64

	key     string
	ttl     time.Duration
	proxies *client.Proxies
	conn    *client.Conn // nil without a connection; only the keeper's until Stop returns
	lost    chan struct{}
	quit    chan struct{}
	keeper  sync.WaitGroup

	mu    sync.Mutex // guards all below
	until Instant
	why   string // why the last extension failed, or the lock is lost
}

// Until returns until when the lock is surely held, unless Lost is closed.
func (l *Lock) Until() Instant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

// Lost is closed when a quorum said that the lock is not held any more.
func (l *Lock) Lost() <-chan struct{} { return l.lost }

// Why returns why the lock is lost, or why the last extension failed; "" otherwise.
func (l *Lock) Why() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// grant takes the validity in ms from the reply to a request.
func (l *Lock) grant(sent Instant, validity int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Never more than the TTL of the request, whatever a proxy answers.
	promised := time.Duration(min(validity, l.ttl.Milliseconds())) * time.Millisecond
	l.until, l.why = max(l.until, sent+Instant(promised)), ""
}

func (l *Lock) failed(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.why = why
}

var errLost = errors.New("the lock was released, taken away, or has expired")

// extend asks once for a longer lock.
func (l *Lock) extend() error {
	patience := time.Now().Add(max(l.ttl/6, 50*time.Millisecond))
	if l.conn == nil {
		conn, err := l.proxies.Connect(patience)
		if err != nil {
			return err
		}
		l.conn = conn
		patience = time.Now().Add(max(l.ttl/6, 50*time.Millisecond))
	}
	sent := now()
	reply, err := l.conn.Do(patience, "EXTEND", l.key, l.Token, millis(l.ttl))
	refused, isRefusal := errors.AsType[client.Refusal](err)
	switch validity, _ := reply.(int64); {
	case isRefusal && refused.Code() == "LOST":
		return errLost
	case err != nil:
		addr := l.conn.Addr
		l.conn.Close()
		l.conn = nil
		l.proxies.Advance()
		return fmt.Errorf("%s %s", addr, client.Reason(err))
	case validity <= 0:
		return errLost
	default:
		l.grant(sent, validity)
		return nil
	}
}

// keep starts the keeper: the goroutine that extends the lock until the lock is lost, or Stop.
func (l *Lock) keep() {
	l.quit = make(chan struct{})
	l.keeper.Go(func() {
		pause := l.ttl / 3
		for {
			select {
			case <-l.quit:
				return
			case <-time.After(pause):
			}
			err := l.extend()
			switch {
			case err == nil:
				pause = l.ttl / 3
			case errors.Is(err, errLost):
				l.failed(err.Error())
				close(l.lost)
				return
			default:
				l.failed(err.Error())
				pause = min(max(l.ttl/30, 20*time.Millisecond), time.Second)
			}
		}
	})
}

// Stop ends the extending. The lock lasts until Until.
func (l *Lock) Stop() {
	close(l.quit)
	l.keeper.Wait()
}

// Release gives the lock back, after Stop. It tells whether the lock was still held; if no proxy answers, the lock expires by itself.
func (l *Lock) Release() (held bool, err error) {
	for tries := range 1 + len(l.proxies.Addrs) {
		if l.conn == nil {
			if l.conn, err = l.proxies.Connect(time.Now().Add(replyMax)); err != nil {
				return false, err
			}
		}
		var reply any
		reply, err = l.conn.Do(time.Now().Add(replyMax), "UNLOCK", l.key, l.Token)
		if err == nil {
			l.conn.Close()
			return reply == int64(1) || tries > 0, nil // an earlier try may have released the lock
		}
		err = fmt.Errorf("%s %s", l.conn.Addr, cmp.Or(client.Reason(err), "failed"))
		l.conn.Close()
		l.conn = nil
		l.proxies.Advance()
	}
	return false, err
}
