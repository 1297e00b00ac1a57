package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"lockproxy/integration/harness"
)

// A fault is what can befall a master or, if it says so, a proxy. To add one is to add a row to faults.
type fault struct {
	name    string
	forgets bool // a master loses locks by it, at once or when it comes back
	proxy   bool
	prepare func(d *deployment, i int) error // before the moment that counts
	hit     func(d *deployment, i int) error
	lasts   time.Duration // from hit to heal
	heal    func(d *deployment, i int) error
	tidy    func(d *deployment, i int) error // when all is over, for the faults that follow
}

// lasting is how long a fault lasts that is not over at once: longer than a vote may take, shorter than a TTL.
const lasting = 600 * time.Millisecond

// evicting is how long a master evicts that was told to, by an operator, while it runs. By then proxies must know. It is in every
// proof, but a proxy of which nobody asks anything looks twice in a second. So a master that takes such a setting back sooner may
// have forgotten locks and vote until the next heartbeat.
const evicting = 1200 * time.Millisecond

var restartedEmpty = fault{
	name: "killed, restarted empty", forgets: true, hit: func(d *deployment, i int) error { return d.masters[i].Restart() },
}

// SWAPDB is the first, as all databases of new masters look alike.
var faults = []fault{
	{name: "SWAPDB", forgets: true, hit: command("SWAPDB", "0", "1")},
	restartedEmpty,
	{name: "killed, down for a while, restarted empty", forgets: true, lasts: lasting,
		hit:  (*deployment).kill,
		heal: func(d *deployment, i int) error { return d.masters[i].Restart() }},
	{name: "crashed, AOF everysec", forgets: true, prepare: appendOnly("everysec"), lasts: lasting / 4, hit: crash, heal: reload("everysec"), tidy: appendNoMore},
	{name: "crashed, restarted from an old snapshot", forgets: true, prepare: command("SAVE"), hit: (*deployment).kill,
		heal: func(d *deployment, i int) error { return d.masters[i].StartAgain() },
		tidy: func(d *deployment, i int) error { return os.Remove(filepath.Join(d.masters[i].Dir(), "dump.rdb")) }},
	{name: "killed, restarted on an AOF that was no longer written", forgets: true, prepare: appendNoLonger, lasts: lasting / 4,
		hit: (*deployment).kill, heal: reload("always"), tidy: appendNoMore},
	{name: "killed, restarted on the AOF of another master", forgets: true, prepare: appendBoth, lasts: lasting / 4,
		hit: (*deployment).kill, heal: reloadAnothers, tidy: appendNeitherMore},
	{name: "killed, AOF always", prepare: appendOnly("always"), lasts: lasting / 4, hit: (*deployment).kill, heal: reload("always"), tidy: appendNoMore},
	{name: "flushed (FLUSHALL)", forgets: true, hit: command("FLUSHALL")},
	{name: "flushed (FLUSHDB)", forgets: true, hit: command("FLUSHDB")},
	{name: "evicting (allkeys-lru)", forgets: true, hit: evict("allkeys-lru"), lasts: evicting, heal: enoughMemory},
	{name: "evicting (volatile-ttl)", forgets: true, hit: evict("volatile-ttl"), lasts: evicting, heal: enoughMemory},
	{name: "stale replica promoted", forgets: true, prepare: replicate, hit: failOver},
	{name: "made a replica of another master, and a master again", forgets: true, hit: overwrite},
	{name: "clock forwards", forgets: true, hit: stepClock(+10 * time.Second)},
	{name: "clock backwards", hit: stepClock(-time.Second)},
	{name: "SCRIPT FLUSH", hit: command("SCRIPT", "FLUSH")},
	{name: "stopped (SIGSTOP)", lasts: lasting,
		hit:  func(d *deployment, i int) error { return d.masters[i].Pause() },
		heal: func(d *deployment, i int) error { return d.masters[i].Resume() }},
	{name: "CLIENT PAUSE", lasts: lasting, hit: command("CLIENT", "PAUSE", strconv.FormatInt(lasting.Milliseconds(), 10))},
	{name: "DEBUG SLEEP", hit: command("DEBUG", "SLEEP", fmt.Sprint(lasting.Seconds()))},
	{name: "link cut", hit: func(d *deployment, i int) error { d.relays[i].Cut(); return nil }},
	{name: "link down", lasts: lasting,
		hit:  func(d *deployment, i int) error { d.relays[i].Refuse(true); d.relays[i].Cut(); return nil },
		heal: func(d *deployment, i int) error { d.relays[i].Refuse(false); return nil }},
	{name: "link slow", lasts: lasting,
		hit: func(d *deployment, i int) error {
			d.relays[i].Delay(harness.ToMaster, 130*time.Millisecond)
			return nil
		},
		heal: func(d *deployment, i int) error { d.relays[i].Delay(harness.ToMaster, 0); return nil }},
	{name: "replies held back", lasts: 2 * lasting,
		hit:  func(d *deployment, i int) error { d.relays[i].Hold(harness.ToProxy); return nil },
		heal: func(d *deployment, i int) error { d.relays[i].Release(harness.ToProxy); return nil }},
	{name: "link broken, its packets late", lasts: lasting,
		hit:  func(d *deployment, i int) error { d.relays[i].Hold(harness.ToMaster); return nil },
		heal: func(d *deployment, i int) error { return strand(d.relays[i]) }},
	{name: "one packet late", lasts: 2 * lasting,
		hit:  func(d *deployment, i int) error { d.relays[i].Catch("SET"); return nil },
		heal: func(d *deployment, i int) error { d.relays[i].Deliver(); return nil }},
	{name: "proxy killed, restarted", proxy: true,
		hit: func(d *deployment, i int) error { d.proxies[i].Kill(); return d.proxies[i].Start() }},
	{name: "proxy stopped (SIGSTOP)", proxy: true, lasts: lasting,
		hit:  func(d *deployment, i int) error { return d.proxies[i].Pause() },
		heal: func(d *deployment, i int) error { return d.proxies[i].Resume() }},
}

