// Command remote puts libraries of other languages through the scenarios. Its arguments are the library's name and the
// command line of a program, which is one client. The program says first what it is, in a line:
//
//	ready VERSION [extends] [tokens] [mute] [data]
//
// and then answers each line that it reads with one:
//
//	lock ID NAME TTL TOKEN   makes a lock, not yet acquired; TTL in ms; TOKEN is - or x and hexadecimal digits
//	acquire ID WAIT          WAIT in ms
//	release ID
//	extend ID TTL
//	data NAME LOCK           uses all else that the library has, under names that begin with NAME; LOCK is a lock's
//
// The answer is yes, no (somebody else has it, or it is not held), or "error" and why; to data, "used" and what.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"clients/scenarios"
)

func main() {
	name, command := os.Args[1], os.Args[2:]
	first, err := start(command)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	first.Close()
	has := func(feature string) bool { return slices.Contains(first.features, feature) }
	scenarios.Run(scenarios.Library{
		Name: name, Version: first.version, Mute: has("mute"), Extends: has("extends"), Tokens: has("tokens"),
		Open: func() (scenarios.Client, error) { return start(command) },
	})
}

// A program is one client.
type program struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
	version  string
	features []string
	locks    int
}

func start(command []string) (*program, error) {
	p := &program{cmd: exec.Command(command[0], command[1:]...)}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	line, err := p.out.ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 2 || words[0] != "ready" {
		p.Close()
		return nil, fmt.Errorf("%q said %q, %w", command, line, err)
	}
	p.version, p.features = words[1], words[2:]
	return p, nil
}

func (p *program) Close() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

func (p *program) ask(format string, args ...any) (bool, error) {
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		return false, err
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return false, err
	}
	answer := strings.TrimSpace(line)
	if answer != "yes" && answer != "no" {
		return false, errors.New(answer)
	}
	return answer == "yes", nil
}

// UseData is for programs that say they have it.
func (p *program) UseData(name, piped string) (string, error) {
	if !slices.Contains(p.features, "data") {
		return "", nil
	}
	if _, err := fmt.Fprintf(p.in, "data %s %s\n", name, piped); err != nil {
		return "", err
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return "", err
	}
	used, done := strings.CutPrefix(strings.TrimSpace(line), "used ")
	if !done {
		return "", errors.New(line)
	}
	return used, nil
}

func (p *program) Lock(name string, ttl time.Duration, token []byte) scenarios.Lock {
	p.locks++
	word := "-"
	if token != nil {
		word = fmt.Sprintf("x%x", token)
	}
	if made, err := p.ask("lock %d %s %d %s", p.locks, name, ttl.Milliseconds(), word); !made || err != nil {
		panic(fmt.Errorf("lock: %v, %w", made, err))
	}
	return lock{p, p.locks}
}

type lock struct {
	program *program
	id      int
}

func (l lock) Acquire(wait time.Duration) (bool, error) {
	return l.program.ask("acquire %d %d", l.id, wait.Milliseconds())
}

func (l lock) Release() (bool, error) { return l.program.ask("release %d", l.id) }

func (l lock) Extend(ttl time.Duration) (bool, error) {
	return l.program.ask("extend %d %d", l.id, ttl.Milliseconds())
}
