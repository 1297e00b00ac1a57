// Command peers runs the contest of lockproxy's benchmark with locks of others, and prints the result as JSON. It is a module of its
// own, so that lockproxy's does not grow by their clients.
//
//	go run . -of etcd|zookeeper|redislock -addrs 127.0.0.1:2379,… [-clients 50] [-keys 1] [-duration 1s]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"lockproxy/integration/bench/contest"
)

// ttl is how long a lock, or the session that holds it, outlives its client.
const ttl = 30 * time.Second

// An opener opens one client of a lock.
type opener func(client int, key string) (contest.Locker, error)

// peers are those that can run, by the name of the flag. Each opens what its clients share, and returns how to close that.
var peers = map[string]func(addrs []string, clients int) (open opener, closeAll func(), err error){
	"etcd": etcd, "zookeeper": zookeeper, "redislock": bsm,
}

func main() {
	var c contest.Contest
	of := flag.String("of", "", "whose locks: etcd, zookeeper or redislock")
	addrs := flag.String("addrs", "", "of the servers")
	flag.IntVar(&c.Clients, "clients", 50, "how many lock")
	flag.IntVar(&c.Keys, "keys", 1, "how many keys they lock")
	flag.DurationVar(&c.Duration, "duration", time.Second, "how long")
	flag.Parse()
	if err := run(*of, strings.Split(*addrs, ","), c); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(of string, addrs []string, c contest.Contest) error {
	peer, known := peers[of]
	if !known {
		return fmt.Errorf("-of %q: want etcd, zookeeper or redislock", of)
	}
	open, closeAll, err := peer(addrs, c.Clients)
	if err != nil {
		return fmt.Errorf("%s: %w", of, err)
	}
	defer closeAll()
	res, err := c.Run(open)
	if err != nil {
		return fmt.Errorf("%s: %w", of, err)
	}
	return json.NewEncoder(os.Stdout).Encode(res)
}
