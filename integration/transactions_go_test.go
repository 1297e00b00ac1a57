package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockproxy/integration/harness"
)

// Transactions, and what reads and writes at once, as go-redis sends them.
func TestGoRedisTransactions(t *testing.T) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			ctx := context.Background()
			client := redis.NewClient(&redis.Options{Addr: proxy.Addr, Protocol: protocol, MaxRetries: -1, ReadTimeout: cleanMax})
			defer client.Close()
			name := fmt.Sprintf("tx%d", protocol)
			cmds, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.SetNX(ctx, name, "token", 0)
				pipe.PExpire(ctx, name, 30*time.Second)
				pipe.Get(ctx, name)
				return nil
			})
			if err != nil || !cmds[0].(*redis.BoolCmd).Val() || !cmds[1].(*redis.BoolCmd).Val() || cmds[2].(*redis.StringCmd).Val() != "token" {
				t.Fatalf("%v, %v", cmds, err)
			}
			if err := releaseByWatch(client, name, "other"); err == nil || !strings.Contains(err.Error(), "not mine") {
				t.Errorf("a stranger's release: %v", err)
			}
			if err := releaseByWatch(client, name, "token"); err != nil {
				t.Errorf("release: %v", err)
			}
			client.Set(ctx, name, "stolen", time.Minute)
			if err := releaseByWatch(client, name, "stolen"); !errors.Is(err, redis.TxFailedErr) {
				t.Errorf("a release of what was stolen meanwhile: %v", err)
			}
			want := func(what string, got any, err error, expected any) {
				t.Helper()
				if err != nil || fmt.Sprint(got) != fmt.Sprint(expected) {
					t.Errorf("%s: got %v, %v, want %v", what, got, err, expected)
				}
			}
			old, err := client.Do(ctx, "GETSET", name, "next").Text()
			want("GETSET", old, err, "thief")
			old, err = client.GetEx(ctx, name, time.Minute).Result()
			want("GETEX", old, err, "next")
			old, err = client.GetDel(ctx, name).Result()
			want("GETDEL", old, err, "next")
			ok, err := client.MSetNX(ctx, name+"a", 1, name+"b", 2).Result()
			want("MSETNX", ok, err, true)
			values, err := client.MGet(ctx, name, name+"b").Result()
			want("MGET", values, err, []any{nil, "2"})
			direct(t, masters, "HSET", name+"h", "id:1", "2")
			all, err := client.HGetAll(ctx, name+"h").Result()
			want("HGETALL", all, err, map[string]string{"id:1": "2"})
		})
	}
}

// releaseByWatch deletes a lock if it holds the token. While it is at it, a lock with the token "stolen" is stolen.
func releaseByWatch(client *redis.Client, name, token string) error {
	ctx := context.Background()
	return client.Watch(ctx, func(tx *redis.Tx) error {
		if value, err := tx.Get(ctx, name).Result(); err != nil || value != token {
			return fmt.Errorf("not mine but %q, %w", value, err)
		}
		if token == "stolen" {
			client.Set(ctx, name, "thief", time.Minute)
		}
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Del(ctx, name)
			return nil
		})
		return err
	}, name)
}
