package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/integration/harness"
	"lockproxy/quorum/masters"
)

// startRedis starts a real master and returns its address. Where there is none the test is skipped, or fails with
// LOCKPROXY_REQUIRE_REDIS=1.
func startRedis(t *testing.T, args ...string) string {
	t.Helper()
	return startServer(t, harness.MasterServer(0), args...)
}

func startServer(t *testing.T, program string, args ...string) string {
	t.Helper()
	bin, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("LOCKPROXY_REQUIRE_REDIS") == "1" {
			t.Fatal("redis-server is missing, and LOCKPROXY_REQUIRE_REDIS=1 demands it")
		}
		t.Skip("NOT RUN: redis-server is missing, so check was not tried against real masters")
	}
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	cmd := exec.Command(bin, append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "", "--loglevel", "warning",
	}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, "redis-server never listened", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return addr
}

// runCheck returns the exit code and what was printed.
func runCheck(args ...string) (int, string) { return runCommand("check", args...) }

func runCommand(name string, args ...string) (int, string) {
	var stdout, stderr bytes.Buffer
	code := run(append([]string{name}, args...), nil, &stdout, &stderr)
	return code, stdout.String() + stderr.String()
}

func TestCheckShowsEveryMaster(t *testing.T) {
	good := startRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	locked := startRedis(t, "--requirepass", "s3cr3t")
	other := startRedis(t)
	all := "redis://:s3cr3t@" + locked + "," + good + "," + other
	if code, out := runCheck("--masters", all); code != exitFailure || strings.Count(out, "no: new, or has lost its data: if no lock can be held, run lockproxy init; else start lockproxy, and wait for about ttl_max (1h0m0s)") != 3 {
		t.Errorf("before init: exit code %d\n%s", code, out)
	}
	if code, out := runCommand("init", "--masters", all, "--yes"); code != exitOK || !strings.HasSuffix(out, "\n3 masters are clean.\n") ||
		strings.Contains(out, "run lockproxy init") {
		t.Fatalf("init: exit code %d\n%s", code, out)
	}
	code, out := runCheck("--instance-timeout", "4s", "--masters", all)
	if code != exitOK || !strings.HasSuffix(out, "\n3 of 3 masters could vote, 2 needed.\n") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for _, want := range []string{
		`(?m)^MASTER +SERVER +ROLE +RUN ID +PERSISTENCE +MAXMEMORY +CLOCK +ROUND TRIP +VERDICT$`,
		`(?m)^` + regexp.QuoteMeta(good) + ` +(redis|valkey) [0-9.]+ +master +[0-9a-f]{8} +aof always +noeviction \(unlimited\) +[-+0-9.mµs]+ +[0-9.mµs]+ +votes$`,
		`(?m)^` + regexp.QuoteMeta(other) + ` +(redis|valkey) [0-9.]+ +master +[0-9a-f]{8} +no aof +noeviction \(unlimited\) `,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no line like %s in\n%s", want, out)
		}
	}
	if strings.Contains(out, "s3cr3t") {
		t.Errorf("a password shows:\n%s", out)
	}
}

// Looking at 16 databases of a master takes many round trips, of which master_dead_after is not the measure.
func TestCheckWaitsForAllDatabasesOfMastersFarAway(t *testing.T) {
	var all []string
	for range 3 {
		r, err := harness.StartRelay(startRedis(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Stop)
		r.Delay(harness.ToMaster, 20*time.Millisecond)
		all = append(all, r.Addr)
	}
	args := []string{"--masters", strings.Join(all, ","), "--dial-timeout", "800ms", "--master-dead-after", "800ms", "--grace", "1s"}
	if code, out := runCommand("init", append(args, "--yes")...); code != exitOK {
		t.Fatalf("init: exit code %d\n%s", code, out)
	}
	if code, out := runCheck(args...); code != exitOK {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// Only clients that use other databases need them.
func TestCheckKnowsAMasterWithFewerDatabases(t *testing.T) {
	few := startRedis(t, "--databases", "3")
	if code, out := runCommand("init", "--yes", "--masters", few); code != exitOK {
		t.Fatalf("init: %d\n%s", code, out)
	}
	for databases, want := range map[string]string{
		"3": " votes\n", "4": " votes; has no database beyond 2, where clients SELECT others set databases 4 there\n",
	} {
		if code, out := runCheck("--instance-timeout", "4s", "--masters", few, "--databases", databases); code != exitOK || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, no %q in\n%s", databases, code, want, out)
		}
	}
}

// A new master among marked ones waits, and init would free what the others hold: check must not advise it, unless too few
// others remember.
func TestCheckAdvisesInitOnlyWhereTooFewMastersRemember(t *testing.T) {
	all := []string{startRedis(t), startRedis(t), startRedis(t)}
	args := []string{"--instance-timeout", "4s", "--masters", strings.Join(all, ",")}
	if code, out := runCommand("init", append(args, "--yes")...); code != exitOK {
		t.Fatalf("init: exit code %d\n%s", code, out)
	}
	const verdict = "no: without its data: 16 databases without a mark: in quarantine as soon as a proxy comes by, "
	flush(t, all[0])
	code, out := runCheck(args...)
	if code != exitOK || strings.Count(out, verdict+"and votes again by itself\n") != 1 || strings.Contains(out, "lockproxy init") {
		t.Errorf("one without data: exit code %d\n%s", code, out)
	}
	flush(t, all[1])
	code, out = runCheck(args...)
	if code != exitFailure || strings.Count(out, verdict+"or until lockproxy init, if no client holds a lock\n") != 2 {
		t.Errorf("two without data: exit code %d\n%s", code, out)
	}
}

func flush(t *testing.T, addr string) {
	t.Helper()
	tell(t, addr, "FLUSHALL")
}

// tell sends a server a command whose reply is OK.
func tell(t *testing.T, addr, command string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, len("+OK\r\n"))); err != nil {
		t.Fatal(err)
	}
}

