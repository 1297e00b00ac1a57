package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

const (
	mastersMax = 5
	proxiesMax = 2
	readyMax   = 90 * time.Second // to be at full strength again after a fault, on a busy machine
)

// A deployment is five masters, the links to them, and two proxies that use the same links.
type deployment struct {
	users   string // file of the masters' users; empty if they have none
	shim    string // empty if the clocks of the masters cannot be stepped
	masters []*harness.Redis
	relays  []*harness.Relay
	proxies []*harness.Proxy

	steps    [mastersMax]time.Duration // of the masters' clocks
	replicas [mastersMax]*harness.Redis
	files    [mastersMax]int64 // sizes of the append-only files that a crash will leave
}

// proxyFlags keep waiting short: ttl_max is what service waits for when more than a minority forgot. It is longer than
// what a minority waits for (TTL and head-room), so that the two can be told apart.
func proxyFlags(ttl time.Duration) []string {
	return []string{"--ttl-max", (3 * ttl).String(), "--master-dead-after", "1s", "--init", "manual"}
}

var masterFlags = []string{"--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"}

// deploy starts a deployment that ends with the test.
func deploy(t testing.TB, proxies int, flags ...string) *deployment {
	t.Helper()
	if err := harness.HaveRedis(); err != nil {
		if os.Getenv("LOCKPROXY_REQUIRE_REDIS") == "1" {
			t.Fatalf("redis-server cannot be run: %v; LOCKPROXY_REQUIRE_REDIS=1 demands it", err)
		}
		t.Skipf("NOT RUN: redis-server cannot be run (%v): no fault was tried", err)
	}
	return (&deployment{}).deploy(t, proxies, masterFlags, flags...)
}

// loginAtMasters is the user and password of proxies and of these tests, where masters have users.
var loginAtMasters = []string{"locks", "opensesame"}

// deployOnDisk starts a deployment whose masters write everything to disk before they answer, and permit their default user what the
// manual says.
func deployOnDisk(t testing.TB, proxies int, flags ...string) *deployment {
	t.Helper()
	d := &deployment{users: filepath.Join(t.TempDir(), "users.acl")}
	rules := "user default off ~* &* +@all\nuser " + loginAtMasters[0] + " on >" + loginAtMasters[1] + " ~* &* +@all\n"
	if err := os.WriteFile(d.users, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	onDisk := []string{"--appendonly", "yes", "--appendfsync", "always", "--aclfile", d.users}
	return d.deploy(t, proxies, append(onDisk, masterFlags...), flags...)
}

func (d *deployment) deploy(t testing.TB, proxies int, masterFlags []string, flags ...string) *deployment {
	t.Helper()
	var err error
	if d.shim, err = harness.BuildClock(t.TempDir()); err != nil {
		t.Logf("NOT RUN: clocks are not stepped: %v", err)
		d.shim = ""
	}
	t.Cleanup(d.stop)
	if d.masters, err = harness.StartRedisesWithClocks(d.shim, mastersMax, masterFlags...); err != nil {
		t.Fatal(err)
	}
	for _, m := range d.masters {
		if d.users != "" {
			m.Login = loginAtMasters
		}
		r, err := harness.StartRelay(m.Addr)
		if err != nil {
			t.Fatal(err)
		}
		d.relays = append(d.relays, r)
	}
	if err := harness.InitMasters(proxyBinary, d.masterAddrs(), flags...); err != nil {
		t.Fatal(err)
	}
	for range proxies {
		p, err := harness.StartProxy(proxyBinary, d.masterAddrs(), flags...)
		if err != nil {
			t.Fatal(err)
		}
		d.proxies = append(d.proxies, p)
	}
	t.Cleanup(func() {
		for _, p := range d.proxies {
			if err := p.Stop(); err != nil {
				t.Errorf("stop a proxy: %v", err)
			}
			if t.Failed() {
				t.Logf("output of a proxy:\n%s", p.Output())
			}
		}
	})
	return d
}

func (d *deployment) stop() {
	for _, r := range d.relays {
		r.Stop()
	}
	harness.StopAll(d.masters)
	for _, r := range d.replicas {
		if r != nil {
			r.Stop()
		}
	}
}

// masterAddrs returns the masters' addresses as proxies and libraries know them: those of the links.
func (d *deployment) masterAddrs() []string {
	var addrs []string
	for _, r := range d.relays {
		addr := r.Addr
		if d.users != "" {
			addr = "redis://" + strings.Join(loginAtMasters, ":") + "@" + addr
		}
		addrs = append(addrs, addr)
	}
	return addrs
}

// clients returns the workers' connections: plain and native ones, each at home on one of the proxies.
func (d *deployment) clients() []client {
	var addrs []string
	for _, p := range d.proxies {
		addrs = append(addrs, p.Addr)
	}
	var all []client
	for i := range workersMax {
		w := wire{addrs: addrs, at: i / 2}
		if i%2 == 0 {
			all = append(all, &plain{w})
		} else {
			all = append(all, &native{w})
		}
	}
	return all
}

// directClients returns workers that do without the proxies.
func (d *deployment) directClients() []client {
	var all []client
	for range workersMax {
		all = append(all, newDirect(d.masterAddrs()))
	}
	return all
}

// atFullStrength returns nil if a lock taken through each proxy reaches every master, and counts there.
func (d *deployment) atFullStrength() error {
	for i, p := range d.proxies {
		w := &plain{wire{addrs: []string{p.Addr}}}
		key := fmt.Sprintf("full-strength:%d:%d", i, time.Now().UnixNano())
		err := d.reaches(w, key)
		if err == nil {
			err = allClean(w)
		}
		w.close()
		if err != nil {
			return fmt.Errorf("proxy %d: %w", i, err)
		}
	}
	return nil
}

// reaches returns nil if a lock is granted, and every master has it.
func (d *deployment) reaches(c *plain, key string) error {
	if o, cause := c.acquire(key, "probe", time.Second); o != done {
		return fmt.Errorf("SET: %s %s", o, cause)
	}
	defer c.release(key, "probe")
	return harness.Poll(50*time.Millisecond, func() error { return d.holdEverywhere(key) })
}

// allClean returns nil if the proxy says that no master is in quarantine.
func allClean(c *plain) error {
	reply, cause := c.do("INFO", "lockproxy")
	if n := strings.Count(reply, "state=clean"); n != mastersMax {
		return fmt.Errorf("%d masters are clean %s", n, cause)
	}
	return nil
}

func (d *deployment) holdEverywhere(key string) error {
	for _, m := range d.masters {
		if err := tell(m, ":1\r\n", "EXISTS", key); err != nil {
			return err
		}
	}
	return nil
}

// tell sends a command to a master directly and demands this reply; with none, any but an error.
func tell(m *harness.Redis, want string, args ...string) error {
	reply, err := m.Do(0, args...)
	if err == nil && (want != "" && string(reply) != want || reply[0] == '-') {
		err = errors.New(strings.TrimSpace(string(reply)))
	}
	if err != nil {
		return fmt.Errorf("%.60q on %s: %w", args, m.Addr, err)
	}
	return nil
}

// each runs f on all the numbers at once and returns the first error.
func each(numbers []int, f func(i int) error) error {
	errs := make([]error, len(numbers))
	var all sync.WaitGroup
	for n, i := range numbers {
		all.Go(func() { errs[n] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}
