package main

import (
	"github.com/go-zookeeper/zk"

	"lockproxy/integration/bench/contest"
)

// zookeeper locks with zk.Lock, which is ZooKeeper's own recipe. Each client has a session, and so a connection.
func zookeeper(addrs []string, _ int) (opener, func(), error) {
	open := func(_ int, key string) (contest.Locker, error) {
		conn, _, err := zk.Connect(addrs, ttl, zk.WithLogInfo(false))
		if err != nil {
			return nil, err
		}
		if _, _, err := conn.Exists("/"); err != nil { // waits for the session
			return nil, err
		}
		return zkLock{zk.NewLock(conn, "/"+key, zk.WorldACL(zk.PermAll)), conn}, nil
	}
	return open, func() {}, nil
}

type zkLock struct {
	lock *zk.Lock
	conn *zk.Conn
}

func (l zkLock) Lock() error   { return l.lock.Lock() }
func (l zkLock) Unlock() error { return l.lock.Unlock() }
func (l zkLock) Close()        { l.conn.Close() }
