package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"

	"lockproxy/integration/bench/contest"
	"lockproxy/integration/harness"
)

// hotPart measures one key for which all clients wait: lockproxy's LOCK WAIT; redsync on the same masters; and bsm/redislock, which
// locks on one Redis.
func (f *fleet) hotPart(s settings, r *report) error {
	g := f.groups[0]
	s.duration *= longContest
	for _, clients := range []int{50, 500} {
		err := r.rows(os.Stdout, s, "hot", clients, 1, []subject{
			{name: g.name("lockproxy"), masters: g.masters, run: contested(1, lockClient(g.proxy.Addr))},
			{name: g.name("redsync"), masters: g.masters, run: redsyncContest(harness.Addrs(g.masters), 1)},
			{name: "bsm/redislock, one Redis", masters: []*harness.Redis{f.bare}, run: f.peerContest("redislock", []string{f.bare.Addr}, 1)},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// longContest is how much longer a contest is than other runs: some clients of peers wait for seconds.
const longContest = 3

// contested measures clients that contend for that many keys; 0: for one each.
func contested(keys int, open func(client int, key string) (contest.Locker, error)) func(load) (result, error) {
	return func(l load) (result, error) {
		res, err := contestOf(keys, l).Run(open)
		return resultOf(res, l), err
	}
}

func contestOf(keys int, l load) contest.Contest {
	if keys == 0 {
		keys = l.clients
	}
	return contest.Contest{Clients: l.clients, Keys: keys, Duration: l.duration}
}

func resultOf(res contest.Result, l load) result {
	mean := float64(max(res.Locks, 1)) / float64(l.clients)
	return result{
		count: res.Locks, perSecond: float64(res.Locks) / l.duration.Seconds(), p50: res.LockP50, p99: res.LockP99,
		handP50: res.HandoverP50, handP99: res.HandoverP99, fewest: float64(res.Fewest) / mean, most: float64(res.Most) / mean,
	}
}

// lockClient opens clients that send LOCK … WAIT and UNLOCK, each over a connection of its own.
func lockClient(addr string) func(int, string) (contest.Locker, error) {
	return func(client int, key string) (contest.Locker, error) {
		conn, err := harness.Dial(addr)
		return &lockConn{conn, key, strconv.Itoa(client)}, err
	}
}

type lockConn struct {
	conn       *harness.Conn
	key, token string
}

// waitMax is how long a client waits, which is less than the connection's patience.
const waitMax = 20 * time.Second

func (c *lockConn) Lock() error {
	reply, err := c.conn.Do("LOCK", c.key, strconv.FormatInt(ttl.Milliseconds(), 10), "TOKEN", c.token, "WAIT", strconv.FormatInt(waitMax.Milliseconds(), 10))
	if err == nil && reply[0] != '*' {
		err = fmt.Errorf("LOCK: %q", reply)
	}
	return err
}

func (c *lockConn) Unlock() error {
	reply, err := c.conn.Do("UNLOCK", c.key, c.token)
	if err == nil && string(reply) != ":1\r\n" {
		err = fmt.Errorf("UNLOCK: %q", reply)
	}
	return err
}

func (c *lockConn) Close() { _ = c.conn.Close() }

// redsyncContest lets clients of redsync, which share one pool for each master, contend.
func redsyncContest(addrs []string, keys int) func(load) (result, error) {
	return func(l load) (result, error) {
		rs, closeAll, err := openRedsync(addrs, l.clients)
		defer closeAll()
		if err != nil {
			return result{}, err
		}
		return contested(keys, func(_ int, key string) (contest.Locker, error) {
			return redsyncLock{rs.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(1_000_000))}, nil
		})(l)
	}
}

type redsyncLock struct{ mutex *redsync.Mutex }

func (l redsyncLock) Lock() error { return l.mutex.Lock() }

func (l redsyncLock) Unlock() error {
	ok, err := l.mutex.Unlock()
	if ok {
		return nil // an error beside a success is that of a minority
	}
	return errors.Join(errors.New("not held"), err)
}

func (l redsyncLock) Close() {}

// peerContest lets clients of a peer contend, in the program of the peers.
func (f *fleet) peerContest(of string, addrs []string, keys int) func(load) (result, error) {
	return func(l load) (result, error) {
		bin, err := f.peersProgram()
		if err != nil {
			return result{}, err
		}
		c := contestOf(keys, l)
		cmd := exec.Command(bin, "-of", of, "-addrs", strings.Join(addrs, ","), "-clients", strconv.Itoa(c.Clients), "-keys", strconv.Itoa(c.Keys),
			"-duration", c.Duration.String())
		var complaints bytes.Buffer
		cmd.Stderr = &complaints
		out, err := cmd.Output()
		if err != nil {
			return result{}, fmt.Errorf("%w\n%s", err, complaints.String())
		}
		var res contest.Result
		err = json.Unmarshal(out, &res)
		return resultOf(res, l), err
	}
}

// peersProgram builds the program of the peers, once. Its sources are looked for below the working directory, which is the tree's root.
func (f *fleet) peersProgram() (string, error) {
	bin := filepath.Join(f.dir, "peers")
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	cmd := exec.Command("go", "build", "-o", bin, ".")
	cmd.Dir = filepath.Join("integration", "bench", "peers")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build in %s, which make bench runs from the tree's root: %w\n%s", cmd.Dir, err, out)
	}
	return bin, nil
}
