// Package shell tests what people do at a shell, with real masters, proxies, links, commands and terminals.
package shell

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// binary is the lockproxy under test, built once.
var binary string

const progressMax = time.Minute

func TestMain(m *testing.M) {
	if file := os.Getenv("BEAT_FILE"); file != "" {
		os.Exit(beat(file))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if harness.HaveRedis() != nil {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "lockproxy-shell-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if binary, err = harness.BuildProxy(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// beat is a command under a lock: until it is ended it writes the time into its file, again and again. It has a child that does the
// same. Both ignore SIGTERM if they are stubborn; else SIGTERM ends them. SIGUSR1 ends them with exit code 3.
func beat(file string) int {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGINT)
	if child := os.Getenv("BEAT_CHILD"); child != "" {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "BEAT_FILE="+child, "BEAT_CHILD=")
		if err := cmd.Start(); err != nil {
			return 99
		}
	}
	out, err := os.Create(file)
	if err != nil {
		return 99
	}
	for {
		_, _ = out.WriteAt(fmt.Appendf(nil, "%020d %10d", time.Now().UnixNano(), os.Getpid()), 0)
		select {
		case s := <-signals:
			_ = os.WriteFile(file+".signal", []byte(s.String()), 0o600)
			switch {
			case s == syscall.SIGUSR1:
				return 3
			case s == syscall.SIGINT:
				return 4
			case os.Getenv("BEAT_STUBBORN") == "":
				return 0
			}
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// A beating is a command that beats, or did.
type beating struct{ file string }

// last returns when it beat last, and its process id; an error if it never did.
func (b beating) last() (time.Time, int, error) {
	text, err := os.ReadFile(b.file)
	if err != nil || len(text) < 31 {
		return time.Time{}, 0, errors.Join(errors.New("it does not beat yet"), err)
	}
	ns, err1 := strconv.ParseInt(strings.TrimLeft(string(text[:20]), "0"), 10, 64)
	pid, err2 := strconv.Atoi(strings.TrimSpace(string(text[21:])))
	return time.Unix(0, ns), pid, errors.Join(err1, err2)
}

// beats returns nil if it has beaten since.
func (b beating) beats(since time.Time) error {
	last, _, err := b.last()
	if err == nil && !last.After(since) {
		err = errors.New("it beats no more")
	}
	return err
}

// A started is a lockproxy at work.
type started struct {
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	out  bytes.Buffer
}

func (s *started) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(b)
}

func (s *started) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// environment leaves out what would be read as a setting, and adds to the rest.
func environment(more ...string) []string {
	env := []string{"GORACE=atexit_sleep_ms=0"}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "LOCKPROXY_") {
			env = append(env, kv)
		}
	}
	return append(env, more...)
}

// start starts lockproxy.
func start(t *testing.T, env []string, args ...string) *started {
	t.Helper()
	s := &started{cmd: exec.Command(binary, args...), done: make(chan struct{})}
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = environment(env...), s, s
	s.cmd.WaitDelay = time.Second // a command that outlives lockproxy has its output
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.done)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.done
	})
	return s
}

// exit waits for the end, and returns the exit code.
func (s *started) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(progressMax):
		t.Fatalf("lockproxy does not end:\n%s", s.output())
	}
	return s.cmd.ProcessState.ExitCode()
}

// ends runs lockproxy to its end.
func ends(t *testing.T, env []string, args ...string) (code int, output string) {
	t.Helper()
	s := start(t, env, args...)
	code = s.exit(t)
	return code, s.output()
}

// beats starts a command that beats, with a child, under the lock k.
func beats(t *testing.T, env []string, flags ...string) (*started, []beating) {
	t.Helper()
	dir := t.TempDir()
	both := []beating{{filepath.Join(dir, "command")}, {filepath.Join(dir, "child")}}
	env = append(env, "BEAT_FILE="+both[0].file, "BEAT_CHILD="+both[1].file)
	s := start(t, env, append(append([]string{"run", "k"}, flags...), "--", os.Args[0])...)
	for _, b := range both {
		eventually(t, "the command begins", func() error {
			_, pid, err := b.last()
			if err == nil {
				t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
			}
			return err
		})
	}
	return s, both
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := harness.Poll(progressMax, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func startMasters(t *testing.T, n int) []*harness.Redis {
	t.Helper()
	if err := harness.HaveRedis(); err != nil {
		if os.Getenv("LOCKPROXY_REQUIRE_REDIS") == "1" {
			t.Fatalf("redis-server cannot be run: %v", err)
		}
		t.Skipf("NOT RUN: redis-server cannot be run: %v", err)
	}
	masters, err := harness.StartRedises(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { harness.StopAll(masters) })
	return masters
}

func startProxy(t *testing.T, masters []*harness.Redis, flags ...string) *harness.Proxy {
	t.Helper()
	p, err := harness.StartProxy(binary, harness.Addrs(masters), append([]string{"--instance-timeout", "500ms", "--grace", "500ms"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func dial(t *testing.T, addr string) *harness.Conn {
	t.Helper()
	c, err := harness.DialPatiently(addr, 2*progressMax)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func relay(t *testing.T, target string) *harness.Relay {
	t.Helper()
	r, err := harness.StartRelay(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r
}
