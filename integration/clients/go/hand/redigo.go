package main

import (
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"

	"clients/scenarios"
)

type redigoClient struct{ *redis.Pool }

func redigoPool() (commander, error) {
	return redigoClient{&redis.Pool{
		Dial:         func() (redis.Conn, error) { return redis.Dial("tcp", scenarios.Addr) },
		TestOnBorrow: func(c redis.Conn, _ time.Time) error { _, err := c.Do("PING"); return err },
	}}, nil
}

func (p redigoClient) do(command string, args ...any) (any, error) {
	c := p.Get()
	defer c.Close()
	return c.Do(command, args...)
}

func (p redigoClient) setNX(key string, value []byte, ttl time.Duration) (bool, error) {
	reply, err := redis.String(p.do("SET", key, value, "NX", "PX", ttl.Milliseconds()))
	if errors.Is(err, redis.ErrNil) {
		return false, nil
	}
	return reply == "OK", err
}

func (p redigoClient) get(key string) ([]byte, error) { return redis.Bytes(p.do("GET", key)) }

func (p redigoClient) pttl(key string) (time.Duration, error) {
	ms, err := redis.Int64(p.do("PTTL", key))
	return time.Duration(ms) * time.Millisecond, err
}

func (p redigoClient) release(key string, token []byte) (int64, error) {
	c := p.Get()
	defer c.Close()
	return redis.Int64(redis.NewScript(1, release).Do(c, key, token))
}

func (p redigoClient) extend(key string, token []byte, ttl time.Duration) (int64, error) {
	return redis.Int64(p.do("EVAL", extend, 1, key, token, ttl.Milliseconds()))
}

func (p redigoClient) close() { _ = p.Close() }
