package main

import (
	"errors"
	"time"

	"github.com/mediocregopher/radix/v4"

	"clients/scenarios"
)

type radixClient struct{ radix.Client }

func radixPool() (commander, error) {
	pool, err := radix.PoolConfig{Dialer: radix.Dialer{Protocol: "3"}}.New(ctx, "tcp", scenarios.Addr)
	return radixClient{pool}, err
}

func (c radixClient) setNX(key string, value []byte, ttl time.Duration) (bool, error) {
	reply := radix.Maybe{Rcv: new(string)}
	err := c.Do(ctx, radix.FlatCmd(&reply, "SET", key, value, "NX", "PX", ttl.Milliseconds()))
	return err == nil && !reply.Null, err
}

func (c radixClient) get(key string) (value []byte, err error) {
	err = c.Do(ctx, radix.Cmd(&value, "GET", key))
	return value, err
}

func (c radixClient) pttl(key string) (time.Duration, error) {
	var ms int64
	err := c.Do(ctx, radix.Cmd(&ms, "PTTL", key))
	return time.Duration(ms) * time.Millisecond, err
}

var (
	radixRelease = radix.NewEvalScript(release)
	radixExtend  = radix.NewEvalScript(extend)
)

func (c radixClient) release(key string, token []byte) (n int64, err error) {
	err = c.Do(ctx, radixRelease.FlatCmd(&n, []string{key}, token))
	return n, err
}

func (c radixClient) extend(key string, token []byte, ttl time.Duration) (n int64, err error) {
	err = c.Do(ctx, radixExtend.FlatCmd(&n, []string{key}, token, ttl.Milliseconds()))
	return n, err
}

func (c radixClient) close() { _ = c.Close() }

func (c radixClient) useData(name, piped string) (string, error) {
	var s steps
	text, number := name+":text", name+":number"
	var values []string
	err := errors.Join(c.Do(ctx, radix.Cmd(nil, "MSET", text, "one", number, "2")), c.Do(ctx, radix.Cmd(&values, "MGET", text, number)))
	s.step("strings", values, []string{"one", "2"}, err)
	var fields map[string]string
	err = errors.Join(c.Do(ctx, radix.Cmd(nil, "HSET", name+":fields", "a", "1")), c.Do(ctx, radix.Cmd(&fields, "HGETALL", name+":fields")))
	s.step("hash", fields, map[string]string{"a": "1"}, err)
	var popped []string
	err = errors.Join(c.Do(ctx, radix.Cmd(nil, "RPUSH", name+":queue", "z")), c.Do(ctx, radix.Cmd(&popped, "BLPOP", name+":queue", "20")))
	s.step("BLPOP", popped, []string{name + ":queue", "z"}, err)
	var gone int
	p := radix.NewPipeline()
	p.Append(radix.Cmd(nil, "SET", text, "two"))
	p.Append(radix.Cmd(nil, "SET", piped, "t", "NX", "PX", "30000"))
	p.Append(radix.Cmd(&gone, "DEL", piped))
	s.step("pipeline", gone, 1, c.Do(ctx, p))
	var n int
	err = c.Do(ctx, radix.NewEvalScript(double).Cmd(&n, []string{number}))
	s.step("scripts", n, 4, err)
	return s.used, s.err
}
