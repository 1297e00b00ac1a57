// Command lockproxy listens for Redis clients and turns their locking commands into Redlock majority locks over N
// independent Redis masters.
//
// main.go says what can be run, serve.go in which order a proxy is built and torn down, check.go looks at masters.
// The settings are in config, the operators' pages in admin, the masters for trying out in embedded, sockets that cost less in
// sock, certificates and passwords that are renewed in renewed.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"lockproxy/cmd/lockproxy/config"
)

func main() {
	code := run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	runtime.KeepAlive(ballast)
	os.Exit(code)
}

// ballast is memory that is never touched, and so never resident. It makes the collector, which lets the heap double
// between its runs, count from 64 MB: a proxy with few clients holds a few MB and makes hundreds a second, and would
// spend a tenth of its time collecting them.
var ballast = make([]byte, ballastSize(debug.SetMemoryLimit(-1)))

// ballastSize is its size under a limit of memory (GOMEMLIMIT). The limit also counts memory that is not resident: if the ballast
// alone reached it, the collector would run all the time.
func ballastSize(limit int64) int64 { return min(64<<20, limit/4) }

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2 // what it was told makes no sense
)

// A command is one thing that lockproxy can be told to do. run gets what follows the name, and returns the exit code. usage is what
// --help prints behind the name; without one, it prints what help does.
type command struct {
	name, help, usage string
	run               func(args, env []string, stdout, stderr io.Writer) int
}

// commands returns the table of commands. It is a function because help, one of the rows, prints the table.
func commands() []command {
	return []command{
		{"serve", "run the proxy (also without any command)", "", configured(serve)},
		{"init", "mark the masters of a new deployment clean, so that their votes count (--yes: do not ask)", usageInit, runInit},
		{"check", "look at every master and say whether a quorum could vote", usageCheck, configured(check)},
		{"scripts", "print the table of known scripts; scripts explain FILE: how a text is treated, and why", usageScripts, scripts},
		{"version", "print the version", usageVersion, runVersion},
		{"help", "print this text; help COMMAND, or COMMAND --help: how to use that", "", runHelp},
	}
}

// aliases are flags that people try.
var aliases = map[string]string{"-h": "help", "--h": "help", "-help": "help", "--help": "help", "-v": "version", "-version": "version", "--version": "version"}

// run returns the exit code. Output that could not be written is a failure: half of it in a file must not be taken for all.
func run(args, env []string, stdout, stderr io.Writer) int {
	out := &output{to: stdout}
	code := runNamed(args, env, out, stderr)
	if out.err != nil {
		fmt.Fprintln(stderr, "lockproxy: the output is not complete:", out.err)
		code = max(code, exitFailure)
	}
	return code
}

// An output remembers the first error of writing to it.
type output struct {
	to  io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.to.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// runNamed runs what the first argument names.
func runNamed(args, env []string, stdout, stderr io.Writer) int {
	name := "serve"
	if len(args) > 0 && (!strings.HasPrefix(args[0], "-") || aliases[args[0]] != "") {
		name, args = args[0], args[1:]
		if alias := aliases[name]; alias != "" {
			name = alias
		}
	}
	var names []string
	for _, c := range commands() {
		if c.name == name && slices.ContainsFunc(args, isHelp) {
			writeUsage(stdout, c)
			return exitOK
		}
		if c.name == name {
			return c.run(args, env, stdout, stderr)
		}
		names = append(names, c.name)
	}
	mend := "see lockproxy help"
	if near := config.Nearest(name, names); near != "" {
		mend = "did you mean " + near + "?"
	}
	fmt.Fprintf(stderr, "lockproxy: %s is no command; %s\n", config.WithoutPassword(name), mend)
	return exitUsage
}

// configured makes a command of what runs with the settings alone.
func configured(run func(l *config.Loaded, stdout, stderr io.Writer) int) func(args, env []string, stdout, stderr io.Writer) int {
	return func(args, env []string, stdout, stderr io.Writer) int {
		l, code := load(args, env, stderr)
		if l == nil {
			return code
		}
		return run(l, stdout, stderr)
	}
}

func runInit(args, env []string, stdout, stderr io.Writer) int {
	yes, args := takeYes(args)
	l, code := load(args, env, stderr)
	if l == nil {
		return code
	}
	return initialise(l, yes, os.Stdin, stdout, stderr)
}

func runVersion(_, _ []string, stdout, _ io.Writer) int {
	fmt.Fprintln(stdout, "lockproxy", versionText())
	return exitOK
}

// runHelp is help, or the help of the command that is named.
func runHelp(args, env []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		return runNamed([]string{args[0], "--help"}, env, stdout, stderr)
	}
	writeHelp(stdout)
	return exitOK
}

