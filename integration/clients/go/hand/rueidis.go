package main

import (
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"clients/scenarios"
)

type rueidisClient struct {
	rueidis.Client
	script *rueidis.Lua
}

func rueidisWithoutCache() (commander, error) { return openRueidis(true) }
func rueidisWithCache() (commander, error)    { return openRueidis(false) }

func openRueidis(disableCache bool) (commander, error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{scenarios.Addr}, DisableCache: disableCache})
	return rueidisClient{c, rueidis.NewLuaScript(release)}, err
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
