package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// A rival takes the lock as soon as masters let it, and tells when.
func rival(t *testing.T, addr string) time.Time {
	t.Helper()
	c := dial(t, addr)
	var at time.Time
	eventually(t, "the rival gets the lock", func() error {
		reply, err := c.Do("LOCK", "k", "60000", "TOKEN", "rival", "WAIT", "20000")
		at = time.Now()
		if err != nil || !strings.HasPrefix(string(reply), "*6") {
			return fmt.Errorf("%q, %v", reply, err)
		}
		return nil
	})
	return at
}

// Whatever happens between the command and its lock, and though the command and its child ignore SIGTERM: both are gone before
// somebody else gets the lock. The rival comes through another proxy, which sees nothing of what happens.
func TestNoCommandOutlivesItsLock(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(r *harness.Relay, p *harness.Proxy, masters []*harness.Redis) error
		undo func(masters []*harness.Redis) error
	}{
		{"the link is cut", func(r *harness.Relay, _ *harness.Proxy, _ []*harness.Redis) error {
			r.Refuse(true)
			r.Cut()
			return nil
		}, nil},
		{"the link hangs", func(r *harness.Relay, _ *harness.Proxy, _ []*harness.Redis) error {
			r.Hold(harness.ToMaster)
			return nil
		}, nil},
		{"replies are held up", func(r *harness.Relay, _ *harness.Proxy, _ []*harness.Redis) error {
			r.Hold(harness.ToProxy)
			return nil
		}, nil},
		{"the proxy is killed", func(_ *harness.Relay, p *harness.Proxy, _ []*harness.Redis) error {
			p.Kill()
			return nil
		}, nil},
		{"the proxy stands still", func(_ *harness.Relay, p *harness.Proxy, _ []*harness.Redis) error { return p.Pause() }, nil},
		{"most masters stand still", func(_ *harness.Relay, _ *harness.Proxy, masters []*harness.Redis) error {
			return each(masters[:2], (*harness.Redis).Pause)
		}, func(masters []*harness.Redis) error { return each(masters[:2], (*harness.Redis).Resume) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 3)
			mine, other := startProxy(t, masters), startProxy(t, masters)
			link := relay(t, mine.Addr)
			s, both := beats(t, []string{"BEAT_STUBBORN=1"}, "--proxy", link.Addr, "--ttl", "4s")
			began := time.Now()
			if err := c.do(link, mine, masters); err != nil {
				t.Fatal(err)
			}
			for _, b := range both {
				eventually(t, "the command goes on for now", func() error { return b.beats(began) })
			}
			if code := s.exit(t); code != 75 {
				t.Errorf("exit code %d", code)
			}
			if c.undo != nil {
				if err := c.undo(masters); err != nil {
					t.Fatal(err)
				}
			}
			granted := rival(t, other.Addr)
			for _, b := range both {
				last, pid, err := b.last()
				if err != nil || !last.Before(granted) || last.Sub(began) > 4*time.Second {
					t.Errorf("it beat until %v after its lock was given to somebody else, and %v after the fault (%v)", last.Sub(granted), last.Sub(began), err)
				}
				if runs(pid) {
					t.Errorf("process %d is there still", pid)
				}
			}
			out := s.output()
			if !strings.Contains(out, "the command gets SIGTERM, and SIGKILL in ") || !strings.Contains(out, "was lost while the command ran: ") {
				t.Errorf("it says %q", out)
			}
			_ = mine.Resume()
		})
	}
}

func each(all []*harness.Redis, do func(*harness.Redis) error) error {
	for _, r := range all {
		if err := do(r); err != nil {
			return err
		}
	}
	return nil
}

// A lock that somebody takes away is lost at once: the command is asked to end with the next extension.
func TestACommandWhoseLockIsTakenAwayIsEnded(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, masters)
	s, both := beats(t, nil, "--proxy", p.Addr, "--ttl", "3s")
	if reply, err := dial(t, p.Addr).Do("FORCEUNLOCK", "k"); err != nil || string(reply) != ":1\r\n" {
		t.Fatalf("%q, %v", reply, err)
	}
	if code := s.exit(t); code != 75 || !strings.Contains(s.output(), "released, taken away, or has expired") {
		t.Errorf("exit code %d: %s", code, s.output())
	}
	for _, b := range both {
		if text, err := os.ReadFile(b.file + ".signal"); err != nil || string(text) != "terminated" {
			t.Errorf("it got %q, %v", text, err)
		}
	}
}

