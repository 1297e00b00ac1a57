// Command redsync locks through redsync, with the proxy as its one server.
package main

import (
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	syncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/go-redsync/redsync/v4/redis/redigo"
	redigoredis "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"

	"clients/scenarios"
)

const module = "github.com/go-redsync/redsync/v4"

func main() {
	scenarios.Run(scenarios.Library{Name: "redsync, go-redis", Module: module, Extends: true, Tokens: true, Open: func() (scenarios.Client, error) {
		c := redis.NewClient(&redis.Options{Addr: scenarios.Addr})
		return client{goredis.NewPool(c), func() { _ = c.Close() }}, nil
	}})
	scenarios.Run(scenarios.Library{Name: "redsync, redigo", Module: module, Extends: true, Tokens: true, Open: func() (scenarios.Client, error) {
		p := &redigoredis.Pool{
			Dial:         func() (redigoredis.Conn, error) { return redigoredis.Dial("tcp", scenarios.Addr) },
			TestOnBorrow: func(c redigoredis.Conn, _ time.Time) error { _, err := c.Do("PING"); return err },
		}
		return client{redigo.NewPool(p), func() { _ = p.Close() }}, nil
	}})
}

type client struct {
	pool  syncredis.Pool
	close func()
}

func (c client) Close() { c.close() }

func (c client) Lock(name string, ttl time.Duration, token []byte) scenarios.Lock {
	l := &lock{rs: redsync.New(c.pool), name: name, ttl: ttl, token: token}
	if token != nil {
		l.held = l.rs.NewMutex(name, redsync.WithValue(string(token))) // which it can release without having been granted it
	}
	return l
}

type lock struct {
	rs    *redsync.Redsync
	name  string
	ttl   time.Duration
	token []byte // nil: the library makes one
	held  *redsync.Mutex
}

func (l *lock) Acquire(wait time.Duration) (bool, error) {
	tries := 1 + int(wait/(50*time.Millisecond))
	options := []redsync.Option{redsync.WithExpiry(l.ttl), redsync.WithTries(tries), redsync.WithRetryDelay(50 * time.Millisecond)}
	if l.token != nil {
		options = append(options, redsync.WithGenValueFunc(func() (string, error) { return string(l.token), nil }))
	}
	m := l.rs.NewMutex(l.name, options...)
	err := m.Lock()
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) {
		return false, nil
	}
	if err == nil {
		l.held = m
	}
	return err == nil, err
}

func (l *lock) Release() (bool, error) { return l.held.Unlock() }

// Extend makes a mutex of the same value with another expiry: redsync extends to the mutex's own.
func (l *lock) Extend(ttl time.Duration) (bool, error) {
	return l.rs.NewMutex(l.name, redsync.WithExpiry(ttl), redsync.WithValue(l.held.Value())).Extend()
}
