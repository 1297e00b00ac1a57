package shell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lockproxy/cmd/lockproxy/cli"
	"lockproxy/cmd/lockproxy/shell/client"
	"lockproxy/cmd/lockproxy/shell/group"
	"lockproxy/cmd/lockproxy/shell/held"
)

// The exit codes of run, beside the command's own: the codes of flock and of sysexits.h where there is a fitting code.
const (
	exitOK          = 0
	exitConflict    = 1
	exitUsage       = 64
	exitUnavailable = 69
	exitLost        = 75
	exitNotRunnable = 126
	exitNotFound    = 127
	exitBySignal    = 128
)

// A runner is one run.
type runner struct {
	reach
	request  held.Request
	stopTime time.Duration
	conflict int
	quiet    bool
	argv     []string
	env      []string
	stderr   io.Writer
	signals  <-chan os.Signal
}

func newRunner() *runner {
	return &runner{request: held.Request{TTL: 30 * time.Second, Wait: 10 * time.Second}, conflict: exitConflict}
}

func (r *runner) flags() []cli.Flag {
	own := []cli.Flag{
		{Name: "ttl", Arg: "duration", Default: "30s", Help: "the lock's TTL; the lock is extended each third of it", Set: cli.Duration(&r.request.TTL, time.Second, 24*time.Hour)},
		{Name: "wait", Arg: "duration", Default: "10s", Help: "how long to wait in line while somebody else holds the lock; 0: not at all", Set: cli.Duration(&r.request.Wait, 0, 24*time.Hour)},
		{Name: "stop-time", Arg: "duration", Default: "a quarter of the TTL", Help: "how long the command has to end after SIGTERM, if its lock is lost", Set: cli.Duration(&r.stopTime, 10*time.Millisecond, time.Hour)},
		{Name: "conflict-exit-code", Short: "E", Arg: "number", Default: "1", Help: "exit code if the lock is not granted in time", Set: cli.Number(&r.conflict, 0, 255)},
		{Name: "wait-for-proxy", Arg: "duration", Default: "0s", Help: "how long to try again while no proxy can be reached", Set: cli.Duration(&r.request.WaitForProxy, 0, 24*time.Hour)},
		{Name: "quiet", Short: "q", Help: "say nothing if the lock is not granted in time", Set: cli.Yes(&r.quiet)},
	}
	return append(own, r.reach.flags()...)
}

// Run runs a command under a lock. A command that runs when its lock is lost is stopped.
func Run(args, env []string, _, stderr io.Writer) int {
	r := newRunner()
	r.env, r.stderr = env, stderr
	proxies, err := r.parse(args)
	if err != nil {
		r.say("%v", err)
		return exitUsage
	}
	signals, forget := group.Catch()
	defer forget()
	r.signals = signals
	lock, code := r.take(proxies)
	if lock == nil {
		return code
	}
	return r.under(lock)
}

func (r *runner) say(format string, args ...any) {
	fmt.Fprintf(r.stderr, "lockproxy: run: "+format+"\n", args...)
}

// parse reads the command line. An error says how to mend the command line.
func (r *runner) parse(args []string) (*client.Proxies, error) {
	words, argv, err := cli.Operands(r.flags(), args)
	switch {
	case err != nil:
		return nil, err
	case len(words) == 0:
		return nil, cli.Usage("there is no key; write lockproxy run KEY -- command")
	case len(words) > 1:
		return nil, cli.Usage(fmt.Sprintf("%s: is one word too many; write -- before the command: lockproxy run %s -- %s", words[1], words[0], strings.Join(words[1:], " ")))
	case len(argv) == 0:
		return nil, cli.Usage(fmt.Sprintf("there is no command; write lockproxy run %s -- command", words[0]))
	case words[0] == "":
		return nil, cli.Usage("the key is empty; name the lock")
	}
	if r.stopTime == 0 {
		r.stopTime = r.request.TTL / 4
	}
	if r.stopTime > r.request.TTL/2 {
		return nil, cli.Usage(fmt.Sprintf("--stop-time: %v is more than half of --ttl %v; make the TTL longer", r.stopTime, r.request.TTL))
	}
	r.request.Key, r.argv = words[0], argv
	return r.open(r.env)
}