// With two proxies, the command goes on for longer than its TTL though one stands still; nobody else gets the lock.
func TestACommandGoesOnThroughAnotherProxy(t *testing.T) {
	masters := startMasters(t, 3)
	first, second := startProxy(t, masters), startProxy(t, masters)
	s, both := beats(t, nil, "--proxy", first.Addr+","+second.Addr, "--ttl", "3s")
	if err := first.Pause(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	c := dial(t, second.Addr)
	for { // as long as the lock would have lasted, and half of that again
		if reply, err := c.Do("LOCK", "k", "60000", "WAIT", "100"); err != nil || reply[0] != '_' && reply[0] != '$' {
			t.Fatalf("while the command runs, somebody else gets %q, %v\n%s", reply, err, s.output())
		}
		if time.Since(began) > 4500*time.Millisecond {
			break
		}
	}
	for _, b := range both {
		if err := b.beats(began.Add(4 * time.Second)); err != nil {
			t.Errorf("%v\n%s", err, s.output())
		}
	}
	_ = s.cmd.Process.Signal(syscall.SIGUSR1)
	if code := s.exit(t); code != 3 {
		t.Errorf("exit code %d: %s", code, s.output())
	}
	_ = first.Resume()
}

// Signals reach the command and its child; the exit code is the command's; and the lock is free at once.
func TestSignalsReachTheWholeGroup(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, masters)
	for sent, want := range map[syscall.Signal]int{syscall.SIGTERM: 0, syscall.SIGUSR1: 3, syscall.SIGINT: 4} {
		s, both := beats(t, nil, "--proxy", p.Addr, "--ttl", "60s")
		_ = s.cmd.Process.Signal(sent)
		if code := s.exit(t); code != want {
			t.Errorf("%v: exit code %d: %s", sent, code, s.output())
		}
		for _, b := range both {
			if text, err := os.ReadFile(b.file + ".signal"); err != nil || string(text) != sent.String() {
				t.Errorf("%v: it got %q, %v", sent, text, err)
			}
		}
		if reply, err := dial(t, p.Addr).Do("EXISTS", "k"); err != nil || string(reply) != ":0\r\n" {
			t.Errorf("%v: the lock is there still: %q, %v", sent, reply, err)
		}
	}
}

// What a command leaves behind is ended before the lock is given back, with SIGKILL if it must.
func TestWhatACommandLeavesBehindIsEnded(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, masters)
	file := filepath.Join(t.TempDir(), "left")
	code, out := ends(t, []string{"BEAT_STUBBORN=1", "LEFT=" + file, "BEATER=" + os.Args[0]}, "run", "k", "--proxy", p.Addr, "--ttl", "3s", "--stop-time", "300ms", "--",
		"sh", "-c", `BEAT_FILE=$LEFT "$BEATER" & while ! [ -s "$LEFT" ]; do :; done; exit 5`)
	_, pid, err := beating{file}.last()
	if err != nil || code != 5 {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	if runs(pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Error("it runs still")
	}
}

// Who kills run with SIGKILL leaves no command without a lock.
func TestACommandDiesWithRun(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, masters)
	s, both := beats(t, []string{"BEAT_STUBBORN=1"}, "--proxy", p.Addr, "--ttl", "4s")
	_ = s.cmd.Process.Kill()
	<-s.done
	_, pid, err := both[0].last()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command is gone", func() error {
		if runs(pid) {
			return fmt.Errorf("process %d is there", pid)
		}
		return nil
	})
}

// runs says that a process is there, and is more than an entry that nobody has taken note of yet.
func runs(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return syscall.Kill(pid, 0) == nil && (err != nil || !strings.Contains(string(text), ") Z "))
}

