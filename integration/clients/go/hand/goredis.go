package main

import (
	"context"
	"time"

	redis8 "github.com/go-redis/redis/v8"
	redis9 "github.com/redis/go-redis/v9"

	"clients/scenarios"
)

var ctx = context.Background()

type goRedis8Client struct{ *redis8.Client }

func goRedis8() (commander, error) {
	return goRedis8Client{redis8.NewClient(&redis8.Options{Addr: scenarios.Addr})}, nil
}

func (c goRedis8Client) setNX(key string, value []byte, ttl time.Duration) (bool, error) {
	return c.SetNX(ctx, key, value, ttl).Result()
}
func (c goRedis8Client) get(key string) ([]byte, error)         { return c.Get(ctx, key).Bytes() }
func (c goRedis8Client) pttl(key string) (time.Duration, error) { return c.PTTL(ctx, key).Result() }

func (c goRedis8Client) release(key string, token []byte) (int64, error) {
	return redis8.NewScript(release).Run(ctx, c.Client, []string{key}, token).Int64()
}

func (c goRedis8Client) extend(key string, token []byte, ttl time.Duration) (int64, error) {
	return c.Eval(ctx, extend, []string{key}, token, ttl.Milliseconds()).Int64()
}

func (c goRedis8Client) close() { _ = c.Close() }

type goRedis9Client struct{ *redis9.Client }

func goRedis9() (commander, error) {
	return goRedis9Client{redis9.NewClient(&redis9.Options{Addr: scenarios.Addr, ClientName: "by-hand"})}, nil
}

func (c goRedis9Client) setNX(key string, value []byte, ttl time.Duration) (bool, error) {
	return c.SetNX(ctx, key, value, ttl).Result()
}
func (c goRedis9Client) get(key string) ([]byte, error)         { return c.Get(ctx, key).Bytes() }
func (c goRedis9Client) pttl(key string) (time.Duration, error) { return c.PTTL(ctx, key).Result() }

func (c goRedis9Client) release(key string, token []byte) (int64, error) {
	return redis9.NewScript(release).Run(ctx, c.Client, []string{key}, token).Int64()
}

func (c goRedis9Client) extend(key string, token []byte, ttl time.Duration) (int64, error) {
	return c.Eval(ctx, extend, []string{key}, token, ttl.Milliseconds()).Int64()
}

func (c goRedis9Client) close() { _ = c.Close() }
