// Package harness runs the real thing: redis-servers, the lockproxy binary, and the links between them.
//
// Every process is started on a free loopback port, with nothing persisted, and is ended by its process id. The
// functions return errors instead of taking a *testing.T, because the benchmark uses them too. Nothing here waits for
// a fixed time: what has to become true is polled until a deadline.
package harness

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// outputMax bounds what is kept of a process's output: enough for a panic of the proxy with its goroutines.
const outputMax = 256 << 10

// A Process is a child of this program. It dies with it, even if this program is killed (on Linux).
type Process struct {
	name string
	cmd  *exec.Cmd
	out  *tail
	done chan struct{} // closed when the process has ended and err is set
	err  error
}

// startProcess starts bin. Its standard output and error are kept for Output.
func startProcess(name, bin string, args, env []string) (*Process, error) {
	p := &Process{name: name, out: &tail{}, done: make(chan struct{})}
	p.cmd = exec.Command(bin, args...)
	p.cmd.Env = env
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	dieWithParent(p.cmd)
	if err := onStarterThread(p.cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Output returns the latest output of the process.
func (p *Process) Output() string { return p.out.String() }

// Signal sends sig. It is no error if the process has ended already.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %v to %s: %w", sig, p.name, err)
	}
	return nil
}

// Kill ends the process as kill -9 does and waits until it is gone. A stopped (SIGSTOP) process dies too.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Pause stops the process from running (SIGSTOP); the kernel still accepts connections and bytes for it.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Ended says whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Wait waits until the process ends by itself and returns how: nil for exit status 0.
func (p *Process) Wait(timeout time.Duration) error {
	select {
	case <-p.done:
		return p.err
	case <-time.After(timeout):
		return fmt.Errorf("%s still runs after %v", p.name, timeout)
	}
}

// MemoryKB returns the resident memory of the process in KB (Linux only).
func (p *Process) MemoryKB() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
		}
	}
	return 0, errors.New("no VmRSS in the process status")
}

// Ready waits until ask returns nil, as a process does that has started and answers.
func (p *Process) Ready(ask func() error) error {
	err := Poll(readyMax, func() error {
		if p.Ended() {
			return nil
		}
		return ask()
	})
	if p.Ended() {
		err = errors.New("it ended")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", p.name, err, p.Output())
	}
	return err
}

// FreePort finds a loopback port that nobody listens on, and claims it: as long as this program runs, neither it nor another
// one that uses FreePort gets the same again. Else two that look for a port at the same moment may find the same one, and take
// each other's server for their own. The port is below 32768, where Linux begins to take ports for outgoing connections: above,
// a dial to a killed master can connect to itself.
func FreePort() (int, error) {
	for range 200 {
		port := 12000 + rand.IntN(20000)
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		claimed := claim(port)
		if err := l.Close(); err != nil || claimed {
			return port, err
		}
	}
	return 0, errors.New("no free port between 12000 and 32000")
}

// claims are the sockets by which ports are claimed: they are kept open.
var claims struct {
	sync.Mutex
	all []net.Listener
}

// claim claims the port, and says whether nobody had before. It does so by a socket whose name is no file, so that it goes with the
// program; where there are none (other systems than Linux), nothing is claimed.
func claim(port int) bool {
	if runtime.GOOS != "linux" {
		return true
	}
	l, err := net.Listen("unix", fmt.Sprintf("@lockproxy-test-port-%d", port))
	if err != nil {
		return false
	}
	claims.Lock()
	defer claims.Unlock()
	claims.all = append(claims.all, l)
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Poll calls ready, with short pauses, until it returns nil. After the deadline it returns the last error.
func Poll(deadline time.Duration, ready func() error) error {
	end := time.Now().Add(deadline)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := ready()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not within %v: %w", deadline, err)
		}
		time.Sleep(pause)
	}
}

// A tail keeps the latest bytes written to it.
type tail struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buf.Len()+len(b) > outputMax {
		t.buf.Next(t.buf.Len() / 2)
	}
	return t.buf.Write(b)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// StartProgram runs another program that a test needs.
func StartProgram(name, bin string, args ...string) (*Process, error) {
	return startProcess(name, bin, args, os.Environ())
}
