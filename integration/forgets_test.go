package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// A forgetting is a way in which a master that writes everything to disk before it answers loses locks all the same. Of three
// masters, bystander is down when the locks are taken, and keeper when others ask for them: the loser alone could let these in.
type forgetting struct {
	name   string
	before func(t *testing.T, f *forgetful) // nil for nothing
	after  func(t *testing.T, f *forgetful)
	// marked is a part of the reason that is written on the loser; "" if it is known otherwise.
	marked string
	clock  bool                        // it needs a clock that can be stepped
	skip   func(m *harness.Redis) bool // where a version does not do such a thing
}

const keeper, bystander, loser = 0, 1, 2

type forgetful struct {
	masters []*harness.Redis
	relays  []*harness.Relay
	dir     string // for what the operator puts aside
}

func (f *forgetful) loser() *harness.Redis { return f.masters[loser] }

// set changes settings of the loser.
func (f *forgetful) set(t *testing.T, settings ...string) {
	t.Helper()
	direct(t, f.masters[loser:], append([]string{"CONFIG", "SET"}, settings...)...)
}

// unseen does something to the loser while no proxy reaches it.
func (f *forgetful) unseen(t *testing.T, do func()) {
	t.Helper()
	f.relays[loser].Refuse(true)
	f.relays[loser].Cut()
	do()
	f.relays[loser].Refuse(false)
}

// startAgain kills the loser and starts it on what it finds.
func (f *forgetful) startAgain(t *testing.T, settings ...string) {
	t.Helper()
	f.loser().Kill()
	if err := f.loser().StartAgain(settings...); err != nil {
		t.Fatal(err)
	}
}

// written waits until the loser has written its append-only file anew.
func (f *forgetful) written(t *testing.T) {
	t.Helper()
	eventually(t, progressMax, "the file is written", func() error {
		reply, err := f.loser().Do(0, "INFO", "persistence")
		for _, not := range []string{"aof_rewrite_in_progress:1", "aof_rewrite_scheduled:1", "aof_last_rewrite_time_sec:-1"} {
			if err == nil && strings.Contains(string(reply), not) {
				err = fmt.Errorf("%s", not)
			}
		}
		return err
	})
}

// copyFiles copies a directory.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// evictAll makes the loser evict what has a TTL, and leaves it full.
func (f *forgetful) evictAll(t *testing.T) {
	t.Helper()
	f.set(t, "maxmemory-policy", "volatile-ttl")
	f.set(t, "maxmemory", "1") // less than it uses by itself
	eventually(t, progressMax, "it evicts", func() error {
		_, _ = f.loser().Do(0, "PING")
		if left, err := f.loser().Do(0, "EXISTS", "plain", "fenced", "watched"); err != nil || string(left) != ":0\r\n" {
			return fmt.Errorf("%q, %v", left, err)
		}
		return nil
	})
}