func command(args ...string) func(*deployment, int) error {
	return func(d *deployment, i int) error { return tell(d.masters[i], "", args...) }
}

// strand breaks the links and delivers what was sent on them when the proxy is connected again.
func strand(r *harness.Relay) error {
	r.Strand()
	time.Sleep(lasting / 4)
	r.Deliver()
	return nil
}

func configSet(m *harness.Redis, pairs ...string) error {
	for ; len(pairs) > 1; pairs = pairs[2:] {
		if err := tell(m, "", "CONFIG", "SET", pairs[0], pairs[1]); err != nil {
			return err
		}
	}
	return nil
}

func (d *deployment) kill(i int) error {
	d.masters[i].Kill()
	return nil
}

// appendOnly turns on the append-only file, and remembers how much of it a crash of the machine leaves if it is not
// flushed each time: what came after the latest fsync, a second ago, is lost. (kill -9 alone loses nothing, as the
// kernel has it already.) The links are cut for the proxies to see the setting when they connect again.
func appendOnly(fsync string) func(*deployment, int) error {
	return func(d *deployment, i int) error {
		m := d.masters[i]
		if err := configSet(m, "appendfsync", fsync, "appendonly", "yes"); err != nil {
			return err
		}
		if err := appendsOnly(m); err != nil {
			return err
		}
		name, err := appendOnlyFile(m)
		if err != nil {
			return err
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		d.files[i] = info.Size()
		d.relays[i].Cut()
		return nil
	}
}

// appendsOnly waits until everything goes to the file.
func appendsOnly(m *harness.Redis) error {
	return harness.Poll(readyMax, func() error {
		reply, err := m.Do(0, "INFO", "persistence")
		if err == nil && (!strings.Contains(string(reply), "aof_enabled:1") || !strings.Contains(string(reply), "aof_rewrite_in_progress:0")) {
			err = errors.New("the append-only file is not written yet")
		}
		return err
	})
}

// appendOnlyFile returns the path of the file that grows.
func appendOnlyFile(m *harness.Redis) (string, error) {
	names, err := filepath.Glob(filepath.Join(m.Dir(), "appendonlydir", "*.incr.aof"))
	if err == nil && len(names) == 0 { // before Redis 7
		names, err = filepath.Glob(filepath.Join(m.Dir(), "appendonly.aof"))
	}
	if err == nil && len(names) != 1 {
		err = fmt.Errorf("%d append-only files in %s", len(names), m.Dir())
	}
	if err != nil {
		return "", err
	}
	return names[0], nil
}

func crash(d *deployment, i int) error {
	name, err := appendOnlyFile(d.masters[i])
	if err != nil {
		return err
	}
	d.masters[i].Kill()
	return os.Truncate(name, d.files[i])
}

func reload(fsync string) func(*deployment, int) error {
	return func(d *deployment, i int) error {
		return d.masters[i].StartAgain("--appendonly", "yes", "--appendfsync", fsync)
	}
}

// appendNoLonger lets the master have a file that ends here.
func appendNoLonger(d *deployment, i int) error {
	if err := appendOnly("always")(d, i); err != nil {
		return err
	}
	time.Sleep(lasting) // the proxies are connected again
	err := configSet(d.masters[i], "appendonly", "no")
	time.Sleep(2 * lasting) // and have seen that
	return err
}

// next is the master whose data it may be given.
func next(i int) int { return (i + 1) % mastersMax }

// appendBoth turns on the append-only file of a master and of the next one, and puts a copy of the latter aside.
func appendBoth(d *deployment, i int) error {
	m := d.masters[next(i)]
	err := errors.Join(appendOnly("always")(d, i), configSet(m, "appendfsync", "always", "appendonly", "yes"), appendsOnly(m))
	d.relays[next(i)].Cut()
	time.Sleep(lasting) // the proxies are connected again
	return errors.Join(err, inDir(d.masters[i].Dir(), `mkdir -p aside && rm -rf aside/* && cp -r "$1"/appendonly* aside`, m.Dir()))
}

// reloadAnothers starts a master on what the next one had.
func reloadAnothers(d *deployment, i int) error {
	if err := inDir(d.masters[i].Dir(), `rm -r appendonly* && cp -r aside/* .`); err != nil {
		return err
	}
	return reload("always")(d, i)
}

func inDir(dir, script string, args ...string) error {
	c := exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", script, err, out)
	}
	return nil
}