// take waits for the lock. Without a lock, take returns the exit code. A signal ends the waiting.
func (r *runner) take(proxies *client.Proxies) (*held.Lock, int) {
	stop, taken := make(chan struct{}), make(chan struct{})
	r.request.Stop = stop
	by := make(chan syscall.Signal, 1)
	go func() {
		defer close(by)
		for {
			select {
			case s := <-r.signals:
				if n, _ := s.(syscall.Signal); ends(n) {
					by <- n
					close(stop)
					return
				}
			case <-taken:
				return
			}
		}
	}()
	lock, err := held.Take(proxies, r.request)
	close(taken)
	if s := <-by; s != 0 { // the signal came during the wait, or just after the grant
		if lock != nil {
			lock.Stop()
			_, _ = lock.Release()
		}
		return nil, exitBySignal + int(s)
	}
	switch refused, isRefusal := errors.AsType[client.Refusal](err); {
	case err == nil:
		return lock, 0
	case errors.Is(err, held.ErrNotGranted):
		if !r.quiet {
			r.say("%s is not granted within %v: %v", r.request.Key, r.request.Wait, err)
		}
		return nil, r.conflict
	case isRefusal:
		r.say("%v", refused)
	default:
		r.say("%v", err)
	}
	return nil, exitUnavailable
}

// ends says whether a signal asks run to end. Others, such as a new window size, do not.
func ends(s syscall.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

// under runs the command, gives the lock back, and returns the exit code.
func (r *runner) under(lock *held.Lock) int {
	runtime.LockOSThread() // for group.Start; never unlocked, as the process ends with the command
	env := append(r.env, "LOCKPROXY_KEY="+r.request.Key, "LOCKPROXY_TOKEN="+lock.Token, "LOCKPROXY_FENCE="+strconv.FormatInt(lock.Fence, 10))
	g, err := group.Start(r.argv, env)
	if err != nil {
		lock.Stop()
		_, _ = lock.Release()
		return r.notStarted(err)
	}
	why := r.watch(lock, g)
	g.End(min(r.stopTime, max(killAt(lock, r.request.TTL), 0)))
	lock.Stop()
	stillHeld, err := lock.Release()
	switch {
	case why != "":
		r.say("the lock on %s was lost while the command ran: %s", r.request.Key, why)
		return exitLost
	case err != nil:
		r.say("the lock on %s is not given back, and expires by itself: %v", r.request.Key, err)
	case !stillHeld:
		r.say("the lock on %s was not held any more when the command had ended: somebody took it away", r.request.Key)
		return exitLost
	}
	return g.ExitCode()
}

// notStarted says why a command could not be run, and returns the exit code that a shell would return.
func (r *runner) notStarted(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		r.say("%s: there is no such command", r.argv[0])
		return exitNotFound
	}
	r.say("%s: cannot be run: %v", r.argv[0], err)
	return exitNotRunnable
}

// killAt is the time left until the command must be killed: a little less than the lock is sure to be held, as a killed process may run
// for another moment.
func killAt(lock *held.Lock, ttl time.Duration) time.Duration {
	return lock.Until().Left() - min(max(ttl/20, 50*time.Millisecond), time.Second)
}

// lookEvery is how often watch checks that the lock is still sure, if nothing happens: timers stand still while the machine is
// suspended.
const lookEvery = 500 * time.Millisecond

// watch hands signals on until the command has ended. If the lock is lost, or is sure for little more than stopTime, the command gets
// SIGTERM. If the command still runs after stopTime, or shortly before the lock's validity ends, the command gets SIGKILL. why is the
// cause of the SIGTERM, "" without a SIGTERM.
func (r *runner) watch(lock *held.Lock, g *group.Group) (why string) {
	lost := lock.Lost()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var killTime time.Time // when the command gets SIGKILL, set with the SIGTERM
	for {
		select {
		case <-g.Done():
			return why
		case s := <-r.signals:
			if n, ok := s.(syscall.Signal); ok {
				g.Signal(n)
			}
			continue
		case <-lost:
			lost = nil
		case <-timer.C:
		}
		left := killAt(lock, r.request.TTL)
		isLost := lost == nil
		if why == "" && (isLost || left <= r.stopTime) {
			if why = lock.Why(); why == "" {
				why = "no proxy extended it in time"
			}
			left = min(left, r.stopTime)
			killTime = time.Now().Add(left)
			r.say("%s: %s; the command gets SIGTERM, and SIGKILL in %v", r.request.Key, why, max(left, 0).Round(time.Millisecond))
			g.Terminate()
		}
		switch {
		case why == "":
			timer.Reset(min(max(left-r.stopTime, time.Millisecond), lookEvery))
		case left <= 0 || !time.Now().Before(killTime):
			g.Signal(syscall.SIGKILL)
			timer.Reset(lookEvery)
		default:
			timer.Reset(min(time.Until(killTime), max(left, time.Millisecond), lookEvery))
		}
	}
}