var forgettings = []forgetting{
	{
		name: "evicted, and full", marked: "evicted",
		after: func(t *testing.T, f *forgetful) {
			f.evictAll(t)
			eventually(t, progressMax, "it is marked", func() error { return f.isMarked("evicted") })
			f.set(t, "maxmemory-policy", "noeviction")
			f.set(t, "maxmemory", "0")
			f.startAgain(t)
		},
	},
	{
		name: "evicted at a restart, before a proxy looked", marked: "evicted",
		after: func(t *testing.T, f *forgetful) {
			f.unseen(t, func() {
				f.startAgain(t)
				f.evictAll(t)
				f.set(t, "maxmemory-policy", "noeviction")
				f.set(t, "maxmemory", "0")
			})
		},
	},
	{
		name: "its directory was changed, and the file written there",
		skip: func(m *harness.Redis) bool { // protected from version 7 on
			reply, err := m.Do(0, "CONFIG", "SET", "dir", m.Dir())
			return err != nil || reply[0] == '-'
		},
		before: func(t *testing.T, f *forgetful) {
			f.set(t, "dir", f.dir)
			direct(t, f.masters[loser:], "BGREWRITEAOF")
			f.written(t)
			time.Sleep(time.Second) // assumption 9: by now it was seen
		},
		after: func(t *testing.T, f *forgetful) { f.startAgain(t) },
	},
	{
		name: "started from its dump, and told to keep all",
		before: func(t *testing.T, f *forgetful) {
			direct(t, f.masters[loser:], "SAVE")
		},
		after: func(t *testing.T, f *forgetful) {
			f.unseen(t, func() {
				f.startAgain(t, "--appendonly", "no")
				f.set(t, "appendonly", "yes")
				f.written(t)
			})
		},
		marked: "may have started on other data",
	},
	{
		name: "its file was turned off and on, unseen, and is still being written",
		before: func(t *testing.T, f *forgetful) {
			direct(t, f.masters[loser:], "DEBUG", "POPULATE", "20000", "filler")
			f.unseen(t, func() {
				f.set(t, "appendonly", "no")
				f.set(t, "rdb-key-save-delay", "100000")
				f.set(t, "appendonly", "yes")
			})
			eventually(t, progressMax, "it is back", func() error { return f.isMarked("") })
		},
		after: func(t *testing.T, f *forgetful) { f.startAgain(t) },
	},
	{
		name: "a replica copied it, unseen, and is started in its place",
		before: func(t *testing.T, f *forgetful) {
			all := startMasters(t, loser+1, "--appendonly", "yes", "--appendfsync", "always")
			replica := all[loser] // of the same version
			f.unseen(t, func() {
				host, port, _ := strings.Cut(f.loser().Addr, ":")
				direct(t, []*harness.Redis{replica}, "REPLICAOF", host, port)
				eventually(t, progressMax, "it has copied", func() error {
					reply, err := replica.Do(0, "INFO", "replication")
					if err == nil && !strings.Contains(string(reply), "master_link_status:up") {
						err = fmt.Errorf("%s", reply)
					}
					return err
				})
				eventually(t, progressMax, "it has all on disk", func() error {
					reply, err := replica.Do(0, "INFO", "persistence")
					if err == nil && (!strings.Contains(string(reply), "aof_rewrite_in_progress:0") || !strings.Contains(string(reply), "aof_rewrite_scheduled:0")) {
						err = fmt.Errorf("%s", reply)
					}
					return err
				})
				replica.Kill()
				copyFiles(t, replica.Dir(), f.dir)
			})
			eventually(t, progressMax, "it is back", func() error { return f.isMarked("") })
			time.Sleep(time.Second) // the others are told
		},
		after: func(t *testing.T, f *forgetful) {
			f.loser().Kill()
			f.startOn(t, f.dir)
		},
	},
	{
		name: "its clock went ahead and back, unseen", marked: "horizon", clock: true,
		after: func(t *testing.T, f *forgetful) {
			f.unseen(t, func() {
				for _, by := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
					if err := f.loser().StepClock(by); err != nil {
						t.Fatal(err)
					}
					for range 20 {
						_, _ = f.loser().Do(0, "EXISTS", "plain", "fenced", "watched", "hash", "lockproxy:horizon")
						time.Sleep(20 * time.Millisecond) // as it is set, a process sees
					}
				}
			})
		},
	},
	{
		name: "started from a backup", marked: "older",
		before: func(t *testing.T, f *forgetful) { copyFiles(t, f.loser().Dir(), f.dir) },
		after: func(t *testing.T, f *forgetful) {
			time.Sleep(time.Second) // by now all proxies know what it has granted
			f.loser().Kill()
			f.startOn(t, f.dir)
		},
	},
	{
		name: "started with fewer databases",
		after: func(t *testing.T, f *forgetful) {
			f.unseen(t, func() {
				f.startAgain(t, "--databases", "8")
				direct(t, f.masters[loser:], "DEL", "plain", "fenced", "watched", "hash") // as one in a database that it has not does
			})
		},
	},
	{
		name: "started in another directory", marked: "another place",
		before: func(t *testing.T, f *forgetful) { copyFiles(t, f.loser().Dir(), f.dir) },
		after:  func(t *testing.T, f *forgetful) { f.startAgain(t, "--dir", f.dir) },
	},
}