func TestInitWithoutAnAnswerNamesTheFlag(t *testing.T) {
	var out bytes.Buffer
	if agreed(strings.NewReader(""), &out) || !strings.Contains(out.String(), "--yes") {
		t.Errorf("printed %q", out.String())
	}
	out.Reset()
	if agreed(strings.NewReader("no\n"), &out) || strings.Contains(out.String(), "--yes") {
		t.Errorf("no: printed %q", out.String())
	}
	if !agreed(strings.NewReader("yes"), &out) {
		t.Error("yes without a line end is no yes")
	}
}

func TestCheckFailsWithoutAQuorum(t *testing.T) {
	good := startRedis(t)
	locked := startRedis(t, "--requirepass", "s3cr3t")
	evicting := startRedis(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	full := startRedis(t, "--maxmemory", "100kb")
	lonely := startRedis(t, "--min-replicas-to-write", "1")
	_, port, _ := net.SplitHostPort(good)
	replica := startRedis(t, "--replicaof", "127.0.0.1", port)
	gone := silentMaster(t) // accepts, says nothing
	start := time.Now()
	code, out := runCheck("--dial-timeout", "3s", "--master-dead-after", "3s", "--instance-timeout", "2s",
		"--masters", strings.Join([]string{good, locked, evicting, full, lonely, replica, gone, "127.0.0.1:1", "localhost:" + port}, ","))
	if code != exitFailure || !strings.Contains(out, "\n0 of 9 masters could vote, 5 needed.\n") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if d := time.Since(start); d > waitMax {
		t.Errorf("it took %v", d)
	}
	for addr, want := range map[string]string{
		good: "no: new, or has lost its data: if no lock can be held, run lockproxy init; else start lockproxy, and wait for about ttl_max (1h0m0s)", evicting: "no: may evict locks, set maxmemory-policy noeviction",
		full:    "no: its memory is full, raise maxmemory",
		lonely:  "no: it refuses writes: NOREPLICAS Not enough good replicas to write",
		replica: "no: is a slave, name its master, or, if that is named, another server", gone: "no: no answer",
		"127.0.0.1:1": "no: connection refused", "localhost:" + port: "no: is the same server as " + good + ", name another",
		locked: "no: NOAUTH Authentication required, set master_password, and master_user if it has users (ACL), or the ones in its URL",
	} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(addr) + ` .*` + regexp.QuoteMeta(want) + `$`).MatchString(out) {
			t.Errorf("%s: no %q in\n%s", addr, want, out)
		}
	}
}

// A master that is stopped, and whose system still accepts connections for it, keeps nobody waiting for long.
func TestMastersThatKeepSilentAreNotWaitedForLong(t *testing.T) {
	silent := []string{"--masters", silentMaster(t) + "," + silentMaster(t), "--dial-timeout", "300ms", "--master-dead-after", "60s"}
	for _, name := range []string{"check", "init"} {
		start := time.Now()
		code, out := runCommand(name, silent...)
		if code != exitFailure || strings.Count(out, "no answer\n") != 2 {
			t.Errorf("%s: exit code %d\n%s", name, code, out)
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%s took %v", name, d)
		}
	}
}

