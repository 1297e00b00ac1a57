// Command hand locks by commands: SET NX PX, GET, PTTL, and the scripts of the Redis documentation.
package main

import (
	"crypto/rand"
	"fmt"
	"time"

	"clients/scenarios"
)

const (
	release = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	extend  = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`
)

// A commander is what a client library offers.
type commander interface {
	setNX(key string, value []byte, ttl time.Duration) (bool, error)
	get(key string) ([]byte, error)
	pttl(key string) (time.Duration, error)
	release(key string, token []byte) (int64, error) // EVALSHA, and EVAL on NOSCRIPT
	extend(key string, token []byte, ttl time.Duration) (int64, error)
	useData(name, piped string) (used string, err error)
	close()
}

func main() {
	for _, l := range []struct {
		name, module string
		open         func() (commander, error)
	}{
		{"go-redis", "github.com/go-redis/redis/v8", goRedis8},
		{"go-redis", "github.com/redis/go-redis/v9", goRedis9},
		{"redigo", "github.com/gomodule/redigo", redigoPool},
		{"radix", "github.com/mediocregopher/radix/v4", radixPool},
		{"rueidis, DisableCache", "github.com/redis/rueidis", rueidisWithoutCache},
		{"rueidis", "github.com/redis/rueidis", rueidisWithCache},
	} {
		scenarios.Run(scenarios.Library{Name: l.name, Module: l.module, Extends: true, Tokens: true, Open: func() (scenarios.Client, error) {
			c, err := l.open()
			return client{c}, err
		}})
	}
}

type client struct{ commander }

func (c client) Close() { c.close() }

// UseData is for those commanders that have it.
func (c client) UseData(name, piped string) (string, error) { return c.useData(name, piped) }

func (c client) Lock(name string, ttl time.Duration, token []byte) scenarios.Lock {
	if token == nil {
		token = []byte(rand.Text())
	}
	return &lock{c, name, ttl, token}
}

type lock struct {
	client client
	name   string
	ttl    time.Duration
	token  []byte
}

func (l *lock) Acquire(wait time.Duration) (bool, error) {
	granted, err := scenarios.Poll(wait, func() (bool, error) { return l.client.setNX(l.name, l.token, l.ttl) })
	if !granted || err != nil {
		return false, err
	}
	value, err := l.client.get(l.name)
	if err == nil && string(value) != string(l.token) {
		err = fmt.Errorf("GET: got %q, want %q", value, l.token)
	}
	if err != nil {
		return true, err
	}
	ttl, err := l.client.pttl(l.name)
	if err == nil && (ttl <= 0 || ttl > l.ttl+time.Second) {
		err = fmt.Errorf("PTTL: %v of %v", ttl, l.ttl)
	}
	return true, err
}

func (l *lock) Release() (bool, error) {
	n, err := l.client.release(l.name, l.token)
	return n == 1, err
}

func (l *lock) Extend(ttl time.Duration) (bool, error) {
	n, err := l.client.extend(l.name, l.token, ttl)
	return n == 1, err
}