func TestExitCodes(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, masters)
	if reply, err := dial(t, p.Addr).Do("LOCK", "taken", "600000"); err != nil || reply[0] != '*' {
		t.Fatalf("%q, %v", reply, err)
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	nobody, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	absent := fmt.Sprint("127.0.0.1:", nobody)
	for _, c := range []struct {
		args []string
		code int
		says string // a part of what it prints
	}{
		{[]string{"k", "--", "sh", "-c", "exit 7"}, 7, ""},
		{[]string{"k", "--", "true"}, 0, ""},
		{[]string{"k", "--", "sh", "-c", "kill -9 $$"}, 137, ""},
		{[]string{"k", "--", "sh", "-c", `echo "$LOCKPROXY_KEY $LOCKPROXY_TOKEN $LOCKPROXY_FENCE"`}, 0, "k "},
		{[]string{"k", "--", binary, "locks", "k"}, 0, " lockproxy@"}, // the client's name
		{[]string{"--ttl=5s", "k", "--", "true", "--ttl"}, 0, ""},
		{[]string{"taken", "--wait", "0", "--", "true"}, 1, "lockproxy: run: taken is not granted within 0s: somebody else holds the lock\n"},
		{[]string{"taken", "--wait", "200ms", "-E", "42", "--", "true"}, 42, "taken is not granted within 200ms"},
		{[]string{"taken", "--wait", "0", "--quiet", "--conflict-exit-code=9", "--", "true"}, 9, ""},
		{[]string{"k", "--", "/nowhere/to/be/found"}, 127, "there is no such command"},
		{[]string{"k", "--", "no-such-command-here"}, 127, "there is no such command"},
		{[]string{"k", "--", plain}, 126, "cannot be run: "},
		{[]string{"k", "--proxy", absent, "--", "true"}, 69, absent + " connection refused\n"},
		{[]string{"k", "--proxy", absent + "," + p.Addr, "--", "true"}, 0, ""},
		{[]string{"k", "--ttl", "2h", "--", "true"}, 69, "exceeds ttl_max"},
		{nil, 64, "lockproxy: run: there is no key; write lockproxy run KEY -- command\n"},
		{[]string{"k"}, 64, "there is no command; write lockproxy run k -- command\n"},
		{[]string{"k", "--"}, 64, "there is no command"},
		{[]string{"k", "true"}, 64, "true: is one word too many; write -- before the command: lockproxy run k -- true\n"},
		{[]string{"", "--", "true"}, 64, "the key is empty"},
		{[]string{"k", "--tll", "3s", "--", "true"}, 64, "--tll: is no flag; did you mean --ttl?\n"},
		{[]string{"k", "--ttl", "--", "true"}, 64, `--ttl: "--" is no duration; write a duration from 1s to 24h`},
		{[]string{"k", "--ttl", "999ms", "--", "true"}, 64, "--ttl: 999ms is not from 1s to 24h\n"},
		{[]string{"k", "--ttl"}, 64, "--ttl: has no value; write --ttl duration\n"},
		{[]string{"k", "--stop-time", "20s", "--", "true"}, 64, "--stop-time: 20s is more than half of --ttl 30s"},
		{[]string{"k", "--password", "x", "--", "true"}, 64, "--password: would show the password to everybody on this machine"},
		{[]string{"k", "--proxy", "nowhere", "--", "true"}, 64, `--proxy: "nowhere" is no address; write host:port`},
		{[]string{"k", "--user", "u", "--", "true"}, 64, "--user: there is no password"},
		{[]string{"k", "--password-file", "/nowhere", "--", "true"}, 64, "--password-file: cannot be read: /nowhere"},
		{[]string{"k", "--tls-cert", "/nowhere", "--", "true"}, 64, "--tls-cert and --tls-key go together"},
		{[]string{"k", "--tls-ca", plain, "--", "true"}, 64, "holds no certificate; name a PEM file\n"},
		{[]string{"k", "--tls=1", "--", "true"}, 64, "--tls: takes no value; write --tls alone\n"},
	} {
		code, out := ends(t, []string{"LOCKPROXY_PROXY=" + p.Addr}, append([]string{"run"}, c.args...)...)
		if code != c.code || !strings.Contains(out, c.says) || c.says == "" && out != "" {
			t.Errorf("%q: exit code %d, want %d: %q", c.args, code, c.code, out)
		}
	}
	if reply, err := dial(t, p.Addr).Do("EXISTS", "k"); err != nil || string(reply) != ":0\r\n" {
		t.Errorf("a lock is left: %q, %v", reply, err)
	}
	masters[0].Kill()
	masters[1].Kill()
	eventually(t, "no quorum is an exit code of its own", func() error {
		if code, out := ends(t, nil, "run", "k", "--proxy", p.Addr, "--", "true"); code != 69 || !strings.Contains(out, "NOQUORUM ") {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		return nil
	})
}

// A signal ends the waiting, and gives the place in line up.
func TestASignalEndsTheWaiting(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, masters)
	c := dial(t, p.Addr)
	if reply, err := c.Do("LOCK", "k", "600000"); err != nil || reply[0] != '*' {
		t.Fatalf("%q, %v", reply, err)
	}
	s := start(t, nil, "run", "k", "--proxy", p.Addr, "--wait", "10m", "--", "true")
	waiting := func(n string) func() error {
		return func() error {
			if reply, err := c.Do("INFO", "lockproxy"); err != nil || !strings.Contains(string(reply), "\r\nwaiting:"+n+"\r\n") {
				return fmt.Errorf("%q, %v", reply, err)
			}
			return nil
		}
	}
	eventually(t, "it waits", waiting("1"))
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	if code := s.exit(t); code != 130 {
		t.Errorf("exit code %d: %s", code, s.output())
	}
	eventually(t, "it waits no more", waiting("0"))
}

