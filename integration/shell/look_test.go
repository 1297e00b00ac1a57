package shell

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// fill takes locks of several sorts: with a fence, without, waited for, in a hash, with a name that would move a cursor.
func fill(t *testing.T, p *harness.Proxy) {
	t.Helper()
	c := dial(t, p.Addr)
	for _, request := range [][]string{
		{"CLIENT", "SETNAME", "filler"}, {"CLIENT", "SETINFO", "LIB-NAME", "redis-py"}, {"CLIENT", "SETINFO", "LIB-VER", "5.0.1"},
		{"LOCK", "job:7", "600000", "TOKEN", "worker-a"},
		{"SET", "job:8", "worker-b", "NX", "PX", "600000"},
		{"EVAL", "redis.call('hset',KEYS[1],ARGV[2],1) redis.call('pexpire',KEYS[1],ARGV[1]) return 1", "1", "hash", "600000", "0"},
		{"SET", "evil\x1b[2J\n", "x", "NX", "PX", "600000"},
	} {
		if reply, err := c.Do(request...); err != nil || reply[0] == '-' || reply[0] == '_' {
			t.Fatalf("%q: %q, %v", request, reply, err)
		}
	}
	waiter := dial(t, p.Addr)
	if err := waiter.Send(harness.Encode(nil, "LOCK", "job:8", "1000", "WAIT", "600000")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a client waits", func() error {
		if reply, err := c.Do("INFO", "lockproxy"); err != nil || !strings.Contains(string(reply), "\r\nwaiting:1\r\n") {
			return fmt.Errorf("%q, %v", reply, err)
		}
		return nil
	})
}

// lines are those of a table, with single spaces.
func lines(out string) []string {
	var all []string
	for line := range strings.Lines(out) {
		all = append(all, strings.Join(strings.Fields(line), " "))
	}
	return all
}

func TestLocksShowsWhoHoldsWhat(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, masters)
	fill(t, p)
	code, out := ends(t, nil, "locks", "--proxy", p.Addr)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for i, want := range []string{"KEY HOLDER AGE TTL WAITERS FENCE TYPE CLIENT NAME USER LIBRARY", `"evil\x1b[2J\n" x - 9m59s 0 - string 127.0.0.1:`, "hash - - 9m59s 0 - hash 127.0.0.1:",
		"job:7 worker-a ", "job:8 worker-b - 9m59s 1 - string 127.0.0.1:"} {
		got := strings.ReplaceAll(lines(out)[i], "10m0s", "9m59s")
		if !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !strings.HasSuffix(lines(out)[4], " filler default redis-py 5.0.1") {
		t.Errorf("who holds job:8: %q", lines(out)[4])
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("a name moves the cursor: %q", out)
	}
	for _, c := range []struct {
		args []string
		keys string
		says string
	}{
		{[]string{"job:*"}, "job:7 job:8", ""},
		{[]string{"--count", "1", "job:*"}, "1", "there may be more than these 1; name a pattern, or raise --count"},
		{[]string{"none*"}, "", ""},
		{[]string{"--db", "3"}, "", ""},
	} {
		code, out := ends(t, nil, append([]string{"locks", "--proxy", p.Addr}, c.args...)...)
		var keys []string
		for _, line := range lines(out)[1:] {
			if key, _, _ := strings.Cut(line, " "); !strings.HasPrefix(line, "lockproxy: ") {
				keys = append(keys, key)
			}
		}
		got := strings.Join(keys, " ")
		if c.keys == "1" {
			got = fmt.Sprint(len(keys))
		}
		if code != 0 || got != c.keys || !strings.Contains(out, c.says) || c.says == "" && strings.Contains(out, "lockproxy: ") {
			t.Errorf("%q: exit code %d: %s", c.args, code, out)
		}
	}
	var told struct {
		Complete bool
		Locks    []struct {
			Key, Type       string
			Token           *string
			Fence, Age_ms   *int64
			TTL_ms, Waiters int64
		}
	}
	code, out = ends(t, nil, "locks", "--json", "job:*", "--proxy", p.Addr)
	if err := json.Unmarshal([]byte(out), &told); err != nil || code != 0 || !told.Complete || len(told.Locks) != 2 {
		t.Fatalf("%v, exit code %d: %s", err, code, out)
	}
	if l := told.Locks[0]; *l.Token != "worker-a" || l.Fence == nil || l.Age_ms == nil || *l.Age_ms > 60_000 || l.TTL_ms < 500_000 || l.Waiters != 0 {
		t.Errorf("got %s", out)
	}
	if l := told.Locks[1]; l.Fence != nil || l.Age_ms != nil || l.Waiters != 1 {
		t.Errorf("got %s", out)
	}
}

