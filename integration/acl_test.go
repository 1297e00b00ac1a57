package integration

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockproxy/integration/harness"
	"lockproxy/quorum/masters"
)

// documentedRules reads from docs/deploying.md what lockproxy's user on the masters needs.
func documentedRules(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^user lockproxy on >\S+ (.*?)(?: \+acl\|dryrun)?$`).FindSubmatch(text) // acl|dryrun: only with AOF
	if found == nil {
		t.Fatal("docs/deploying.md does not say what lockproxy's user on the masters needs")
	}
	return strings.Fields(string(found[1]))
}

// restrict makes a user on every master, and returns the addresses that a proxy logs in with.
func restrict(t *testing.T, masters []*harness.Redis, rules ...string) []string {
	t.Helper()
	var addrs []string
	for _, m := range masters {
		addrs = append(addrs, "redis://locks:opensesame@"+m.Addr)
		known := rules
		if majorOf(t, m) < 7 {
			known = slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return rule == "+pexpiretime" })
		}
		direct(t, []*harness.Redis{m}, append([]string{"ACL", "SETUSER", "locks", "reset", "on", ">opensesame"}, known...)...)
	}
	return addrs
}

var deniedObject = regexp.MustCompile(`object\r\n\$\d+\r\n(.*?)\r\n`)

// denials lists what the masters refused to run.
func denials(t *testing.T, masters []*harness.Redis) []string {
	t.Helper()
	var all []string
	for _, m := range masters {
		reply, err := m.Do(0, "ACL", "LOG")
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range deniedObject.FindAllStringSubmatch(string(reply), -1) {
			all = append(all, found[1])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// useAll has the proxy do everything that it does on masters.
func useAll(t *testing.T, proxy *harness.Proxy, masters []*harness.Redis) {
	t.Helper()
	c := dial(t, proxy.Addr)
	allVote(t, c, masters)
	expect(t, c, "+OK\r\n", "SET", "k", "me", "NX", "PX", "60000")
	expect(t, c, "$2\r\nme\r\n", "SET", "k", "you", "NX", "GET", "PX", "60000")
	expect(t, c, "$2\r\nme\r\n", "GET", "k")
	expect(t, c, ":1\r\n", "PEXPIRE", "k", "30000")
	expect(t, c, ":1\r\n", "EVAL", compareAndExpire, "1", "k", "me", "60000")
	expect(t, c, "+OK\r\n", "SET", "k", "me2", "XX", "KEEPTTL")
	expect(t, c, "$3\r\nme2\r\n", "SET", "k", "me", "GET")
	expect(t, c, "$2\r\nme\r\n", "EVAL", `return redis.call('get', KEYS[1])`, "1", "k")
	expect(t, c, ":1\r\n", "EVAL", compareAndDelete, "1", "k", "me")

	expect(t, c, "+OK\r\n", "SET", "long", strings.Repeat("v", 5000), "PX", "60000")
	expect(t, c, ":1\r\n", "EXISTS", "long")
	expect(t, c, "$2\r\nvv\r\n", "GETRANGE", "long", "0", "1")
	expect(t, c, ":1\r\n", "DEL", "long")

	_, fence := takeFenced(t, proxy, "fenced")
	expect(t, c, ":1\r\n", "FENCE", "fenced", strconv.FormatInt(fence, 10))

	direct(t, masters, "HSET", "hash", "f", "v")
	expect(t, c, "+hash\r\n", "TYPE", "hash")
	for _, request := range []string{"HGET hash f", "HMGET hash f", "HGETALL hash", "HEXISTS hash f", "HLEN hash",
		"HSTRLEN hash f", "HKEYS hash", "HVALS hash", "OBJECT ENCODING hash"} {
		if reply, err := c.Do(strings.Fields(request)...); err != nil || reply[0] == '-' {
			t.Errorf("%s: %q, %v", request, reply, err)
		}
	}
	expect(t, c, "$-1\r\n", "GETSET", "legacy", "1")
	expect(t, c, "$1\r\n1\r\n", "GETEX", "legacy", "EX", "30")
	expect(t, c, "$1\r\n1\r\n", "GETDEL", "legacy")
	expect(t, c, ":1\r\n", "DEL", "hash")
	direct(t, masters, "HSET", "hash", "f", "v")
	expect(t, c, ":1\r\n", "FORCEUNLOCK", "hash")
	for kind, request := range map[string]string{"set": "SADD set m", "list": "RPUSH list m", "zset": "ZADD zset 1 m"} {
		direct(t, masters, strings.Fields(request)...)
		expect(t, c, "+"+kind+"\r\n", "TYPE", kind)
		expect(t, c, ":1\r\n", "DEL", kind)
	}

	// Somebody else has two masters, so the vote of the third one is undone.
	direct(t, masters[:2], "SET", "undone", "other", "PX", "60000")
	expect(t, c, "$-1\r\n", "SET", "undone", "me", "NX", "PX", "60000")
	eventually(t, cleanMax, "the vote is undone", func() error { return keysLeft(masters[2:]...) })
	direct(t, masters[:2], "DEL", "undone")

	// The masters disagree, so what the script did there is put back. It sets another end than the key has: else it would be let be.
	const swap = `local v = redis.call('get', KEYS[1]) redis.call('set', KEYS[1], 'x', 'px', 50000) return {v}`
	eventually(t, progressMax, "a script that all masters disagree on", func() error {
		for i, m := range masters {
			direct(t, []*harness.Redis{m}, "SET", "torn", string(rune('a'+i)), "PX", "60000")
		}
		reply, err := c.Do("EVAL", swap, "1", "torn")
		if err != nil || strings.Count(string(reply), " answered ") != len(masters) {
			return fmt.Errorf("%q, %v", reply, err)
		}
		return nil
	})
	direct(t, masters, "DEL", "torn")

	expect(t, c, "+OK\r\n", "SET", "held", "me", "NX", "PX", "5000")
	if reply, err := c.Do("LOCKS"); err != nil || !strings.Contains(string(reply), "\r\nheld\r\n") {
		t.Errorf("LOCKS: %q, %v", reply, err)
	}
	expect(t, c, ":1\r\n", "DEL", "held")

	listenAndSpeak(t, proxy)
}

// listenAndSpeak subscribes, and publishes to itself.
func listenAndSpeak(t *testing.T, proxy *harness.Proxy) {
	t.Helper()
	reader, writer := dial(t, proxy.Addr), dial(t, proxy.Addr)
	expect(t, reader, "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n", "SUBSCRIBE", "news")
	expect(t, reader, "*3\r\n$10\r\npsubscribe\r\n$2\r\nn*\r\n:2\r\n", "PSUBSCRIBE", "n*")
	expect(t, writer, ":2\r\n", "PUBLISH", "news", "hello")
	for range 2 {
		if _, err := reader.Reply(); err != nil {
			t.Fatal(err)
		}
	}
	for _, request := range [][]string{{"PUBSUB", "NUMSUB", "news"}, {"PUBSUB", "CHANNELS"}, {"PUBSUB", "NUMPAT"}} {
		if reply, err := writer.Do(request...); err != nil || reply[0] == '-' {
			t.Errorf("%q: %q, %v", request, reply, err)
		}
	}
	expect(t, reader, "*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n:1\r\n", "UNSUBSCRIBE", "news")
	expect(t, reader, "*3\r\n$12\r\npunsubscribe\r\n$2\r\nn*\r\n:0\r\n", "PUNSUBSCRIBE", "n*")
}

func TestTheDocumentedUserIsEnoughAndNoMore(t *testing.T) {
	masters := startMasters(t, 3)
	rules := documentedRules(t)
	addrs := restrict(t, masters, rules...)
	proxy := startProxy(t, addrs)
	useAll(t, proxy, masters)
	runs := func(command string, flags ...string) {
		code, out, err := harness.RunProxy(proxyBinary, append([]string{command, "--masters", strings.Join(addrs, ",")}, flags...)...)
		if err != nil || code != 0 || strings.Contains(out, "may not run") || strings.Contains(out, "Without ") {
			t.Errorf("%s: exit code %d, %v\n%s", command, code, err, out)
		}
	}
	runs("check", patient()...) // which tries them all, so what it runs does not count
	direct(t, masters, "CONFIG", "RESETSTAT")
	direct(t, masters, "CLIENT", "KILL", "USER", "locks")
	useAll(t, proxy, masters)
	runs("init", "--yes")
	if got := denials(t, masters); len(got) > 0 {
		t.Errorf("not permitted: %q", got)
	}
	if majorOf(t, masters[0]) < 7 {
		return // it does not count subcommands, nor know all of these commands
	}
	eventually(t, cleanMax, "what is permitted is run", func() error {
		stats, err := masters[0].Do(0, "INFO", "commandstats")
		for _, rule := range rules {
			if name, isCommand := strings.CutPrefix(rule, "+"); isCommand && !strings.Contains(string(stats), "cmdstat_"+name+":") {
				err = errors.Join(err, fmt.Errorf("%s is not needed", rule))
			}
		}
		return err
	})
}

// FORCEUNLOCK reads the token for the audit log. A lock goes also where the masters do not permit to read the lock.
func TestForceUnlockNeedsNoPermissionToRead(t *testing.T) {
	masters := startMasters(t, 3)
	rules := slices.DeleteFunc(documentedRules(t), func(r string) bool { return slices.Contains([]string{"+getrange", "+hlen", "+hkeys"}, r) })
	c := dial(t, startProxy(t, restrict(t, masters, rules...)).Addr)
	allVote(t, c, masters)
	expect(t, c, "+OK\r\n", "SET", "k", "me", "NX", "PX", "60000")
	direct(t, masters, "HSET", "hash", "f", "v")
	expect(t, c, ":1\r\n", "FORCEUNLOCK", "k")
	expect(t, c, ":1\r\n", "FORCEUNLOCK", "hash")
}

// Whether a master tells exactly when a key expires is tried, not told by its version.
func TestWhetherAMasterTellsExpiriesIsTried(t *testing.T) {
	servers := startMasters(t, 1)
	for _, may := range []bool{true, false} {
		rules := slices.DeleteFunc(documentedRules(t), func(r string) bool { return !may && r == "+pexpiretime" })
		m, err := masters.NewRedis(restrict(t, servers, rules...)[0], masters.RedisOptions{})
		if err != nil {
			t.Fatal(err)
		}
		info, err := m.Probe(t.Context())
		if want := may && majorOf(t, servers[0]) >= 7; err != nil || info.TellsExpiry != want {
			t.Errorf("permitted %v: %v, %v, want %v", may, info.TellsExpiry, err, want)
		}
	}
}

// votersNeed are the rules without which a master is no voter.
var votersNeed = strings.Fields("~* +select +time +script|load +eval +evalsha +set +get +mget +del +exists +type +pttl +pexpire +pexpireat")

func TestCheckNamesEveryMissingPermission(t *testing.T) {
	masters := startMasters(t, 1)
	all := documentedRules(t)
	addr := restrict(t, masters, all...)[0]
	if code, out, err := harness.RunProxy(proxyBinary, "init", "--yes", "--masters", addr); err != nil || code != 0 {
		t.Fatalf("init: exit code %d, %v\n%s", code, err, out)
	}
	before, err := masters[0].Do(0, "DBSIZE")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range all {
		if (rule == "+pexpiretime" || rule == "&*") && majorOf(t, masters[0]) < 7 { // the one is unknown there, the other given
			continue
		}
		restrict(t, masters, slices.DeleteFunc(slices.Clone(all), func(r string) bool { return r == rule })...)
		code, out, err := harness.RunProxy(proxyBinary, append([]string{"check", "--masters", addr}, patient()...)...)
		name := strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(rule, "+"), "|", " "))
		if !strings.HasPrefix(rule, "+") {
			name = "commands on all "
		}
		needed := slices.Contains(votersNeed, rule)
		cannot := strings.Contains(out, "cannot vote: may not run "+name)
		if err != nil || needed != (code == 1) || needed != cannot || needed != strings.Contains(out, "\n0 of 1 masters could vote") {
			t.Errorf("without %s: exit code %d, %v\n%s", rule, code, err, out)
		}
		if regexp.MustCompile(`(?m)^Without `+regexp.QuoteMeta(name)).FindString(out) == "" {
			t.Errorf("without %s, check does not name it:\n%s", rule, out)
		}
	}
	if after, err := masters[0].Do(0, "DBSIZE"); err != nil || string(after) != string(before) {
		t.Errorf("check changed the data: %q, before %q, %v", after, before, err)
	}
}

// A command that the configuration takes away from everybody is missed like one that the user may not run.
func TestCheckNamesCommandsThatAreRenamed(t *testing.T) {
	for command, votes := range map[string]bool{"TIME": false, "SCRIPT": false, "GET": false, "CLIENT": true, "PUBLISH": true, "DUMP": true} {
		masters, err := harness.StartRedises(1, "--rename-command", command, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { harness.StopAll(masters) })
		addr := masters[0].Addr
		if code, out, err := harness.RunProxy(proxyBinary, "init", "--yes", "--masters", addr); err != nil || code != 0 {
			t.Fatalf("init: exit code %d, %v\n%s", code, err, out)
		}
		code, out, err := harness.RunProxy(proxyBinary, append([]string{"check", "--masters", addr}, patient()...)...)
		if err != nil || votes != (code == 0) || !regexp.MustCompile(`(?m)^Without `+command).MatchString(out) {
			t.Errorf("without %s: exit code %d, %v\n%s", command, code, err, out)
		}
	}
}

// Keys that the user may not touch are missed where a client asks for them; the master votes on the others.
func TestCheckNamesKeysThatAreLeftOut(t *testing.T) {
	masters := startMasters(t, 1)
	rules := slices.DeleteFunc(documentedRules(t), func(r string) bool { return r == "~*" })
	addr := restrict(t, masters, append(rules, "~lockproxy:*", "~lock:*")...)[0]
	if code, out, err := harness.RunProxy(proxyBinary, "init", "--yes", "--masters", addr); err != nil || code != 0 {
		t.Fatalf("init: exit code %d, %v\n%s", code, err, out)
	}
	code, out, err := harness.RunProxy(proxyBinary, append([]string{"check", "--masters", addr}, patient()...)...)
	if err != nil || code != 0 || !strings.Contains(out, "votes; may not run commands on all keys (~*)") ||
		!strings.Contains(out, "locks with names that its key patterns leave out get no vote there") {
		t.Errorf("exit code %d, %v\n%s", code, err, out)
	}
}

// Commands that a careful operator may not want to permit. Each has a weaker way out.
func TestLockproxyDoesWithLess(t *testing.T) {
	for rule, name := range map[string]string{
		"+client|kill": "CLIENT KILL", "+info": "INFO", "+role": "ROLE", "+config|get": "CONFIG GET",
	} {
		t.Run(name, func(t *testing.T) {
			masters := startMasters(t, 3)
			rules := slices.DeleteFunc(documentedRules(t), func(r string) bool { return r == rule })
			addrs := restrict(t, masters, rules...)
			proxy := startProxy(t, addrs, "--ttl-max", "2s") // which is what a master may have to wait for without INFO
			c := dial(t, proxy.Addr)
			eventually(t, progressMax, "service", func() error { return lockedOnce(c) })
			direct(t, masters, "CLIENT", "KILL", "USER", "locks")
			eventually(t, progressMax, "service over other connections", func() error { return lockedOnce(c) })
			eventually(t, progressMax, "all masters vote", func() error { return allClean(c, len(masters)) })
			code, out, err := harness.RunProxy(proxyBinary, "check", "--masters", strings.Join(addrs, ","))
			if err != nil || code > 1 {
				t.Errorf("check: exit code %d, %v\n%s", code, err, out)
			}
			if !regexp.MustCompile(`(?m)^Without ` + name + ` at .+: .+\.$`).MatchString(out) {
				t.Errorf("check does not say what it costs:\n%s", out)
			}
			if got := denials(t, masters); len(got) == 0 {
				t.Error("nothing was denied: the rule is not in force")
			}
		})
	}
}

func lockedOnce(c *harness.Conn) error {
	for _, request := range [][]string{{"SET", "again", "me", "NX", "PX", "2000"}, {"EVAL", compareAndDelete, "1", "again", "me"}} {
		if reply, err := c.Do(request...); err != nil || reply[0] == '-' || reply[0] == '$' {
			return errors.Join(errors.New(string(reply)), err)
		}
	}
	return nil
}

// allClean returns nil if the proxy says that all n masters vote.
func allClean(c *harness.Conn, n int) error {
	reply, err := c.Do("INFO", "lockproxy")
	if got := strings.Count(string(reply), "state=clean"); err == nil && got != n {
		err = fmt.Errorf("%d of %d masters are clean", got, n)
	}
	return err
}