func isHelp(arg string) bool { return aliases[arg] == "help" }

// load returns the settings, or nil and the exit code.
func load(args, env []string, stderr io.Writer) (*config.Loaded, int) {
	l, err := config.Load(args, env)
	return loaded(l, err, stderr)
}

// loaded tells what is wrong with the settings. It returns nil then, and the exit code.
func loaded(l *config.Loaded, err error, stderr io.Writer) (*config.Loaded, int) {
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(stderr, "lockproxy: %s\n", strings.TrimSuffix(line, "\n"))
		}
		return nil, exitUsage
	}
	return l, exitOK
}

// takeYes takes --yes out of the flags.
func takeYes(args []string) (bool, []string) {
	isYes := func(a string) bool { return a == "--yes" || a == "-yes" || a == "-y" }
	return slices.ContainsFunc(args, isYes), slices.DeleteFunc(slices.Clone(args), isYes)
}

// How the commands that do not serve are used.
const (
	usageInit = `lockproxy init --config lockproxy.yaml
  lockproxy init --masters 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379

Run it once, when the masters are new: it marks them clean, so that their votes count at once. It shows what is on them, and asks
before it marks anything; --yes goes on without asking. Do it only while no client holds a lock: that could be taken a second time.

Exit codes: 0: they are marked. 1: nothing, or not all, was marked. 2: a flag or a setting is wrong.
` + usageFlags
	usageCheck = `lockproxy check --config lockproxy.yaml
  lockproxy check --masters 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379

It looks at every master, and at the upstream, if there is one, and says what is wrong with each, and whether a quorum could vote.
It changes no data.

Exit codes: 0: a quorum could vote. 1: it could not, the upstream could not be used, or a proxy in front of it takes other
names for locks. 2: a flag or a setting is wrong.
` + usageFlags
	usageScripts = `lockproxy scripts
  lockproxy scripts explain release.lua

It prints the table of known scripts; or how the Lua text in a file, or in - for standard input, is treated, and why. With --config
or --scripts, the rows of your own count, too.
` + usageFlags
	usageVersion = "lockproxy version\n"
	usageFlags   = "\nIts flags are the settings; lockproxy help lists them all.\n"
)

// writeUsage prints how a command is used.
func writeUsage(w io.Writer, c command) {
	if c.usage == "" {
		writeHelp(w)
		return
	}
	fmt.Fprintf(w, "Usage:\n  %s", c.usage)
}

func writeHelp(w io.Writer) {
	fmt.Fprint(w, `lockproxy turns the locks that Redis clients take into Redlock majority locks over independent Redis masters.

Usage:
  lockproxy [command] [flags]

Commands:
`)
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-9s%s\n", c.name, c.help)
	}
	fmt.Fprint(w, `
Examples:
  lockproxy                                                       three embedded masters, for trying out only
  lockproxy --masters 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379   masters of your own
  lockproxy --config lockproxy.yaml                               everything in a file
  lockproxy init --config lockproxy.yaml                          once, when the masters are new
  lockproxy check --config lockproxy.yaml                         would it work?

Exit codes: 0: done. 1: it failed, or check found a fault (help check says which count). 2: a flag or a setting is wrong.

Settings, each as a flag, as LOCKPROXY_NAME in the environment, and as a key of the file; the flag wins, then the
environment, then the file:
`)
	config.WriteHelp(w)
}
