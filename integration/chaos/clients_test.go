package chaos

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"lockproxy/integration/harness"
)

// A client is one way to lock. It says what it was told, and if that is unknown, why. It is used by one goroutine.
type client interface {
	acquire(resource, token string, ttl time.Duration) (outcome, string)
	extend(resource, token string, ttl time.Duration) (outcome, string)
	release(resource, token string) (outcome, string)
	close()
}

// validUntil is how long a client may trust in a lock that it asked for at sent.
func validUntil(sent time.Time, ttl time.Duration) time.Time {
	return sent.Add(ttl - ttl/100 - 2*time.Millisecond)
}

// replyMax is how long a client waits for a reply before it turns to another proxy.
const replyMax = time.Second

// A wire sends commands to one of several proxies, and to the next one after that one failed.
type wire struct {
	addrs []string
	at    int
	conn  *harness.Conn
}

// do returns the reply as text, or why there is none.
func (w *wire) do(args ...string) (reply, cause string) {
	if w.conn == nil {
		c, err := harness.DialPatiently(w.addrs[w.at%len(w.addrs)], replyMax)
		if err != nil {
			w.at++
			return "", describe(err)
		}
		w.conn = c
	}
	raw, err := w.conn.Do(args...)
	if err != nil {
		w.close()
		w.at++
		return "", describe(err)
	}
	if raw[0] == '-' {
		word, _, _ := strings.Cut(string(raw[1:]), " ")
		return "", word
	}
	return string(raw), ""
}

func (w *wire) close() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

// describe puts an error of a connection into few words.
func describe(err error) string {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer"
	case strings.Contains(err.Error(), "refused"):
		return "connection refused"
	}
	return "connection lost"
}

// answer turns a reply into an outcome. Any other reply is an unknown one.
func answer(reply, cause, yes, no string) (outcome, string) {
	switch {
	case cause != "":
		return unknown, cause
	case strings.HasPrefix(reply, yes):
		return done, ""
	case reply == no:
		return refused, ""
	}
	return unknown, fmt.Sprintf("%q", reply)
}

const (
	compareAndDelete = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	compareAndExpire = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`
)

// A plain client locks as any Redis client does.
type plain struct{ wire }

func (p *plain) acquire(resource, token string, ttl time.Duration) (outcome, string) {
	reply, cause := p.do("SET", resource, token, "NX", "PX", millis(ttl))
	return answer(reply, cause, "+OK\r\n", "$-1\r\n")
}

func (p *plain) extend(resource, token string, ttl time.Duration) (outcome, string) {
	reply, cause := p.do("EVAL", compareAndExpire, "1", resource, token, millis(ttl))
	return answer(reply, cause, ":1\r\n", ":0\r\n")
}

func (p *plain) release(resource, token string) (outcome, string) {
	reply, cause := p.do("EVAL", compareAndDelete, "1", resource, token)
	return answer(reply, cause, ":1\r\n", ":0\r\n")
}

// A native client uses the commands of lockproxy.
type native struct{ wire }

func (n *native) acquire(resource, token string, ttl time.Duration) (outcome, string) {
	reply, cause := n.do("LOCK", resource, millis(ttl), "TOKEN", token)
	return answer(reply, cause, "*", "$-1\r\n")
}

func (n *native) extend(resource, token string, ttl time.Duration) (outcome, string) {
	reply, cause := n.do("EXTEND", resource, token, millis(ttl))
	if reply == ":0\r\n" {
		return refused, ""
	}
	return answer(reply, cause, ":", "")
}

func (n *native) release(resource, token string) (outcome, string) {
	reply, cause := n.do("UNLOCK", resource, token)
	return answer(reply, cause, ":1\r\n", ":0\r\n")
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// A direct client is redsync on the masters themselves: the control.
type direct struct {
	clients []*redis.Client
	redsync *redsync.Redsync
	mutexes map[string]*redsync.Mutex // by token
}

// newDirect gives redsync's connections the patience of lockproxy's votes.
func newDirect(masters []string) *direct {
	d := &direct{mutexes: map[string]*redsync.Mutex{}}
	var pools []redsyncredis.Pool
	for _, addr := range masters {
		c := redis.NewClient(&redis.Options{
			Addr: addr, ContextTimeoutEnabled: true, ReadTimeout: 100 * time.Millisecond, DialTimeout: 100 * time.Millisecond, MaxRetries: -1,
		})
		d.clients, pools = append(d.clients, c), append(pools, goredis.NewPool(c))
	}
	d.redsync = redsync.New(pools...)
	return d
}

func (d *direct) acquire(resource, token string, ttl time.Duration) (outcome, string) {
	m := d.redsync.NewMutex(resource, redsync.WithExpiry(ttl), redsync.WithTimeoutFactor(float64(100*time.Millisecond)/float64(ttl)),
		redsync.WithGenValueFunc(func() (string, error) { return token, nil }))
	err := m.TryLockContext(context.Background())
	var taken *redsync.ErrTaken
	switch {
	case err == nil:
		d.mutexes[token] = m
		return done, ""
	case errors.As(err, &taken), errors.Is(err, redsync.ErrFailed):
		return refused, ""
	}
	return unknown, "no quorum"
}

func (d *direct) extend(_, token string, _ time.Duration) (outcome, string) {
	if m := d.mutexes[token]; m != nil {
		return verdict(m.ExtendContext(context.Background()))
	}
	return refused, ""
}

func (d *direct) release(_, token string) (outcome, string) {
	m := d.mutexes[token]
	if m == nil {
		return refused, ""
	}
	delete(d.mutexes, token)
	return verdict(m.UnlockContext(context.Background()))
}

func verdict(ok bool, err error) (outcome, string) {
	var taken *redsync.ErrTaken
	switch {
	case ok:
		return done, ""
	case err == nil, errors.As(err, &taken), errors.Is(err, redsync.ErrLockAlreadyExpired):
		return refused, ""
	}
	return unknown, "no quorum"
}

func (d *direct) close() {
	for _, c := range d.clients {
		_ = c.Close()
	}
}