func TestLooksThatFailSayWhy(t *testing.T) {
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	absent := fmt.Sprint("127.0.0.1:", port)
	startMasters(t, 1) // for the binary
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"locks", "--proxy", absent}, 69, "lockproxy: locks: " + absent + " connection refused\n"},
		{[]string{"status", "--proxy", absent}, 69, absent + "  connection refused\n"},
		{[]string{"top", "--times", "1", "--proxy", absent}, 0, "connection refused"},
		{[]string{"locks", "a", "b"}, 64, "lockproxy: locks: b: is one word too many; see lockproxy locks --help\n"},
		{[]string{"status", "a"}, 64, "a: is one word too many"},
		{[]string{"top", "--sort", "size"}, 64, `--sort: "size" is none of waiters, refused, age, ttl, key`},
		{[]string{"locks", "--count", "1001"}, 64, `--count: "1001" is no number from 1 to 1000`},
		{[]string{"lokcs"}, 2, "lokcs is no command; did you mean locks?"},
	} {
		if code, out := ends(t, nil, c.args...); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%q: exit code %d: %s", c.args, code, out)
		}
	}
}

// status says which masters vote, and why others do not, of each proxy.
func TestStatusShowsTheMasters(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, masters)
	code, out := ends(t, nil, "status", "--proxy", p.Addr)
	if all := lines(out); code != 0 || !strings.HasPrefix(all[0], p.Addr+" locks can be had: 3 of 3 masters vote, 2 needed.") || !strings.HasPrefix(all[3], masters[0].Addr+" clean ") {
		t.Errorf("exit code %d: %s", code, out)
	}
	masters[0].Kill()
	eventually(t, "it shows that a master is gone", func() error {
		code, out := ends(t, nil, "status", "--json", "--proxy", p.Addr)
		var is struct {
			Masters_clean, Quorum int
			Masters               []struct{ Addr, State, Cause string }
			Counters              map[string]int64
		}
		err := json.Unmarshal([]byte(out), &is)
		if err != nil || code != 0 || is.Masters_clean != 2 || is.Quorum != 2 || is.Masters[0].State != "disconnected" || is.Masters[0].Cause == "" {
			return fmt.Errorf("%v, exit code %d: %s", err, code, out)
		}
		return nil
	})
	masters[1].Kill()
	eventually(t, "it says that there is no quorum", func() error {
		code, out := ends(t, nil, "status", "--proxy", p.Addr)
		if code != 69 || !strings.Contains(out, "NO QUORUM: 1 of 3 masters vote, 2 needed") || !strings.Contains(out, "disconnected") {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		return nil
	})
}

// check --wait ends when the master that was restarted votes again, and not before.
func TestCheckWaitsUntilEveryMasterVotes(t *testing.T) {
	masters := startMasters(t, 3)
	startProxy(t, masters)
	list := strings.Join(harness.Addrs(masters), ",")
	if code, out := ends(t, nil, "check", "--masters", list, "--wait", "1m"); code != 0 || strings.Contains(out, "waiting") {
		t.Fatalf("exit code %d: %s", code, out)
	}
	if err := masters[2].Pause(); err != nil {
		t.Fatal(err)
	}
	if code, out := ends(t, nil, "check", "--masters", list, "--wait", "1s"); code != 1 || !strings.Contains(out, "2 of 3 masters could vote, 2 needed.") {
		t.Errorf("exit code %d: %s", code, out)
	}
	s := start(t, nil, "check", "--masters", list, "--wait", "5m", "--json")
	eventually(t, "it waits", func() error {
		if !strings.Contains(s.output(), "lockproxy: check: 2 of 3 masters vote; waiting\n") {
			return fmt.Errorf("%s", s.output())
		}
		return nil
	})
	select {
	case <-s.done:
		t.Fatalf("it has ended: %s", s.output())
	case <-time.After(10 * time.Millisecond):
	}
	if err := masters[2].Resume(); err != nil {
		t.Fatal(err)
	}
	code := s.exit(t)
	_, object, _ := strings.Cut(s.output(), "\n")
	var found struct {
		OK             bool
		Voters, Needed int
		Masters        []struct {
			Addr, Verdict string
			Votes         bool
		}
		Notes []string
	}
	if err := json.Unmarshal([]byte(object), &found); err != nil || code != 0 || !found.OK || found.Voters != 3 || found.Needed != 2 || found.Masters[2].Verdict != "votes" {
		t.Errorf("%v, exit code %d: %s", err, code, s.output())
	}
}