// A run in line gets the lock when its holder gives it back, for the whole of its TTL.
func TestALockThatWasWaitedForLastsForItsTTL(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, masters)
	s, _ := beats(t, nil, "--proxy", p.Addr, "--ttl", "30s")
	second := start(t, nil, "run", "k", "--proxy", p.Addr, "--ttl", "2s", "--wait", "1m", "--", "sh", "-c", "sleep 3; exit 6")
	c := dial(t, p.Addr)
	eventually(t, "it waits", func() error {
		if reply, err := c.Do("LOCKS"); err != nil || !strings.Contains(string(reply), "waiters\r\n:1\r\n") {
			return fmt.Errorf("%q, %v", reply, err)
		}
		return nil
	})
	_ = s.cmd.Process.Signal(syscall.SIGUSR1)
	if code := second.exit(t); code != 6 {
		t.Errorf("exit code %d: %s", code, second.output())
	}
}

func TestRunWaitsForAProxyThatStarts(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, masters)
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if code, out := ends(t, nil, "run", "k", "--proxy", p.Addr, "--", "true"); code != 69 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	s := start(t, nil, "run", "k", "--proxy", p.Addr, "--wait-for-proxy", "1m", "--", "true")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if code := s.exit(t); code != 0 {
		t.Errorf("exit code %d: %s", code, s.output())
	}
}

// By file, by environment, over TLS, with a certificate.
func TestRunLogsInOverTLS(t *testing.T) {
	masters := startMasters(t, 3)
	dir := t.TempDir()
	cert, key, err := harness.Certificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	settings, secret := filepath.Join(dir, "lockproxy.yaml"), filepath.Join(dir, "password")
	for file, text := range map[string]string{secret: "s3cret\n", settings: "users:\n  - {name: app, password: s3cret}\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprint("127.0.0.1:", port)
	if code, out := ends(t, nil, "init", "--yes", "--masters", strings.Join(harness.Addrs(masters), ",")); code != 0 {
		t.Fatal(out)
	}
	start(t, nil, "--config", settings, "--listen", addr, "--admin", "off", "--masters", strings.Join(harness.Addrs(masters), ","),
		"--tls-cert", cert, "--tls-key", key, "--tls-client-ca", cert)
	plain := startProxy(t, masters)
	reach := []string{"--proxy", addr, "--tls-ca", cert, "--tls-cert", cert, "--tls-key", key}
	if code, out := ends(t, nil, append(append([]string{"run", "k", "--wait-for-proxy", "1m", "--user", "app", "--password-file", secret}, reach...), "--", "true")...); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for _, c := range []struct {
		env  []string
		args []string
		code int
		says string
	}{
		{[]string{"LOCKPROXY_PROXY_USER=app", "LOCKPROXY_PROXY_PASSWORD=s3cret"}, reach, 0, ""},
		{[]string{"LOCKPROXY_PROXY=" + addr, "LOCKPROXY_PROXY_USER=app", "LOCKPROXY_PROXY_PASSWORD_FILE=" + secret, "LOCKPROXY_PROXY_TLS_CA=" + cert,
			"LOCKPROXY_PROXY_TLS_CERT=" + cert, "LOCKPROXY_PROXY_TLS_KEY=" + key}, nil, 0, ""},
		{[]string{"LOCKPROXY_PROXY_USER=app", "LOCKPROXY_PROXY_PASSWORD=wrong"}, reach, 69, "does not take the login: set LOCKPROXY_PROXY_USER"},
		{nil, reach, 69, "needs a login: set LOCKPROXY_PROXY_USER"},
		{nil, []string{"--proxy", addr, "--tls"}, 69, "certificate"},
		{nil, []string{"--proxy", addr}, 69, addr + " closed the connection: if it speaks TLS, give --tls, or --tls-ca\n"},
		{nil, []string{"--proxy", plain.Addr, "--tls-ca", cert}, 69, plain.Addr + " does not speak TLS: leave the flags and variables of TLS out\n"},
	} {
		code, out := ends(t, c.env, append(append([]string{"run", "k"}, c.args...), "--", "true")...)
		if code != c.code || !strings.Contains(out, c.says) || strings.Contains(out, "s3cret") {
			t.Errorf("%q %q: exit code %d: %s", c.env, c.args, code, out)
		}
	}
}
