//go:build unix

// Package group runs a command in a process group of its own, so that signals reach whatever the command has started, too. A process
// that leaves the group, as a daemon does, is not reached any more.
package group

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// A Group is a command that was started, with its process group.
type Group struct {
	cmd      *exec.Cmd
	done     chan struct{}
	terminal func() // gives the terminal back
}

// Start starts the command with this process's input and output, and these variables. If this process has the terminal, the command
// has it until it ends. The caller has to have locked its goroutine to its thread for as long as the command runs: on Linux the
// kernel kills the command when that thread ends.
func Start(argv, env []string) (*Group, error) {
	g := &Group{cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{}), terminal: func() {}} //nolint:gosec // it is what the user wants to run
	g.cmd.Env, g.cmd.Stdin, g.cmd.Stdout, g.cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(g.cmd.SysProcAttr)
	if own, has := ownsTerminal(); has {
		g.cmd.SysProcAttr.Foreground, g.cmd.SysProcAttr.Ctty = true, int(os.Stdin.Fd())
		g.terminal = func() { giveTerminal(own) }
	}
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = g.cmd.Wait() // its outcome is in ProcessState
		g.terminal()
		close(g.done)
	}()
	return g, nil
}

// Done is closed when the command itself has ended.
func (g *Group) Done() <-chan struct{} { return g.done }

// Signal sends a signal to every process of the group.
func (g *Group) Signal(s syscall.Signal) { _ = syscall.Kill(-g.cmd.Process.Pid, s) }

// Terminate asks every process of the group to end. A process that is stopped goes on, as it would take no SIGTERM.
func (g *Group) Terminate() {
	g.Signal(syscall.SIGTERM)
	g.Signal(syscall.SIGCONT)
}

// Left says that processes of the group are there after the command itself has ended.
func (g *Group) Left() bool { return !errors.Is(syscall.Kill(-g.cmd.Process.Pid, 0), syscall.ESRCH) }

// ExitCode returns the command's exit code as a shell tells it, once Done is closed: 128 and the signal, if one ended the command.
func (g *Group) ExitCode() int {
	if status, ok := g.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return g.cmd.ProcessState.ExitCode()
}

// endPoll is how often End looks whether the group is gone, and reapMax how long it takes until a process that was killed is gone, if
// anybody reaps it.
const (
	endPoll = 5 * time.Millisecond
	reapMax = time.Second
)

// End ends what is left of the group after Done: SIGTERM, and SIGKILL when the patience is over. It returns when the group is gone, or
// killed.
func (g *Group) End(patience time.Duration) {
	if !g.Left() {
		return
	}
	g.Terminate()
	for end := time.Now().Add(patience); g.Left(); time.Sleep(endPoll) {
		switch over := time.Since(end); {
		case over > reapMax:
			return
		case over > 0:
			g.Signal(syscall.SIGKILL)
		}
	}
}

// Forwarded are the signals that a command is to get.
var Forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH, syscall.SIGCONT}

// Catch returns the signals that this process gets from now on. Those that would stop this process do nothing any more: a command
// would go on without whoever watches its lock.
func Catch() (signals <-chan os.Signal, forget func()) {
	c, ignored := make(chan os.Signal, 16), make(chan os.Signal, 1)
	signal.Notify(c, Forwarded...)
	signal.Notify(ignored, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU) // Ignore would be inherited by the command
	return c, func() {
		signal.Stop(c)
		signal.Stop(ignored)
	}
}