func TestCheckOfTheSettingsAloneAsksNobody(t *testing.T) {
	startMasters(t, 1) // for the binary
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--masters 192.0.2.1:1,192.0.2.2:1,192.0.2.3:1", 0, "The settings can be used: 3 masters, 2 needed. Nobody was asked.\n"},
		{"--masters 192.0.2.1:1,192.0.2.2:1,192.0.2.3:1 --json", 0, `"needed":2,"ok":true`},
		{"", 0, "They name no masters: three embedded ones would serve"},
		{"--audit-log /nowhere/audit.log", 2, "audit_log: stat /nowhere: no such file or directory; make that directory, or name a file elsewhere\n"},
		{"--masters 192.0.2.1:1 --grace x", 2, `--grace: "x" is no duration`},
		{"--masters rediss://192.0.2.1:1 --master-tls-ca /nowhere", 2, "/nowhere"},
		{"--masters 192.0.2.1:1 --wait", 2, "--wait: has no value; write --wait duration\n"},
	} {
		begun := time.Now()
		args := append([]string{"check", "--config-only"}, strings.Fields(c.args)...)
		if code, out := ends(t, nil, args...); code != c.code || !strings.Contains(out, c.says) || time.Since(begun) > progressMax/2 {
			t.Errorf("%q: exit code %d after %v: %s", c.args, code, time.Since(begun), out)
		}
	}
}

// Where the output is no terminal, top prints looks below each other, or objects in lines.
func TestTopWithoutATerminal(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, masters)
	fill(t, p)
	code, out := ends(t, nil, "top", "--proxy", p.Addr, "--times", "2", "--every", "200ms")
	if code != 0 || strings.Count(out, "PROXY ") != 2 || strings.Count(out, "acquired 0.0/s") != 1 || strings.Contains(out, "\x1b") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if first, second := strings.Index(out, "\njob:8"), strings.Index(out, "\njob:7"); first < 0 || second < first {
		t.Errorf("who is waited for does not come first: %s", out)
	}
	code, out = ends(t, nil, "top", "job:*", "--proxy", p.Addr, "--times", "2", "--every", "200ms", "--json", "--sort", "age")
	objects := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(objects) != 2 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for _, object := range objects {
		var look struct {
			Proxies []struct{ Masters_clean int }
			Found   struct{ Locks []struct{ Key string } }
		}
		if err := json.Unmarshal([]byte(object), &look); err != nil || look.Proxies[0].Masters_clean != 3 || len(look.Found.Locks) != 2 {
			t.Errorf("%v: %s", err, object)
		}
	}
}

// contend has a key with control characters refused often, and the key warm refused once and waited for.
func contend(t *testing.T, p *harness.Proxy) {
	t.Helper()
	c := dial(t, p.Addr)
	for _, key := range []string{"warm", "hot\x1b[2J\n"} {
		for range 2 + 5*strings.Count(key, "hot") {
			if reply, err := c.Do("SET", key, "me", "NX", "PX", "600000"); err != nil || reply[0] == '-' {
				t.Fatalf("%q, %v", reply, err)
			}
		}
	}
	if reply, err := c.Do("LOCK", "warm", "60000", "WAIT", "300"); err != nil || reply[0] == '-' {
		t.Fatalf("%q, %v", reply, err)
	}
}

// top adds up the hottest keys of all proxies, and sorts the locks by refusals.
func TestTopShowsTheHottestKeys(t *testing.T) {
	masters := startMasters(t, 3)
	one, two := startProxy(t, masters), startProxy(t, masters)
	both := one.Addr + "," + two.Addr
	if _, out := ends(t, nil, "top", "--proxy", both, "--times", "1"); strings.Contains(out, "/MIN") {
		t.Errorf("there are hot keys before anybody contends: %s", out)
	}
	contend(t, one)
	contend(t, two)
	type hottest struct {
		Refused []struct {
			Key       string
			DB        int
			PerMinute float64 `json:"per_minute"`
		} `json:"hot_refused"`
		Waited []struct{ Key string } `json:"hot_waited"`
	}
	var look struct {
		hottest
		Proxies []hottest
		Found   struct{ Locks []struct{ Key string } }
	}
	_, out := ends(t, nil, "top", "--proxy", both, "--times", "1", "--json")
	if err := json.Unmarshal([]byte(out), &look); err != nil || len(look.Refused) != 2 || len(look.Waited) != 1 || len(look.Proxies) != 2 || len(look.Proxies[1].Refused) != 2 {
		t.Fatalf("%v: %s", err, out)
	}
	hot, parts := look.Refused[0], look.Proxies[0].Refused[0].PerMinute+look.Proxies[1].Refused[0].PerMinute
	if hot.Key != "hot\x1b[2J\n" || hot.DB != 0 || hot.PerMinute < 5 || hot.PerMinute > parts+0.001 || hot.PerMinute < parts-0.001 || look.Waited[0].Key != "warm" {
		t.Errorf("it tells %+v, of %+v", look.hottest, look.Proxies)
	}
	_, out = ends(t, nil, "top", "--proxy", both, "--times", "1", "--sort", "refused")
	if list, locks := strings.Index(out, "REFUSED/MIN"), strings.Index(out, "KEY "); list < 0 || !strings.Contains(out, "WAITED S/MIN") ||
		strings.Contains(out, "\x1b") || !strings.Contains(out[locks:], "\n\"hot\\x1b[2J\\n\"  me") || strings.Index(out, "\n\"hot") > strings.Index(out, "\nwarm") {
		t.Errorf("it prints %s", out)
	}
}
