//go:build !unix

// Package group runs a command in a process group of its own. Here, the group is the command alone.
package group

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// A Group is a command that was started.
type Group struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts the command with this process's input and output, and these variables.
func Start(argv, env []string) (*Group, error) {
	g := &Group{cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{})}
	g.cmd.Env, g.cmd.Stdin, g.cmd.Stdout, g.cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = g.cmd.Wait()
		close(g.done)
	}()
	return g, nil
}

// Done is closed when the command has ended.
func (g *Group) Done() <-chan struct{} { return g.done }

// Signal ends the command: there are no signals here.
func (g *Group) Signal(syscall.Signal) { _ = g.cmd.Process.Kill() }

// Terminate ends the command.
func (g *Group) Terminate() { _ = g.cmd.Process.Kill() }

// ExitCode returns the command's exit code, once Done is closed.
func (g *Group) ExitCode() int { return g.cmd.ProcessState.ExitCode() }

// End does nothing: there is no group.
func (g *Group) End(time.Duration) {}

// Catch returns the signals that this process gets from now on.
func Catch() (signals <-chan os.Signal, forget func()) {
	c := make(chan os.Signal, 16)
	signal.Notify(c, os.Interrupt)
	return c, func() { signal.Stop(c) }
}
