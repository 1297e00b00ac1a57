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

func (c goRedis8Client) useData(name, piped string) (string, error) {
	var s steps
	text, number, fields, items := name+":text", name+":number", name+":fields", name+":items"
	c.Set(ctx, text, "one", time.Minute)
	c.IncrBy(ctx, number, 2)
	values, err := c.MGet(ctx, text, number).Result()
	s.step("strings", values, []any{"one", "2"}, err)
	c.HSet(ctx, fields, "a", 1)
	hash, err := c.HGetAll(ctx, fields).Result()
	s.step("hash", hash, map[string]string{"a": "1"}, err)
	c.RPush(ctx, items, "x", "y")
	list, err := c.LRange(ctx, items, 0, -1).Result()
	s.step("list", list, []string{"x", "y"}, err)
	pushed := time.AfterFunc(50*time.Millisecond, func() { c.RPush(ctx, name+":queue", "z") }) // most probably it waits by then
	defer pushed.Stop()
	popped, err := c.BLPop(ctx, time.Minute, name+":queue").Result()
	s.step("BLPOP", popped, []string{name + ":queue", "z"}, err)
	err = c.Watch(ctx, func(tx *redis8.Tx) error {
		_, err := tx.TxPipelined(ctx, func(p redis8.Pipeliner) error {
			p.Incr(ctx, number)
			p.HIncrBy(ctx, fields, "a", 1)
			return nil
		})
		return err
	}, number)
	s.step("WATCH, MULTI", c.Get(ctx, number).Val(), "3", err)
	p := c.Pipeline()
	p.Set(ctx, text, "two", 0)
	p.SetNX(ctx, piped, "t", time.Minute)
	p.Get(ctx, text)
	p.Del(ctx, piped)
	_, err = p.Exec(ctx)
	s.step("pipeline", c.Get(ctx, text).Val(), "two", err)
	listener := c.Subscribe(ctx, name+":news")
	defer listener.Close()
	heard := listener.Channel()
	_, err = scenarios.Poll(time.Minute, func() (bool, error) {
		n, err := c.Publish(ctx, name+":news", "hello").Result()
		return n == 1, err
	})
	s.step("pub/sub", (<-heard).Payload, "hello", err)
	found := map[string]bool{}
	for each := c.Scan(ctx, 0, name+":*", 0).Iterator(); each.Next(ctx); {
		found[each.Val()] = true
	}
	s.step("SCAN", found, map[string]bool{text: true, number: true, fields: true, items: true}, nil)
	n, err := redis8.NewScript(double).Run(ctx, c.Client, []string{number}).Int()
	s.step("scripts", n, 6, err)
	return s.used, s.err
}

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

func (c goRedis9Client) useData(name, piped string) (string, error) {
	var s steps
	text, number, fields, items := name+":text", name+":number", name+":fields", name+":items"
	c.Set(ctx, text, "one", time.Minute)
	c.IncrBy(ctx, number, 2)
	values, err := c.MGet(ctx, text, number).Result()
	s.step("strings", values, []any{"one", "2"}, err)
	c.HSet(ctx, fields, "a", 1)
	hash, err := c.HGetAll(ctx, fields).Result()
	s.step("hash", hash, map[string]string{"a": "1"}, err)
	c.RPush(ctx, items, "x", "y")
	list, err := c.LRange(ctx, items, 0, -1).Result()
	s.step("list", list, []string{"x", "y"}, err)
	pushed := time.AfterFunc(50*time.Millisecond, func() { c.RPush(ctx, name+":queue", "z") }) // most probably it waits by then
	defer pushed.Stop()
	popped, err := c.BLPop(ctx, time.Minute, name+":queue").Result()
	s.step("BLPOP", popped, []string{name + ":queue", "z"}, err)
	err = c.Watch(ctx, func(tx *redis9.Tx) error {
		_, err := tx.TxPipelined(ctx, func(p redis9.Pipeliner) error {
			p.Incr(ctx, number)
			p.HIncrBy(ctx, fields, "a", 1)
			return nil
		})
		return err
	}, number)
	s.step("WATCH, MULTI", c.Get(ctx, number).Val(), "3", err)
	p := c.Pipeline()
	p.Set(ctx, text, "two", 0)
	p.SetNX(ctx, piped, "t", time.Minute)
	p.Get(ctx, text)
	p.Del(ctx, piped)
	_, err = p.Exec(ctx)
	s.step("pipeline", c.Get(ctx, text).Val(), "two", err)
	listener := c.Subscribe(ctx, name+":news")
	defer listener.Close()
	heard := listener.Channel()
	_, err = scenarios.Poll(time.Minute, func() (bool, error) {
		n, err := c.Publish(ctx, name+":news", "hello").Result()
		return n == 1, err
	})
	s.step("pub/sub", (<-heard).Payload, "hello", err)
	found := map[string]bool{}
	for each := c.Scan(ctx, 0, name+":*", 0).Iterator(); each.Next(ctx); {
		found[each.Val()] = true
	}
	s.step("SCAN", found, map[string]bool{text: true, number: true, fields: true, items: true}, nil)
	n, err := redis9.NewScript(double).Run(ctx, c.Client, []string{number}).Int()
	s.step("scripts", n, 6, err)
	return s.used, s.err
}
