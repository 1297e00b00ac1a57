//go:build unix

// Package group runs a command in a process group of its own, so that signals also reach the processes that the command has started. A
// process that leaves the group, as a daemon does, is out of reach.
package group

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// A Group is a started command, with its process group.
type Group struct {
	cmd      *exec.Cmd
	done     chan struct{}
	terminal func() // gives the terminal back
}

// Start starts the command with this process's input and output, and env as its variables. If this process has the terminal, the
// command has the terminal until the command ends. The caller's goroutine must be locked to its thread until then: on Linux the kernel
// kills the command when the thread ends.
func Start(argv, env []string) (*Group, error) {
	g := &Group{cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{}), terminal: func() {}} //nolint:gosec // the user's own command
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
		_ = g.cmd.Wait() // the outcome is in ProcessState
		g.terminal()
		close(g.done)
	}()
	return g, nil
}

// Done is closed when the command itself has ended.
func (g *Group) Done() <-chan struct{} { return g.done }

// Signal sends a signal to every process of the group.
func (g *Group) Signal(s syscall.Signal) { _ = syscall.Kill(-g.cmd.Process.Pid, s) }

// Terminate asks every process of the group to end. Stopped processes are continued, because a stopped process takes no SIGTERM.
func (g *Group) Terminate() {
	g.Signal(syscall.SIGTERM)
	g.Signal(syscall.SIGCONT)
}

// Left says whether processes of the group are left after the command's end.
func (g *Group) Left() bool { return !errors.Is(syscall.Kill(-g.cmd.Process.Pid, 0), syscall.ESRCH) }

// ExitCode returns the command's exit code, as in a shell: 128 plus the signal, if a signal ended the command. Done must be closed.
func (g *Group) ExitCode() int {
	if status, ok := g.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return g.cmd.ProcessState.ExitCode()
}

// endPoll is the time between two looks of End at the group. reapMax is the longest time until a killed process is reaped; End waits no
// longer, because perhaps nobody reaps.
const (
	endPoll = 5 * time.Millisecond
	reapMax = time.Second
)

// End ends the rest of the group after Done: SIGTERM, and SIGKILL when the patience is over. End returns when the group is gone, or
// reapMax after the first SIGKILL.
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

// Forwarded are the signals that are passed on to the command.
var Forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH, syscall.SIGCONT}

// Catch returns the signals that this process gets from now on. Signals that would stop this process have no effect: the command would
// go on, with nobody to extend its lock.
func Catch() (signals <-chan os.Signal, forget func()) {
	c, ignored := make(chan os.Signal, 16), make(chan os.Signal, 1)
	signal.Notify(c, Forwarded...)
	signal.Notify(ignored, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU) // Ignore would be inherited by the command
	return c, func() {
		signal.Stop(c)
		signal.Stop(ignored)
	}
}
