package fencing

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Redis is the application's own Redis, which holds data and is no master. {name}:fence has the newest fence of name. The
// braces put both keys on one node of a Redis Cluster.
type Redis struct{ Client redis.UniversalClient }

// The scripts of Redis. Fences are below 2^53, so Lua's numbers hold them exactly.
var (
	redisRead = redis.NewScript(`
		if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[2]) or '0') then return redis.error_reply('STALE the lock has passed on') end
		redis.call('SET', KEYS[2], ARGV[1])
		return redis.call('GET', KEYS[1])`)
	redisWrite = redis.NewScript(`
		if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[2]) or '0') then return redis.error_reply('STALE the lock has passed on') end
		redis.call('SET', KEYS[2], ARGV[1])
		return redis.call('SET', KEYS[1], ARGV[2])`)
)

// Read implements Store.
func (r Redis) Read(ctx context.Context, name string, fence int64) (string, error) {
	value, err := redisRead.Run(ctx, r.Client, keys(name), fence).Text()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return value, stale(err)
}

// Write implements Store.
func (r Redis) Write(ctx context.Context, name, value string, fence int64) error {
	return stale(redisWrite.Run(ctx, r.Client, keys(name), fence, value).Err())
}

func keys(name string) []string { return []string{"{" + name + "}:value", "{" + name + "}:fence"} }

// stale turns the error of the scripts into ErrStale.
func stale(err error) error {
	if redis.HasErrorPrefix(err, "STALE") {
		return ErrStale
	}
	return err
}
