package main

import (
	"errors"
	"fmt"
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

func (p redigoClient) useData(name, piped string) (string, error) {
	var s steps
	text, number, fields, items := name+":text", name+":number", name+":fields", name+":items"
	_, err := p.do("MSET", text, "one", number, 2)
	values, _ := redis.Strings(p.do("MGET", text, number))
	s.step("strings", values, []string{"one", "2"}, err)
	_, err = p.do("HSET", fields, "a", 1)
	hash, _ := redis.StringMap(p.do("HGETALL", fields))
	s.step("hash", hash, map[string]string{"a": "1"}, err)
	_, err = p.do("RPUSH", items, "x", "y")
	list, _ := redis.Strings(p.do("LRANGE", items, 0, -1))
	s.step("list", list, []string{"x", "y"}, err)
	pushed := time.AfterFunc(50*time.Millisecond, func() { _, _ = p.do("RPUSH", name+":queue", "z") }) // most probably it waits by then
	defer pushed.Stop()
	popped, err := redis.Strings(p.do("BLPOP", name+":queue", 60))
	s.step("BLPOP", popped, []string{name + ":queue", "z"}, err)
	c := p.Get()
	defer c.Close()
	_, err = c.Do("WATCH", number)
	for _, command := range [][]any{{"MULTI"}, {"INCR", number}, {"HINCRBY", fields, "a", 1}} {
		_ = c.Send(command[0].(string), command[1:]...)
	}
	replies, _ := redis.Ints(c.Do("EXEC"))
	s.step("WATCH, MULTI", replies, []int{3, 2}, err)
	for _, command := range [][]any{{"SET", text, "two"}, {"SET", piped, "t", "NX", "PX", 60000}, {"GET", text}, {"DEL", piped}} {
		_ = c.Send(command[0].(string), command[1:]...)
	}
	all, err := redis.Values(c.Do("")) // sends, and receives what is owed
	s.step("pipeline", fmt.Sprintf("%s", all), "[OK OK two %!s(int64=1)]", err)
	s.step("pub/sub", p.hear(name+":news"), "hello", nil)
	found, cursor := map[string]bool{}, "0"
	for first := true; err == nil && (first || cursor != "0"); first = false {
		var page []any
		if page, err = redis.Values(p.do("SCAN", cursor, "MATCH", name+":*")); err == nil {
			cursor, _ = redis.String(page[0], nil)
			keys, _ := redis.Strings(page[1], nil)
			for _, k := range keys {
				found[k] = true
			}
		}
	}
	s.step("SCAN", found, map[string]bool{text: true, number: true, fields: true, items: true}, err)
	n, err := redis.Int(redis.NewScript(1, double).Do(c, number))
	s.step("scripts", n, 6, err)
	return s.used, s.err
}

// hear subscribes and returns what is published then, or what is wrong.
func (p redigoClient) hear(channel string) string {
	listener := redis.PubSubConn{Conn: p.Get()}
	defer listener.Close()
	if err := listener.Subscribe(channel); err != nil {
		return err.Error()
	}
	for {
		switch m := listener.Receive().(type) {
		case redis.Subscription:
			if n, err := redis.Int(p.do("PUBLISH", channel, "hello")); n != 1 || err != nil {
				return fmt.Sprintf("PUBLISH: %d, %v", n, err)
			}
		case redis.Message:
			return string(m.Data)
		case error:
			return m.Error()
		}
	}
}
