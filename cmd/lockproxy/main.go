// Command lockproxy listens for Redis clients and turns their locking commands into Redlock majority locks over N
// independent Redis masters.
//
// commands.go is the table of commands, main.go runs a command, serve.go has the order in which a proxy is built and torn down, check.go
// looks at masters. Flags and help are in cli; commands that need nothing but a proxy, as run, are in shell. The settings are in
// config, the operators' pages in admin, the masters for trying out in embedded, cheaper sockets in sock, renewed certificates and
// passwords in renewed.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"lockproxy/cmd/lockproxy/cli"
	"lockproxy/cmd/lockproxy/config"
)

func main() {
	code := run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	runtime.KeepAlive(ballast)
	os.Exit(code)
}

// ballast is memory that is never touched, and so never resident. The collector lets the heap double between its runs, and the
// ballast makes the collector count from 64 MB. Without the ballast a proxy with few clients, which holds a few MB and makes
// hundreds a second, would spend a tenth of its time in the collector.
var ballast = make([]byte, ballastSize(debug.SetMemoryLimit(-1)))

// ballastSize is the size of the ballast under a limit of memory (GOMEMLIMIT). The limit also counts memory that is not resident: if
// the ballast alone reached the limit, the collector would run all the time.
func ballastSize(limit int64) int64 { return min(64<<20, limit/4) }

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2 // what it was told makes no sense
)

// aliases are flags that people try.
var aliases = map[string]string{"-h": "help", "--h": "help", "-help": "help", "--help": "help", "-v": "version", "-version": "version", "--version": "version"}

// run returns the exit code. A failed write of output is a failure: half of the output in a file must not be taken for all.
func run(args, env []string, stdout, stderr io.Writer) int {
	out := &output{to: stdout}
	code := runNamed(args, env, out, stderr)
	if out.err != nil {
		fmt.Fprintln(stderr, "lockproxy: the output is not complete:", out.err)
		code = max(code, exitFailure)
	}
	return code
}

// An output remembers its first failed write.
type output struct {
	to  io.Writer
	err error
}

// File returns the file of the output, or nil. Drawing on a terminal needs the file.
func (o *output) File() *os.File {
	file, _ := o.to.(*os.File)
	return file
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.to.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// runNamed runs the command named by the first argument.
func runNamed(args, env []string, stdout, stderr io.Writer) int {
	name := "serve"
	if len(args) > 0 && (!strings.HasPrefix(args[0], "-") || aliases[args[0]] != "") {
		name, args = args[0], args[1:]
		if alias := aliases[name]; alias != "" {
			name = alias
		}
	}
	all := commands()
	if c := cli.Find(all, name); c != nil {
		if slices.ContainsFunc(before(args, "--"), isHelp) {
			writeUsage(stdout, c)
			return exitOK
		}
		return c.Run(args, env, stdout, stderr)
	}
	mend := "see lockproxy help"
	if near := config.Nearest(name, cli.Names(all)); near != "" {
		mend = "did you mean " + near + "?"
	}
	fmt.Fprintf(stderr, "lockproxy: %s is no command; %s\n", config.WithoutPassword(name), mend)
	return exitUsage
}

// before returns the text before a word, or the whole text.
func before(args []string, word string) []string {
	if i := slices.Index(args, word); i >= 0 {
		return args[:i]
	}
	return args
}

// configured makes a command of a function that needs the settings alone.
func configured(run func(l *config.Loaded, stdout, stderr io.Writer) int) func(args, env []string, stdout, stderr io.Writer) int {
	return func(args, env []string, stdout, stderr io.Writer) int {
		l, code := load(args, env, stderr)
		if l == nil {
			return code
		}
		return run(l, stdout, stderr)
	}
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

// loaded returns the settings and exitOK. If the settings are wrong, loaded prints each error to stderr, and returns nil and exitUsage.
func loaded(l *config.Loaded, err error, stderr io.Writer) (*config.Loaded, int) {
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(stderr, "lockproxy: %s\n", strings.TrimSuffix(line, "\n"))
		}
		return nil, exitUsage
	}
	return l, exitOK
}

// writeUsage prints how a command is used. Those that have no text of their own are explained by the help.
func writeUsage(w io.Writer, c *cli.Command) {
	if c.Text == "" {
		writeHelp(w)
		return
	}
	c.WriteHelp(w)
}

func writeHelp(w io.Writer) {
	fmt.Fprint(w, `lockproxy turns the locks that Redis clients take into Redlock majority locks over independent Redis masters.

Usage:
  lockproxy [command] [flags]

Commands:
`)
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-12s%s\n", c.Name, c.Help)
	}
	fmt.Fprint(w, `
Examples:
  lockproxy                                                       three embedded masters, for trying out only
  lockproxy --masters 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379   masters of your own
  lockproxy --config lockproxy.yaml                               everything in a file
  lockproxy init --config lockproxy.yaml                          once, when the masters are new
  lockproxy check --config lockproxy.yaml                         would it work?
  lockproxy run job:7 -- backup                                   run a command under a lock

Exit codes: 0: done. 1: it failed, or check found a fault (help check says which count). 2: a flag or a setting is wrong. Those of
run, locks, status and top are others; help COMMAND has them.

Settings, each as a flag, as LOCKPROXY_NAME in the environment, and as a key of the file; the flag wins, then the
environment, then the file:
`)
	config.WriteHelp(w)
}
