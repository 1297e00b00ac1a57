package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"lockproxy/integration/harness"
)

const (
	ttl     = 30 * time.Second
	release = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
)

// setWords is the command that takes a lock. Its random part is one of -r numbers, the most that redis-benchmark can count.
var setWords = []string{"SET", "key:__rand_int__", "tok", "NX", "PX", strconv.FormatInt(ttl.Milliseconds(), 10)}

func benchmarkWords(addr string, l load, command []string) []string {
	_, port, _ := net.SplitHostPort(addr)
	return append([]string{
		"-h", "127.0.0.1", "-p", port, "-c", strconv.Itoa(l.clients), "-P", strconv.Itoa(l.pipeline), "-n", strconv.Itoa(l.requests),
		"-r", "1000000000", "--csv",
	}, command...)
}

// redisBenchmark measures addr with redis-benchmark and that command.
func redisBenchmark(addr string, command []string) func(load) (result, error) {
	return together.benchmark(addr, command)
}

// parseBenchmark reads what redis-benchmark --csv prints: a line of names, and a line of figures in ms.
func parseBenchmark(text string) (result, error) {
	_, table, found := strings.Cut(text, `"test",`)
	if !found {
		return result{}, fmt.Errorf("redis-benchmark printed no table:\n%s", text)
	}
	rows, err := csv.NewReader(strings.NewReader(`"test",` + table)).ReadAll()
	if err != nil || len(rows) != 2 {
		return result{}, fmt.Errorf("redis-benchmark printed another table: %w\n%s", err, text)
	}
	figures := map[string]float64{}
	for i, name := range rows[0] {
		if figures[name], err = strconv.ParseFloat(rows[1][i], 64); err != nil && name != "test" {
			return result{}, fmt.Errorf("redis-benchmark: %s: %w", name, err)
		}
	}
	ms := func(name string) time.Duration { return time.Duration(figures[name] * float64(time.Millisecond)) }
	return result{perSecond: figures["rps"], p50: ms("p50_latency_ms"), p99: ms("p99_latency_ms")}, nil
}

// redsyncOn prepares redsync on the masters as its documentation does, with a pool that is large enough for all
// clients. It measures Lock alone or Lock and Unlock.
func redsyncOn(masters []*harness.Redis, unlock bool) func(load) (result, error) {
	return func(l load) (result, error) {
		rs, closeAll, err := openRedsync(harness.Addrs(masters), l.clients)
		defer closeAll()
		if err != nil {
			return result{}, err
		}
		return timed(l, func(int) (func() error, func(), error) {
			return func() error { return redsyncOnce(rs, unlock) }, func() {}, nil
		})
	}
}

// openRedsync connects to the masters. closeAll is to be called after an error, too.
func openRedsync(addrs []string, clients int) (rs *redsync.Redsync, closeAll func(), err error) {
	var opened []*redis.Client
	closeAll = func() {
		for _, client := range opened {
			_ = client.Close()
		}
	}
	pools := make([]redsyncredis.Pool, len(addrs))
	for i, addr := range addrs {
		client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: clients + 10})
		opened = append(opened, client)
		if err := client.Ping(context.Background()).Err(); err != nil && !isTimeout(err) {
			return nil, closeAll, err
		}
		pools[i] = goredis.NewPool(client)
	}
	return redsync.New(pools...), closeAll, nil
}

func redsyncOnce(rs *redsync.Redsync, unlock bool) error {
	m := rs.NewMutex("redsync:"+strconv.FormatUint(rand.Uint64(), 36), redsync.WithExpiry(ttl), redsync.WithTries(1))
	if err := m.Lock(); err != nil {
		return err
	}
	if !unlock {
		return nil
	}
	ok, err := m.Unlock()
	if !ok {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil // an error beside a success is that of a minority
}

// isTimeout says that a master is silent, which one of them is meant to be in one part.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
