package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"lockproxy/integration/bench/contest"
)

// retry is the pause of the example in the README of bsm/redislock.
const retry = 100 * time.Millisecond

// bsm locks with bsm/redislock on the first server. All clients share one pool of connections, with one for each.
func bsm(addrs []string, clients int) (opener, func(), error) {
	pool := redis.NewClient(&redis.Options{Addr: addrs[0], PoolSize: clients + 10})
	locks := redislock.New(pool)
	open := func(_ int, key string) (contest.Locker, error) { return &bsmLock{locks: locks, key: key}, nil }
	return open, func() { _ = pool.Close() }, nil
}

type bsmLock struct {
	locks *redislock.Client
	key   string
	held  *redislock.Lock
}

func (l *bsmLock) Lock() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // without a limit the library waits for one TTL
	defer cancel()
	l.held, err = l.locks.Obtain(ctx, l.key, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(retry)})
	return err
}

func (l *bsmLock) Unlock() error { return l.held.Release(context.Background()) }
func (l *bsmLock) Close()        {}
