package main

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/resp/upstream"
)

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(binaries)
	if err := goleak.Find(); code == 0 && err != nil {
		_, _ = os.Stderr.WriteString("leaked: " + err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// A full disk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestWhatCannotBePrintedIsAFailure(t *testing.T) {
	for _, name := range []string{"help", "version", "scripts", "check --help"} {
		var stderr bytes.Buffer
		code := run(strings.Fields(name), nil, fullDisk{}, &stderr)
		if want := "lockproxy: the output is not complete: no space left on device\n"; code != exitFailure || stderr.String() != want {
			t.Errorf("%s: exit code %d, %q", name, code, stderr.String())
		}
	}
}

func TestCommands(t *testing.T) {
	text, err := os.ReadFile("testdata/release.lua")
	if err != nil {
		t.Fatal(err)
	}
	hex := func(text []byte) string { return fmt.Sprintf("%x", sha1.Sum(text)) }
	shas := strings.NewReplacer("WITHOUT", hex(bytes.TrimSuffix(text, []byte("\n"))), "WITH", hex(text))
	for _, c := range []struct {
		args   string
		code   int
		stdout string // a part of it
		stderr string // all of it
	}{
		{"help", 0, "lockproxy --masters", ""},
		{"help", 0, "\nExit codes: 0: done. 1: it failed, or check found", ""},
		{"--help", 0, "--instance-timeout", ""},
		{"-h", 0, "LOCKPROXY_USERS", ""},
		{"serve --help", 0, "--instance-timeout", ""},
		{"check --help", 0, "Usage:\n  lockproxy check --config lockproxy.yaml\n", ""},
		{"check --help", 0, "takes other names for locks", ""},
		{"help check", 0, "Usage:\n  lockproxy check --config lockproxy.yaml\n", ""},
		{"init --yes -h", 0, "Usage:\n  lockproxy init --config lockproxy.yaml\n", ""},
		{"version --help", 0, "Usage:\n  lockproxy version\n", ""},
		{"help help", 0, "--instance-timeout", ""},
		{"help frobnicate", 2, "", "lockproxy: frobnicate is no command; see lockproxy help\n"},
		{"--databases 1 --help", 0, "--instance-timeout", ""},
		{"version", 0, "lockproxy ", ""},
		{"scripts", 0, "149c5a8bf18676fd99e9e6e24923bd64d9b62f94", ""},
		{"scripts", 0, "take     b44c10c17268 Spring Integration 5.0-now", ""},
		{"scripts --scripts " + strings.Repeat("a", 40) + ":release:OK", 0, strings.Repeat("a", 40) + " scripts:", ""},
		{"scripts explain testdata/release.lua", 0, "release KEYS[1], token ARGV[1]", ""},
		{"scripts explain", 2, "", "lockproxy: scripts explain needs a file with a Lua text, or - for standard input\n"},
		{"scripts explain /nowhere", 1, "", "lockproxy: /nowhere: cannot be read: no such file or directory; name a file with a Lua text, or - for standard input\n"},
		{"scripts explain /dev/zero", 1, "", "lockproxy: /dev/zero: ERR script is longer than 262144 bytes, which is the most that lockproxy keeps; make it shorter\n"},
		{"scripts explain /dev/null", 0, "SHA-1  da39a3ee5e6b4b0d3255bfef95601890afd80709\n", ""}, // EVAL takes it, too
		{"scripts explain --grace 50ms testdata/release.lua --databases=3", 0, "release KEYS[1], token ARGV[1]", ""},
		{"scripts explain --grace 50ms", 2, "", "lockproxy: scripts explain needs a file with a Lua text, or - for standard input\n"},
		{"scripts explain testdata/release.lua more", 2, "", "lockproxy: more: is no flag; write --name value, see lockproxy help\n"},
		{"scripts explain testdata/release.lua --scripts WITHOUT:refuse", 0, "families: scripts.\nIt is refused", ""},
		{"scripts explain testdata/release.lua --scripts WITH:refuse", 0, "newline at the end of the file is left out, as libraries do not send it; with it, the SHA-1 would be WITH.\nSHA-1  WITHOUT\n", ""},
		{"scripts explain --help", 0, "Usage:\n  lockproxy scripts\n  lockproxy scripts explain release.lua\n", ""},
		{"--version", 0, "lockproxy ", ""},
		{"-version", 0, "lockproxy ", ""},
		{"scripts explian a.lua", 2, "", "lockproxy: scripts explian is no command; there are scripts and scripts explain FILE\n"},
		{"chekc", 2, "", "lockproxy: chekc is no command; did you mean check?\n"},
		{"redis://u:s3cr3t@a:1", 2, "", "lockproxy: redis://[redacted]@a:1 is no command; see lockproxy help\n"},
		{"frobnicate", 2, "", "lockproxy: frobnicate is no command; see lockproxy help\n"},
		{"--database 3 --grace x", 2, "", "lockproxy: --database: is no flag; did you mean --databases?\n" +
			"lockproxy: --grace: \"x\" is no duration; write a duration from 1ms to 1m, such as 50ms, 5s or 1h, or 0 for none\n"},
		{"check", 2, "", "lockproxy: check: no masters to look at; name them with --masters or --config\n"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(strings.Fields(shas.Replace(c.args)), nil, &stdout, &stderr)
		if code != c.code || !strings.Contains(stdout.String(), shas.Replace(c.stdout)) || stderr.String() != c.stderr {
			t.Errorf("%s: code %d\n%s%s", c.args, code, stdout.String(), stderr.String())
		}
	}
}

// A setting that does not reach the engine or the front end would do nothing.
func TestEverySettingReachesItsSubsystem(t *testing.T) {
	cfg := config.Default()
	cfg.IdleTimeout = time.Hour
	cfg.Deployment, cfg.LockKeys = "locks", []string{"lock:*"}
	cfg.LockGroups = []config.LockGroup{{Pattern: "lock:*", Group: "lock"}}
	cfg.Upstream.Addr, cfg.Upstream.Database = "u:1", 3
	cfg.Masters = []config.Master{{Addr: "a:1", Database: 3}}
	cfg.Users = []config.User{{Name: "bob", Password: config.NewSecret("x"), ForceUnlock: true}}
	log := newLogger(cfg, &bytes.Buffer{})
	for _, v := range []any{engineConfig(cfg, log), frontConfig(cfg, upstream.New(upstream.Options{Addr: "u:1"}), log), frontConfig(cfg, nil, log).Limits} {
		s := reflect.ValueOf(v)
		for i := range s.NumField() {
			name := s.Type().Field(i).Name
			if s.Field(i).IsZero() && s.Field(i).Kind() != reflect.Func && name != "FarAway" { // which are for simulations and tests
				t.Errorf("%T.%s has no value", v, name)
			}
		}
	}
	if g := frontConfig(cfg, nil, log).LockGroups[0]; g.Pattern != "lock:*" || g.Label != "lock" {
		t.Errorf("the group is %+v", g)
	}
	if u := frontConfig(cfg, nil, log).Users[0]; u.Name != "bob" || u.Password() != "x" || !u.ForceUnlock {
		t.Errorf("bob is %+v", u)
	}
	if frontConfig(cfg, nil, log).CPU == nil {
		t.Error("INFO knows of no processor time")
	}
	cfg.Grace = 0
	if got := engineConfig(cfg, log).Grace; got >= 0 {
		t.Errorf("grace 0 means none; to the engine it is %v, which it takes for its default", got)
	}
}

func TestLogFormatsAndLevels(t *testing.T) {
	for _, c := range []struct{ level, format, want string }{
		{"info", "text", "level=INFO msg=seen"},
		{"debug", "json", `"msg":"seen"`},
		{"error", "text", ""},
	} {
		cfg := config.Default()
		cfg.LogLevel, cfg.LogFormat = c.level, c.format
		var out bytes.Buffer
		newLogger(cfg, &out).Info("seen")
		if c.want == "" && out.Len() > 0 || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s %s: %q", c.level, c.format, out.String())
		}
	}
}

// Nothing of a proxy may be left when it has stopped, nor of one that could not start.
func TestStopLeavesNothingBehind(t *testing.T) {
	l, err := config.Load([]string{"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var out bytes.Buffer
		p := &process{cfg: l.Config, stderr: &out, log: newLogger(l.Config, &bytes.Buffer{}), failed: make(chan error, 2)}
		if err := p.start(nil); err != nil {
			t.Fatal(err)
		}
		if got := ask(t, p.door.Addr().String(), "PING"); got != "+PONG" {
			t.Error(got)
		}
		p.stop(0)
		if err := goleak.Find(); err != nil {
			t.Fatal(err)
		}
	}
	cfg := *l.Config
	cfg.Admin = "256.0.0.1:1"
	p := &process{cfg: &cfg, stderr: &bytes.Buffer{}, log: newLogger(&cfg, &bytes.Buffer{}), failed: make(chan error, 2)}
	if err := p.start(nil); err == nil {
		t.Error("started on an address that is none")
	}
	p.stop(0)
	if err := goleak.Find(); err != nil {
		t.Fatal(err)
	}
}

// The collector would run all the time if what is never touched reached the limit of memory.
func TestTheBallastLeavesRoomUnderALimitOfMemory(t *testing.T) {
	for limit, want := range map[int64]int64{math.MaxInt64: 64 << 20, 1 << 30: 64 << 20, 60 << 20: 15 << 20, 0: 0} {
		if got := ballastSize(limit); got != want {
			t.Errorf("limit %d: %d, want %d", limit, got, want)
		}
	}
}
