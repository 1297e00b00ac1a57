// Command redislock locks through bsm/redislock. It is built with three versions of it: see the files *.mod.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"clients/scenarios"
)

var ctx = context.Background()

func main() {
	scenarios.Run(scenarios.Library{Name: "bsm/redislock", Module: "github.com/bsm/redislock", Extends: true, Tokens: true, Open: func() (scenarios.Client, error) {
		return client{redis.NewClient(&redis.Options{Addr: scenarios.Addr})}, nil
	}})
}

type client struct{ *redis.Client }

func (c client) Close() { _ = c.Client.Close() }

func (c client) Lock(name string, ttl time.Duration, token []byte) scenarios.Lock {
	return &lock{client: redislock.New(c.Client), name: name, ttl: ttl, token: string(token)}
}

type lock struct {
	client *redislock.Client
	name   string
	ttl    time.Duration
	token  string // "": the library makes one
	held   *redislock.Lock
}

func (l *lock) Acquire(wait time.Duration) (bool, error) {
	limit, cancel := context.WithTimeout(ctx, max(wait, time.Second))
	defer cancel()
	options := redislock.Options{Token: l.token}
	if wait > 0 {
		options.RetryStrategy = redislock.LinearBackoff(50 * time.Millisecond)
	}
	held, err := l.client.Obtain(limit, l.name, l.ttl, &options)
	if errors.Is(err, redislock.ErrNotObtained) {
		return false, nil
	}
	if err == nil {
		l.held = held
	}
	return err == nil, err
}

func (l *lock) Release() (bool, error) {
	err := l.held.Release(ctx)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return false, nil
	}
	return err == nil, err
}

func (l *lock) Extend(ttl time.Duration) (bool, error) {
	err := l.held.Refresh(ctx, ttl, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return false, nil
	}
	return err == nil, err
}
