package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Proxy is a running lockproxy.
type Proxy struct {
	*Process
	Addr string

	bin  string
	args []string
}

// BuildProxy compiles cmd/lockproxy into dir, with the race detector if this program has it. LOCKPROXY_BIN names a
// ready binary instead.
func BuildProxy(dir string) (string, error) {
	if RaceBuilt {
		return build(dir, "CGO_ENABLED=1", "-race")
	}
	return BuildPlainProxy(dir)
}

// BuildPlainProxy is BuildProxy without the race detector, as "make build" compiles it.
func BuildPlainProxy(dir string) (string, error) { return build(dir, "CGO_ENABLED=0", "-trimpath") }

func build(dir, environment, flag string) (string, error) {
	if bin := os.Getenv("LOCKPROXY_BIN"); bin != "" {
		return bin, nil
	}
	bin := filepath.Join(dir, "lockproxy")
	cmd := exec.Command("go", "build", flag, "-o", bin, "lockproxy/cmd/lockproxy")
	cmd.Env = append(os.Environ(), environment)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build lockproxy/cmd/lockproxy: %w\n%s", err, out)
	}
	return bin, nil
}

// StartProxy starts bin in front of the masters and returns when it answers and a quorum of masters answers it.
func StartProxy(bin string, masters []string, flags ...string) (*Proxy, error) {
	p, err := LaunchProxy(bin, masters, flags...)
	if err != nil {
		return nil, err
	}
	if err := p.Ready(p.quorumAnswers); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// InitMasters marks new masters clean, as an operator does once: before that their votes do not count. Flags are those
// of the proxies. On a busy machine a master, or the relay to it, may keep silent for longer than dial_timeout by default.
func InitMasters(bin string, masters []string, flags ...string) error {
	code, out, err := RunProxy(bin, append([]string{"init", "--yes", "--dial-timeout", "10s", "--masters", strings.Join(masters, ",")}, flags...)...)
	if err == nil && code != 0 {
		err = fmt.Errorf("lockproxy init: exit code %d\n%s", code, out)
	}
	return err
}

// RunProxy runs bin to its end, and returns its exit code and what it printed.
func RunProxy(bin string, args ...string) (code int, output string, err error) {
	cmd := exec.Command(bin, args...)
	cmd.Env = proxyEnvironment()
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), string(out), nil
	}
	return 0, string(out), err
}

// LaunchProxy starts bin and returns when it answers PING, whatever the masters do. Without masters it has embedded ones.
func LaunchProxy(bin string, masters []string, flags ...string) (*Proxy, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	addr := loopback(port)
	args := append([]string{"--listen", addr, "--admin", "", "--init", "auto"}, flags...)
	if len(masters) > 0 {
		args = append(args, "--masters", strings.Join(masters, ","))
	}
	p := &Proxy{Addr: addr, bin: bin, args: args}
	return p, p.Start()
}

// Start starts the proxy, again after it has ended, on the same port, and returns when it answers PING.
func (p *Proxy) Start() error {
	proc, err := startProcess("lockproxy "+p.Addr, p.bin, p.args, proxyEnvironment())
	if err != nil {
		return err
	}
	p.Process = proc
	if err := p.Ready(p.answers); err != nil {
		p.Kill()
		return err
	}
	return nil
}

// Restart stops the proxy as Stop does and starts it again. It returns when a quorum of masters answers it.
func (p *Proxy) Restart() error {
	if err := p.Stop(); err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	return p.Ready(p.quorumAnswers)
}

// Replace is Restart with another binary.
func (p *Proxy) Replace(bin string) error {
	p.bin = bin
	return p.Restart()
}

// proxyEnvironment leaves out our own LOCKPROXY_REQUIRE_… and the like: the proxy would read them as settings.
func proxyEnvironment() []string {
	env := []string{"GORACE=atexit_sleep_ms=0"} // a race-built proxy would otherwise wait for a second before it ends
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "LOCKPROXY_") {
			env = append(env, kv)
		}
	}
	return env
}

func (p *Proxy) answers() error { return Ping(p.Addr) }

func (p *Proxy) quorumAnswers() error {
	if err := p.answers(); err != nil {
		return err
	}
	c, err := Dial(p.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	reply, err := c.Do("GET", "lock:nobody-ever-sets-this") // a lock, if there is an upstream
	if err == nil && string(reply) != "$-1\r\n" {
		err = fmt.Errorf("GET: %q", reply)
	}
	return err
}

// Stop ends the proxy with SIGTERM, as an operator would, and returns an error unless it exits with status 0: a
// data race that a race-built binary reported is such an error.
func (p *Proxy) Stop() error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := p.Wait(readyMax); err != nil {
		p.Kill()
		return fmt.Errorf("%w\n%s", err, p.Output())
	}
	if i := strings.Index(p.Output(), "WARNING: DATA RACE"); i >= 0 {
		return fmt.Errorf("data race in %s:\n%s", p.name, p.Output()[i:])
	}
	return nil
}

// DrainMax is how long a test lets a proxy take to end after SIGTERM.
const DrainMax = time.Minute
