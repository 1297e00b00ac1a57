package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"clients/scenarios"
)

type rueidisClient struct {
	rueidis.Client
	script *rueidis.Lua
	caches bool
}

func rueidisWithoutCache() (commander, error) { return openRueidis(true) }
func rueidisWithCache() (commander, error)    { return openRueidis(false) }

func openRueidis(disableCache bool) (commander, error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{scenarios.Addr}, DisableCache: disableCache})
	return rueidisClient{c, rueidis.NewLuaScript(release), !disableCache}, err
}

func (c rueidisClient) setNX(key string, value []byte, ttl time.Duration) (bool, error) {
	err := c.Do(ctx, c.B().Set().Key(key).Value(rueidis.BinaryString(value)).Nx().Px(ttl).Build()).Error()
	if rueidis.IsRedisNil(err) {
		return false, nil
	}
	return err == nil, err
}

func (c rueidisClient) get(key string) ([]byte, error) {
	return c.Do(ctx, c.B().Get().Key(key).Build()).AsBytes()
}

func (c rueidisClient) pttl(key string) (time.Duration, error) {
	ms, err := c.Do(ctx, c.B().Pttl().Key(key).Build()).AsInt64()
	return time.Duration(ms) * time.Millisecond, err
}

func (c rueidisClient) release(key string, token []byte) (int64, error) {
	return c.script.Exec(ctx, c.Client, []string{key}, []string{string(token)}).AsInt64()
}

func (c rueidisClient) extend(key string, token []byte, ttl time.Duration) (int64, error) {
	ms := strconv.FormatInt(ttl.Milliseconds(), 10)
	return c.Do(ctx, c.B().Eval().Script(extend).Numkeys(1).Key(key).Arg(string(token), ms).Build()).AsInt64()
}

func (c rueidisClient) close() { c.Close() }

func (c rueidisClient) useData(name, piped string) (string, error) {
	var s steps
	text, number, fields, items := name+":text", name+":number", name+":fields", name+":items"
	b := c.B
	err := c.Do(ctx, b().Mset().KeyValue().KeyValue(text, "one").KeyValue(number, "2").Build()).Error()
	values, _ := c.Do(ctx, b().Mget().Key(text, number).Build()).AsStrSlice()
	s.step("strings", values, []string{"one", "2"}, err)
	err = c.Do(ctx, b().Hset().Key(fields).FieldValue().FieldValue("a", "1").Build()).Error()
	hash, _ := c.Do(ctx, b().Hgetall().Key(fields).Build()).AsStrMap()
	s.step("hash", hash, map[string]string{"a": "1"}, err)
	err = c.Do(ctx, b().Rpush().Key(items).Element("x", "y").Build()).Error()
	list, _ := c.Do(ctx, b().Lrange().Key(items).Start(0).Stop(-1).Build()).AsStrSlice()
	s.step("list", list, []string{"x", "y"}, err)
	pushed := time.AfterFunc(50*time.Millisecond, func() { // most probably it waits by then
		c.Do(ctx, b().Rpush().Key(name+":queue").Element("z").Build())
	})
	defer pushed.Stop()
	popped, err := c.Do(ctx, b().Blpop().Key(name+":queue").Timeout(60).Build()).AsStrSlice()
	s.step("BLPOP", popped, []string{name + ":queue", "z"}, err)
	err = c.Dedicated(func(d rueidis.DedicatedClient) error {
		replies := d.DoMulti(ctx, b().Watch().Key(number).Build(), b().Multi().Build(), b().Incr().Key(number).Build(),
			b().Hincrby().Key(fields).Field("a").Increment(1).Build(), b().Exec().Build())
		return replies[len(replies)-1].Error()
	})
	got, _ := c.Do(ctx, b().Get().Key(number).Build()).ToString()
	s.step("WATCH, MULTI", got, "3", err)
	replies := c.DoMulti(ctx, b().Set().Key(text).Value("two").Build(), b().Set().Key(piped).Value("t").Nx().PxMilliseconds(60000).Build(),
		b().Get().Key(text).Build(), b().Del().Key(piped).Build())
	got, err = replies[2].ToString()
	s.step("pipeline", got, "two", errors.Join(err, replies[1].Error(), replies[3].Error()))
	s.step("pub/sub", c.hear(name+":news"), "hello", nil)
	found := map[string]bool{}
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		page, err := c.Do(ctx, b().Scan().Cursor(cursor).Match(name+":*").Build()).AsScanEntry()
		if err != nil {
			return s.used, err
		}
		for _, k := range page.Elements {
			found[k] = true
		}
		cursor = page.Cursor
	}
	s.step("SCAN", found, map[string]bool{text: true, number: true, fields: true, items: true}, nil)
	n, err := rueidis.NewLuaScript(double).Exec(ctx, c.Client, []string{number}, nil).AsInt64()
	s.step("scripts", n, 6, err)
	if c.caches {
		if err := c.cachesNothing(text); err != nil {
			return s.used, err
		}
	}
	return s.used, s.err
}

// cachesNothing returns an error if a reply could be cached. The proxy refuses each, and a cached reply would be out of date soon.
func (c rueidisClient) cachesNothing(key string) error {
	for range 20 {
		one := c.DoCache(ctx, c.B().Get().Key(key).Cache(), time.Minute)
		many := c.DoCache(ctx, c.B().Mget().Key(key).Cache(), time.Minute)
		for _, reply := range []rueidis.RedisResult{one, many} {
			if reply.Error() == nil {
				return errors.New("DoCache is answered")
			}
		}
		if err := c.Do(ctx, c.B().Get().Key(key).Build()).Error(); err != nil {
			return err
		}
	}
	return nil
}

// hear subscribes and returns what is published then, or what is wrong.
func (c rueidisClient) hear(channel string) string {
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	heard := make(chan string, 1)
	go func() {
		_ = c.Receive(limit, c.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) {
			heard <- m.Message
		})
	}()
	_, err := scenarios.Poll(time.Minute, func() (bool, error) {
		n, err := c.Do(ctx, c.B().Publish().Channel(channel).Message("hello").Build()).AsInt64()
		return n == 1, err
	})
	if err != nil {
		return err.Error()
	}
	select {
	case m := <-heard:
		return m
	case <-limit.Done():
		return "nothing"
	}
}
