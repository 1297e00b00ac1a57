package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// A durable deployment is of masters that write everything to disk before they answer, and have one file of users.
type durableDeployment struct {
	masters []*harness.Redis
	addrs   []string // with the login of a proxy
	users   string   // the file
}

// startDurable starts masters with a default user of these rules.
func startDurable(t *testing.T, n int, rules string) *durableDeployment {
	t.Helper()
	d := &durableDeployment{users: filepath.Join(t.TempDir(), "users.acl")}
	d.setDefault(t, rules)
	d.masters = startMasters(t, n, "--appendonly", "yes", "--appendfsync", "always", "--aclfile", d.users)
	for _, m := range d.masters {
		d.addrs = append(d.addrs, "redis://locks:opensesame@"+m.Addr)
	}
	return d
}

// setDefault sets what the default user may do from the next start on.
func (d *durableDeployment) setDefault(t *testing.T, rules string) {
	t.Helper()
	text := "user default " + rules + "\nuser locks on >opensesame ~* &* +@all\n"
	if err := os.WriteFile(d.users, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start starts all masters, which were killed.
func (d *durableDeployment) start(t *testing.T) {
	t.Helper()
	for _, m := range d.masters {
		if err := m.StartAgain(); err != nil {
			t.Fatal(err)
		}
	}
}

// launch starts a proxy, and does not wait until it has a quorum. It is killed at the end.
func (d *durableDeployment) launch(t *testing.T) *harness.Proxy {
	t.Helper()
	p, err := harness.LaunchProxy(proxyBinary, d.addrs, patient()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// met waits until the proxy has met so many masters.
func met(t *testing.T, c *harness.Conn, n int) {
	t.Helper()
	eventually(t, progressMax, fmt.Sprintf("%d masters are there", n), func() error {
		reply, err := c.Do("INFO", "lockproxy")
		if want := fmt.Sprintf("masters_connected:%d\r\n", n); err == nil && !strings.Contains(string(reply), want) {
			err = fmt.Errorf("no %q in %s", want, reply)
		}
		return err
	})
}

const hashLock = "if redis.call('exists', KEYS[1]) == 0 then redis.call('hincrby', KEYS[1], ARGV[2], 1) " +
	"redis.call('pexpire', KEYS[1], ARGV[1]) return nil end return redis.call('pttl', KEYS[1])"

// locks are ways to take a lock: what a client is told that gets it. $ is the client's token.
var locks = []struct{ name, request, won string }{
	{"plain", "SET plain $ NX PX 600000", "+OK"},
	{"fenced", "LOCK fenced 600000 TOKEN $", "*6"},
	{"watched", "MULTI|SET watched $ NX PX 600000|SET beside $ PX 600000|EXEC", "*2\r\n+OK"},
}

// take sends what takes a lock, and says whether the client has it.
func take(t *testing.T, c *harness.Conn, request, token, won string) bool {
	t.Helper()
	var reply []byte
	for _, part := range strings.Split(strings.ReplaceAll(request, "$", token), "|") {
		var err error
		if reply, err = c.Do(strings.Fields(part)...); err != nil {
			t.Fatal(err)
		}
	}
	return strings.HasPrefix(string(reply), won)
}

// takeHash is take for a lock that is a hash.
func takeHash(t *testing.T, c *harness.Conn, token string) bool {
	t.Helper()
	reply, err := c.Do("EVAL", hashLock, "1", "hash", "600000", token)
	if err != nil {
		t.Fatal(err)
	}
	return string(reply) == "$-1\r\n"
}

// Before version 8.6, Redis does not load a transaction of its append-only file for which its default user lacks permissions, and a
// script that writes more than once stands there as one.
func TestNoLockIsGrantedTwiceWhereMastersDoNotLoadAll(t *testing.T) {
	for _, c := range []struct {
		rules string
		safe  bool // on every version
	}{
		{"off", false},
		{"off ~* &* +@all", true},
		{"on >secret ~* &* +@all", true},
		{"on nopass ~cache:* &* +@all", false},
		{"on nopass ~* &* +@all -pexpireat -del -hincrby", false},
		{"on nopass ~* &* +@all -hincrby", false},
		{"on nopass ~* &* +@all -set", false},
		{"on nopass ~lockproxy:* &* +@all", false},
		{"on nopass -@all (~cache:* +@all)", false}, // a selector; of version 7
	} {
		t.Run(c.rules, func(t *testing.T) {
			if strings.Contains(c.rules, "(") && strings.Contains(harness.MasterServer(0), "redis-6") {
				t.Skip("this version has no selectors")
			}
			d := startDurable(t, 3, c.rules)
			proxy := startProxy(t, d.addrs)
			a, b := dial(t, proxy.Addr), dial(t, proxy.Addr)
			for _, l := range locks {
				if !take(t, a, l.request, "a", l.won) {
					t.Fatalf("%s is not granted", l.name)
				}
			}
			if !takeHash(t, a, "a") {
				t.Fatal("hash is not granted")
			}
			for _, m := range d.masters {
				m.Kill()
			}
			met(t, b, 0)
			d.start(t)
			met(t, b, len(d.masters))
			if c.safe {
				eventually(t, progressMax, "all masters vote", func() error { return allClean(b, len(d.masters)) })
			}
			for _, l := range locks {
				if take(t, b, l.request, "b", l.won) {
					t.Errorf("%s is granted a second time", l.name)
				}
			}
			if takeHash(t, b, "b") {
				t.Error("hash is granted a second time")
			}
		})
	}
}

// Nothing in INFO tells what was not loaded once an operator has reset the statistics. What a rewrite of the file has made its base is
// loaded whatever the default user may do, and what was granted after that is not.
func TestNoLockIsGrantedTwiceWhereStatisticsWereReset(t *testing.T) {
	for _, rewritten := range []bool{false, true} {
		t.Run(fmt.Sprintf("rewritten=%v", rewritten), func(t *testing.T) {
			d := startDurable(t, 3, "on nopass ~* &* +@all")
			if rewritten && majorOf(t, d.masters[0]) < 7 {
				t.Skip("this version has one file, and loads all of it")
			}
			first := d.launch(t)
			a := dial(t, first.Addr)
			allVote(t, a, d.masters)
			if rewritten {
				direct(t, d.masters, "BGREWRITEAOF")
				for _, m := range d.masters {
					eventually(t, progressMax, "there is a witness beside the new base", func() error { return hasLateWitness(m) })
				}
			}
			if !take(t, a, "LOCK fenced 600000 TOKEN $", "a", "*6") {
				t.Fatal("not granted")
			}
			first.Kill()
			for _, m := range d.masters {
				m.Kill()
			}
			d.setDefault(t, "on nopass ~* &* +@all -set")
			d.start(t)
			direct(t, d.masters, "CONFIG", "RESETSTAT")
			b := dial(t, d.launch(t).Addr)
			met(t, b, len(d.masters))
			if take(t, b, "LOCK fenced 600000 TOKEN $", "b", "*6") {
				t.Error("granted a second time")
			}
		})
	}
}

// hasLateWitness returns nil if the master's witness stands in what it has written since its file was rewritten.
func hasLateWitness(m *harness.Redis) error {
	written, err := os.ReadFile(filepath.Join(m.Dir(), "appendonlydir", "appendonly.aof.2.incr.aof"))
	if err == nil && !strings.Contains(string(written), "lockproxy:witness") {
		err = fmt.Errorf("%s: no witness in %d bytes", m.Addr, len(written))
	}
	return err
}

// Whatever lockproxy's user is permitted to ask, check and init name masters that do not load everything, and what to set.
func TestCheckNamesMastersThatDoNotLoadAll(t *testing.T) {
	rules := []struct {
		text  string
		lacks bool
	}{
		{"off", true}, {"off ~* &* +@all", false}, {"on >secret ~* &* +@all", false}, {"on nopass ~cache:* &* +@all", true},
		{"on nopass ~* &* +@all -hincrby", true},
	}
	asks := []struct {
		may  string
		told bool
	}{
		{"+@all", true}, {"+@all -acl +acl|getuser", true}, {"+@all -acl +acl|list", true}, {"+@all -acl", false},
	}
	for _, rule := range rules {
		d := startDurable(t, 1, rule.text)
		if v := harness.MasterServer(0); strings.Contains(v, "redis-6") || strings.Contains(v, "redis-8") || strings.Contains(v, "valkey") {
			t.Skip("this version loads everything")
		}
		for _, ask := range asks {
			login(t, d, "ACL SETUSER asker reset on >opensesame ~* &* "+ask.may)
			addr := strings.Replace(d.addrs[0], "locks", "asker", 1)
			for _, command := range [][]string{{"init", "--yes"}, append([]string{"check"}, patient()...)} {
				_, out, err := harness.RunProxy(proxyBinary, append(command, "--masters", addr)...)
				if err != nil {
					t.Fatal(err)
				}
				forgets := rule.lacks && ask.told
				for text, want := range map[string]bool{
					"\nThe default user may not run ":                 forgets,
					"\nNothing tells what the default user may do at": !ask.told,
					" votes; forgets locks at a restart":              forgets && command[0] == "check",
					"set `user default off ~* &* +@all`":              forgets || !ask.told,
				} {
					if strings.Contains(out, text) != want {
						t.Errorf("default user %s, asked with %s: %q is there: %v\n%s", rule.text, ask.may, text, !want, out)
					}
				}
			}
		}
	}
}

// login runs a command on the only master as its user.
func login(t *testing.T, d *durableDeployment, command string) {
	t.Helper()
	c := dial(t, d.masters[0].Addr)
	expect(t, c, "+OK\r\n", "AUTH", "locks", "opensesame")
	expect(t, c, "+OK\r\n", strings.Fields(command)...)
}

// Before version 7, Redis answers before it has written to disk where a script runs for longer than lua-time-limit.
func TestAMasterThatAnswersBeforeItWritesIsNotTakenForDurable(t *testing.T) {
	d := startDurable(t, 3, "on nopass ~* &* +@all")
	c := dial(t, startProxy(t, d.addrs).Addr)
	allVote(t, c, d.masters)
	for _, step := range []struct {
		limit string
		safe  bool
	}{{"5000", true}, {"50", majorOf(t, d.masters[0]) >= 7}, {"0", true}} {
		direct(t, d.masters, "CONFIG", "SET", "lua-time-limit", step.limit)
		eventually(t, progressMax, "the canary says so", func() error {
			canary, err := d.masters[0].Do(0, "GET", "lockproxy:canary")
			if durable := strings.Contains(string(canary), " durable "); err == nil && durable != step.safe {
				err = fmt.Errorf("lua-time-limit %s: %s", step.limit, canary)
			}
			return err
		})
		_, out, err := harness.RunProxy(proxyBinary, append([]string{"check", "--masters", strings.Join(d.addrs, ",")}, patient()...)...)
		if said := strings.Contains(out, "lua-time-limit is "+step.limit+" ms"); err != nil || said == step.safe {
			t.Errorf("lua-time-limit %s: %v\n%s", step.limit, err, out)
		}
	}
}