func appendNeitherMore(d *deployment, i int) error {
	return errors.Join(appendNoMore(d, i), appendNoMore(d, next(i)))
}

func appendNoMore(d *deployment, i int) error {
	if err := configSet(d.masters[i], "appendonly", "no"); err != nil {
		return err
	}
	dir := d.masters[i].Dir()
	return errors.Join(os.RemoveAll(filepath.Join(dir, "appendonlydir")), os.RemoveAll(filepath.Join(dir, "appendonly.aof")))
}

// evict takes so much memory from a master that all must go that the policy lets go: all keys, or with volatile-ttl
// those with a TTL, such as locks.
func evict(policy string) func(*deployment, int) error {
	return func(d *deployment, i int) error {
		m := d.masters[i]
		reply, err := m.Do(0, "INFO", "memory")
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(string(reply), "used_memory:")
		text, _, _ := strings.Cut(rest, "\r\n")
		used, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		return configSet(m, "maxmemory-policy", policy, "maxmemory", strconv.Itoa(used/2))
	}
}

func enoughMemory(d *deployment, i int) error {
	return configSet(d.masters[i], "maxmemory", "0", "maxmemory-policy", "noeviction")
}

// replicate starts a replica of the master, waits until it has all, and cuts it off: it is stale from now on.
func replicate(d *deployment, i int) error {
	all, err := harness.StartRedisesWithClocks(d.shim, 1, masterFlags...)
	if err != nil {
		return err
	}
	r := all[0]
	d.replicas[i] = r
	if d.shim != "" {
		if err := r.StepClock(d.steps[i]); err != nil {
			return err
		}
	}
	return copyOf(d.masters[i], r)
}

// overwrite replaces what a master has by what the next one has, without its process or connections ending.
func overwrite(d *deployment, i int) error { return copyOf(d.masters[(i+1)%mastersMax], d.masters[i]) }

// copyOf makes a server a replica for as long as it takes to have all that the master has.
func copyOf(master, server *harness.Redis) error {
	host, port, _ := strings.Cut(master.Addr, ":")
	if err := tell(server, "", "REPLICAOF", host, port); err != nil {
		return err
	}
	err := harness.Poll(readyMax, func() error {
		reply, err := server.Do(0, "INFO", "replication")
		if err == nil && !strings.Contains(string(reply), "master_link_status:up") {
			err = errors.New("the replica is not in step yet")
		}
		return err
	})
	return errors.Join(err, tell(server, "", "REPLICAOF", "NO", "ONE"))
}

// failOver kills the master; its address now leads to what was its replica.
func failOver(d *deployment, i int) error {
	d.masters[i].Stop()
	d.masters[i], d.replicas[i] = d.replicas[i], nil
	d.relays[i].Retarget(d.masters[i].Addr)
	return nil
}

// stepClock moves the master's clock on from where it is.
func stepClock(by time.Duration) func(*deployment, int) error {
	return func(d *deployment, i int) error {
		if d.shim == "" {
			return nil
		}
		d.steps[i] += by
		return d.masters[i].StepClock(d.steps[i])
	}
}