// startOn starts the loser on files from elsewhere.
func (f *forgetful) startOn(t *testing.T, from string) {
	t.Helper()
	was, err := filepath.Glob(filepath.Join(f.loser().Dir(), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range was {
		if strings.Contains(filepath.Base(name), "append") || strings.HasSuffix(name, ".rdb") {
			if err := os.RemoveAll(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			rel, _ := filepath.Rel(from, path)
			err = os.MkdirAll(filepath.Join(f.loser().Dir(), rel), 0o700)
		} else if err == nil && strings.Contains(path, "append") {
			rel, _ := filepath.Rel(from, path)
			text, _ := os.ReadFile(path)
			err = os.WriteFile(filepath.Join(f.loser().Dir(), rel), text, 0o600)
		}
		return err
	})
	if err := f.loser().StartAgain(); err != nil {
		t.Fatal(err)
	}
}

// isMarked says that a quarantine is written on the loser for that reason, or with "" that it is up.
func (f *forgetful) isMarked(reason string) error {
	reply, err := f.loser().Do(0, "GET", "lockproxy:quarantine")
	if err == nil && !strings.Contains(string(reply), reason) {
		err = fmt.Errorf("%q", reply)
	}
	return err
}

func TestWhatAMasterForgetsUnseenIsGrantedToNobodyElse(t *testing.T) {
	requireRedis(t)
	shim, err := harness.BuildClock(t.TempDir())
	if err != nil {
		t.Logf("clocks cannot be stepped here: %v", err)
	}
	for _, how := range forgettings {
		if how.clock && shim == "" {
			continue
		}
		t.Run(how.name, func(t *testing.T) { forgetUnseen(t, how, shim) })
	}
}

func forgetUnseen(t *testing.T, how forgetting, shim string) {
	f := &forgetful{dir: t.TempDir()}
	var err error
	if f.masters, err = harness.StartRedisesWithClocks(shim, 3, "--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { harness.StopAll(f.masters) })
	if how.skip != nil && how.skip(f.loser()) {
		t.Skip("this version does not do so")
	}
	var addrs []string
	for _, m := range f.masters {
		r, err := harness.StartRelay(m.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Stop)
		f.relays, addrs = append(f.relays, r), append(addrs, r.Addr)
	}
	proxy := startProxy(t, addrs)
	a, b := dial(t, proxy.Addr), dial(t, proxy.Addr)
	allVote(t, a, f.masters)
	f.masters[bystander].Kill()
	if how.before != nil {
		how.before(t, f)
	}
	for _, l := range locks {
		eventually(t, progressMax, l.name+" is granted", func() error {
			if !take(t, a, l.request, "a", l.won) {
				return fmt.Errorf("it is not")
			}
			return nil
		})
	}
	if !takeHash(t, a, "a") {
		t.Fatal("hash is not granted")
	}
	how.after(t, f)
	f.masters[keeper].Kill()
	if err := f.masters[bystander].StartAgain(); err != nil {
		t.Fatal(err)
	}
	connected := 0
	for began := time.Now(); time.Since(began) < 3*time.Second; {
		reply, err := b.Do("INFO", "lockproxy")
		if err == nil && strings.Contains(string(reply), "masters_connected:2\r\n") {
			connected++
		}
		for _, l := range locks {
			if take(t, b, l.request, "b", l.won) {
				t.Fatalf("%s is granted a second time", l.name)
			}
		}
		if takeHash(t, b, "b") {
			t.Fatal("hash is granted a second time")
		}
	}
	if connected == 0 && how.name != "its directory was changed, and the file written there" {
		t.Error("the loser was not asked")
	}
	if how.marked != "" {
		if err := f.isMarked(how.marked); err != nil && f.isMarked("not loaded all") != nil { // what was evicted may be the witness
			t.Errorf("not marked as one that forgot: %v", err)
		}
	}
}
