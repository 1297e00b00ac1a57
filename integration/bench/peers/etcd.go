package main

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"lockproxy/integration/bench/contest"
)

// etcd locks with concurrency.Mutex. All clients share one connection, as the goroutines of one process do; each has a session.
func etcd(addrs []string, _ int) (opener, func(), error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: addrs, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, nil, err
	}
	open := func(_ int, key string) (contest.Locker, error) {
		session, err := concurrency.NewSession(client, concurrency.WithTTL(int(ttl.Seconds())))
		if err != nil {
			return nil, err
		}
		return etcdLock{concurrency.NewMutex(session, key), session}, nil
	}
	return open, func() { _ = client.Close() }, nil
}

type etcdLock struct {
	mutex   *concurrency.Mutex
	session *concurrency.Session
}

func (l etcdLock) Lock() error   { return l.mutex.Lock(context.Background()) }
func (l etcdLock) Unlock() error { return l.mutex.Unlock(context.Background()) }
func (l etcdLock) Close()        { _ = l.session.Close() }