func TestTheMemoryOfAMaster(t *testing.T) {
	for want, i := range map[string]masters.Info{
		"-":                      {},
		"noeviction (unlimited)": {MaxMemoryPolicy: "noeviction"},
		"allkeys-lru (1.5mb)":    {MaxMemoryPolicy: "allkeys-lru", MaxMemory: 3 << 19},
	} {
		if got := memory(i); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTheVerdictOnAMaster(t *testing.T) {
	fine := masters.Info{Server: "redis", Version: "7.0.15", RunID: "r", Role: "master", RoundTrip: time.Millisecond}
	for _, c := range []struct {
		change func(*masters.Info)
		want   string
		votes  bool
	}{
		{func(*masters.Info) {}, "votes", true},
		{func(i *masters.Info) { i.Role = "" }, "votes", true},
		{func(i *masters.Info) { i.Missing = []string{"ROLE", "CONFIG GET"} }, "votes; may not run ROLE, CONFIG GET", true},
		{func(i *masters.Info) { i.Missing = []string{"ROLE", "TIME", "SET"} }, "cannot vote: may not run SET, TIME, permit that there", false},
		{func(i *masters.Info) { i.MaxMemory, i.MaxMemoryPolicy = 1, "noeviction" }, "votes", true},
		{func(i *masters.Info) { i.MaxMemory, i.UsedMemory = 5, 5 }, "votes", true},
		{func(i *masters.Info) { i.MaxMemory, i.UsedMemory = 5, 6 }, "no: its memory is full, raise maxmemory", false},
		{func(i *masters.Info) { i.MaxMemory, i.MaxMemoryPolicy = 1, "volatile-ttl" }, "no: may evict locks, set maxmemory-policy noeviction", false},
		{func(i *masters.Info) { i.RoundTrip = time.Second }, "no: slower than instance_timeout 250ms, raise that to three round trips", false},
		{func(i *masters.Info) { i.RoundTrip = 125 * time.Millisecond }, "votes", true},
		{func(i *masters.Info) { i.RoundTrip = 126 * time.Millisecond }, "votes; far away for instance_timeout 250ms, raise that to three round trips", true},
		{func(i *masters.Info) { i.Role = "slave" }, "no: is a slave, name its master, or, if that is named, another server", false},
	} {
		info := fine
		c.change(&info)
		probes := []probe{{addr: "a:1", info: info}}
		judge(config.Default(), probes)
		if probes[0].verdict != c.want || probes[0].votes != c.votes {
			t.Errorf("%+v: %q %v, want %q", info, probes[0].verdict, probes[0].votes, c.want)
		}
	}
}

// Masters that do not tell their run id are not taken for one.
func TestUnknownRunIDsAreNotTheSame(t *testing.T) {
	info := masters.Info{RoundTrip: time.Millisecond}
	probes := []probe{{addr: "a:1", info: info}, {addr: "b:1", info: info}}
	judge(config.Default(), probes)
	if !probes[0].votes || !probes[1].votes {
		t.Errorf("%+v", probes)
	}
}

func TestCheckShowsTheUpstream(t *testing.T) {
	master, up := startRedis(t), startRedis(t, "--requirepass", "s3cr3t")
	if code, out := runCommand("init", "--yes", "--masters", master); code != exitOK {
		t.Fatalf("init: %d\n%s", code, out)
	}
	flags := []string{"--masters", master, "--lock-keys", "lock:*", "--upstream"}
	code, out := runCheck(append(flags, "redis://:s3cr3t@"+up+"/3")...)
	if code != exitOK || !regexp.MustCompile("Upstream "+up+", database 3: (redis|valkey) [0-9.]+, master, ").MatchString(out) || !strings.Contains(out, "Locks are what matches lock:*") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if code, out := runCheck(append(flags, "redis://:s3cr3t@"+up+"/16", "--databases", "17")...); code != exitFailure ||
		!strings.Contains(out, "database 16: no: ERR DB index is out of range.\n") || !strings.Contains(out, " no: has no database 16, in which clients begin, set databases 17 there\n") {
		t.Errorf("a database that is not there: exit code %d\n%s", code, out)
	}
	for names, want := range map[string]int{"/3\\nlock:*": exitOK, "/4\\nother:*": exitOK, "/3\\nother:*": exitFailure} {
		tell(t, master, `SET lockproxy:names "`+globalAddr(up)+names+`"`)
		code, out := runCheck(append(flags, "redis://:s3cr3t@"+up+"/3")...)
		if code != want || (code != exitOK) != strings.Contains(out, "\n  here   lock:*\n  there  other:*\n") {
			t.Errorf("a proxy has said %s: exit code %d\n%s", names, code, out)
		}
	}
	code, out = runCheck(append(flags, "redis://:wrong-s3cr3t@"+up)...)
	mend := ", set the user and password in upstream: redis://user:password@host:port.\n"
	if code != exitFailure || !strings.Contains(out, "database 0: no: WRONGPASS ") || !strings.Contains(out, mend) || strings.Contains(out, "s3cr3t") {
		t.Errorf("wrong password: exit code %d\n%s", code, out)
	}
	code, out = runCheck(append(flags, "rediss://"+silentMaster(t))...)
	if code != exitFailure || !strings.Contains(out, "database 0: no: the TLS handshake failed: no answer, if it speaks no TLS there write redis://.\n") {
		t.Errorf("TLS to a port without: exit code %d\n%s", code, out)
	}
}

// The settings are refused where the address is the same. Under another one, check finds out.
func TestCheckRefusesAMasterAsTheUpstream(t *testing.T) {
	master := startRedis(t)
	if code, out := runCommand("init", "--yes", "--masters", master); code != exitOK {
		t.Fatalf("init: %d\n%s", code, out)
	}
	_, port, _ := strings.Cut(master, ":")
	code, out := runCheck("--masters", master, "--lock-keys", "lock:*", "--upstream", "redis://localhost:"+port)
	if want := "database 0: no: is the same server as the master " + master + ", name another.\n"; code != exitFailure || !strings.Contains(out, want) {
		t.Errorf("exit code %d, no %q in\n%s", code, want, out)
	}
}

// One in front of an upstream tells clients of that server when they ask for INFO.
func TestCheckKnowsALockproxy(t *testing.T) {
	master, up := startRedis(t), startRedis(t)
	proxy := field(launch(t, "--listen", "127.0.0.1:0", "--admin", "off", "--upstream", "redis://"+up, "--lock-keys", "lock:*").await("msg=listening"), "listen")
	for want, flags := range map[string][]string{
		"database 0: no: is a lockproxy, name the Redis that has the data.\n": {"--masters", master, "--lock-keys", "lock:*", "--upstream", "redis://" + proxy},
		" no: is a lockproxy, name a Redis or Valkey server\n":                {"--masters", proxy},
	} {
		if code, out := runCheck(flags...); code != exitFailure || !strings.Contains(out, want) {
			t.Errorf("%q: exit code %d, no %q in\n%s", flags, code, want, out)
		}
	}
}

func TestCheckOfAnUpstreamWithFewConnections(t *testing.T) {
	master, up := startRedis(t), startRedis(t, "--maxclients", "50")
	flags := []string{"--masters", master, "--lock-keys", "lock:*", "--upstream", "redis://" + up, "--max-clients"}
	for _, c := range []struct {
		flags []string
		warns bool
	}{{[]string{"51"}, true}, {[]string{"50"}, false}} {
		_, out := runCheck(append(flags, c.flags...)...)
		if warned := strings.Contains(out, "\nIt accepts 50 connections (maxclients), but each of up to 51 clients (max_clients)"); warned != c.warns {
			t.Errorf("%q:\n%s", c.flags, out)
		}
	}
}

func TestCheckSaysWhatToDoWhereTheListHasChanged(t *testing.T) {
	master := startRedis(t)
	if code, out := runCommand("init", "--yes", "--masters", master); code != exitOK {
		t.Fatalf("init: %d\n%s", code, out)
	}
	_, port, _ := strings.Cut(master, ":")
	code, out := runCheck("--instance-timeout", "4s", "--masters", "localhost:"+port)
	if want := " no: marked by another deployment, or for another list of masters: name all as when they were marked; to change that, "; code != exitFailure || !strings.Contains(out, want) {
		t.Errorf("exit code %d, no %q in\n%s", code, want, out)
	}
}

func TestInitNamesAReplica(t *testing.T) {
	replica := startRedis(t, "--replicaof", "127.0.0.1", "1")
	code, out := runCommand("init", "--yes", "--masters", replica)
	if want := "init: " + replica + ": is a slave, not a master; nothing was changed\n"; code != exitFailure || !strings.Contains(out, want) {
		t.Errorf("exit code %d, no %q in\n%s", code, want, out)
	}
}

func TestDoubtsAboutAnUpstream(t *testing.T) {
	for _, c := range []struct {
		info masters.Info
		want string
	}{
		{masters.Info{Role: "master"}, ""},
		{masters.Info{}, ""},
		{masters.Info{Role: "slave"}, "\nIt is a slave: "},
		{masters.Info{Role: "master", Cluster: true}, "\nIt runs in cluster mode, "},
	} {
		var out strings.Builder
		writeDoubts(&out, config.Default(), &c.info)
		if got := out.String(); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%+v: %q, want %q", c.info, got, c.want)
		}
	}
}

// What docs/upstream.md says that lockproxy itself needs there is enough, and check misses each part of it.
func TestCheckSaysWhatTheUpstreamDoesNotPermit(t *testing.T) {
	page, err := os.ReadFile("../../docs/upstream.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("and for lockproxy itself `([^`]+)`").FindSubmatch(page)
	if found == nil {
		t.Fatal("docs/upstream.md does not say what lockproxy's user needs there")
	}
	master, up := startRedis(t), startRedis(t)
	check := func(rules []string) string {
		tell(t, up, "ACL SETUSER app reset on >pw "+strings.Join(rules, " "))
		_, out := runCheck("--masters", master, "--lock-keys", "lock:*", "--upstream", "redis://app:pw@"+up)
		_, out, _ = strings.Cut(out, "Upstream ")
		return out
	}
	all := strings.Fields(string(found[1]))
	if out := check(all); !strings.Contains(out, "Locks are ") || strings.Contains(out, "Without ") {
		t.Errorf("all that is needed is permitted, but: %s", out)
	}
	for i, rule := range all {
		name := strings.ToUpper(strings.ReplaceAll(rule[1:], "|", " "))
		if out := check(slices.Delete(slices.Clone(all), i, i+1)); !strings.Contains(out, "Without "+name) {
			t.Errorf("%s is not permitted: %s", name, out)
		}
	}
}

func TestCheckOfAnUpstreamThatKeepsSilent(t *testing.T) {
	up := silentMaster(t)
	_, out := runCheck("--masters", startRedis(t), "--lock-keys", "lock:*", "--dial-timeout", "300ms", "--upstream", "redis://"+up)
	if want := "Upstream " + up + ", database 0: no: no answer.\n"; !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
}

// A server that speaks TLS, and one that does not, each under the scheme of the other.
func TestCheckNamesTheSchemeThatIsWrong(t *testing.T) {
	cert, key, err := harness.Certificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plain := startRedis(t)
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	secure := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	// Programs of other versions may have been built without TLS.
	server := startServer(t, "redis-server", "--tls-port", strconv.Itoa(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	eventually(t, "redis-server never listened for TLS", func() bool {
		conn, err := net.Dial("tcp", secure)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	_, out := runCheck("--masters", "rediss://"+plain+",redis://"+secure)
	_, beside := runCheck("--masters", server, "--lock-keys", "lock:*", "--upstream", "redis://"+secure)
	out += beside
	for _, want := range []string{
		regexp.QuoteMeta(plain) + ` .* no: the TLS handshake failed: it speaks no TLS, write redis://\n`,
		regexp.QuoteMeta(secure) + ` .* no: it speaks TLS, write rediss://\n`,
		`Upstream ` + regexp.QuoteMeta(secure) + `, database 0: no: it speaks TLS, write rediss://\.\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no line like %s in\n%s", want, out)
		}
	}
}

// A database that only one master remembers is told of, and harms no other.
func TestCheckTellsOfDatabasesWithoutAQuorum(t *testing.T) {
	all := []string{startRedis(t), startRedis(t), startRedis(t)}
	args := []string{"--instance-timeout", "4s", "--masters", strings.Join(all, ",")}
	if code, out := runCommand("init", append(args, "--yes")...); code != exitOK {
		t.Fatalf("init: exit code %d\n%s", code, out)
	}
	for _, addr := range all[:2] {
		conn, err := harness.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, command := range [][]string{{"SELECT", "8"}, {"FLUSHDB"}} {
			if reply, err := conn.Do(command...); err != nil || string(reply) != "+OK\r\n" {
				t.Fatalf("%v: %q, %v", command, reply, err)
			}
		}
	}
	code, out := runCheck(args...)
	if code != exitOK || strings.Count(out, " votes; database 8 without a mark: in quarantine as soon as a client uses it") != 2 ||
		!strings.Contains(out, "3 of 3 masters could vote, 2 needed.\nIn database 8 no quorum could: ") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	args[3] = "redis://" + strings.Join(all, "/8,redis://") + "/8"
	if code, out := runCheck(args...); code != exitFailure || strings.Count(out, "no: database 8 without a mark") != 2 {
		t.Errorf("clients begin there: exit code %d\n%s", code, out)
	}
}
