package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"lockproxy/cmd/lockproxy/cli"
	"lockproxy/cmd/lockproxy/config"
	"lockproxy/cmd/lockproxy/shell"
)

// commands returns the table of commands. Help, man pages and completion are made from it. It is a function because help, one of the
// rows, prints the table.
func commands() []cli.Command {
	all := []cli.Command{
		{Name: "serve", Help: "run the proxy (also without any command)", Settings: true, Run: configured(serve)},
		{
			Name: "init", Help: "mark the masters of a new deployment clean, so that their votes count (--yes: do not ask)", Run: runInit,
			Usage: []string{"lockproxy init --config lockproxy.yaml", "lockproxy init --masters 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379"},
			Text: `Run it once, when the masters are new: it marks them clean, so that their votes count at once. It shows what is on them, and asks before ` +
				`it marks anything; --yes goes on without asking. Do it only while no client holds a lock: that could be taken a second time.`,
			Flags: initFlags(new(bool)), Settings: true,
			Exits: []cli.Word{{Name: "0", Help: "they are marked"}, {Name: "1", Help: "nothing, or not all, was marked"}, usageExit},
		},
		{
			Name: "check", Help: "look at every master and say whether a quorum could vote", Run: runExamination,
			Usage: []string{"lockproxy check --config lockproxy.yaml", "lockproxy check --masters 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379"},
			Text: `It looks at every master, and at the upstream, if there is one, and says what is wrong with each, and whether a quorum could vote. It changes no data.

With --wait it looks again and again until every master votes and nothing else is wrong, so that masters can be restarted one after another by a script. ` +
				`With --config-only it reads the settings, and the files that they name, and asks nobody.`,
			Flags: newExamination().flags(), Settings: true,
			Exits: []cli.Word{
				{Name: "0", Help: "a quorum could vote; with --wait: every master votes"},
				{Name: "1", Help: "it could not, the upstream could not be used, or a proxy in front of it takes other names for locks"}, usageExit,
			},
			Examples: []string{"lockproxy check --config lockproxy.yaml --wait 5m && restart-the-next-master"},
		},
		{
			Name: "scripts", Help: "print the table of known scripts; scripts explain FILE: how a text is treated, and why", Run: scripts,
			Usage: []string{"lockproxy scripts", "lockproxy scripts explain release.lua"},
			Text: `It prints the table of known scripts; or how the Lua text in a file, or in - for standard input, is treated, and why. With --config or ` +
				`--scripts, the rows of your own count, too.`,
			Operands: []string{"explain"}, Settings: true,
			Exits: []cli.Word{{Name: "0", Help: "done"}, {Name: "1", Help: "the file could not be read"}, usageExit},
		},
	}
	all = append(all, shell.Commands()...)
	return append(all,
		cli.Command{
			Name: "man", Help: "print the man page of lockproxy, or of a command", Run: runMan, Operands: cli.Names(all), Flags: manFlags(new(string)),
			Usage: []string{"lockproxy man [COMMAND]", "lockproxy man --dir DIRECTORY"}, Text: "It prints a man page, as in lockproxy man run | man -l -, or writes all of them into a directory, which need not exist.",
			Exits: []cli.Word{{Name: "0", Help: "done"}, {Name: "1", Help: "a file could not be written"}, usageExit},
		},
		cli.Command{
			Name: "completion", Help: "print what a shell needs to complete command lines: bash, zsh or fish", Run: runCompletion, Operands: cli.Shells,
			Usage: []string{"lockproxy completion bash > /etc/bash_completion.d/lockproxy", "lockproxy completion zsh > /usr/share/zsh/site-functions/_lockproxy",
				"lockproxy completion fish > ~/.config/fish/completions/lockproxy.fish"},
			Text: "It prints a script for the shell.", Exits: []cli.Word{{Name: "0", Help: "done"}, usageExit},
		},
		cli.Command{Name: "version", Help: "print the version", Run: runVersion, Usage: []string{"lockproxy version"}, Text: "It prints the version of this binary."},
		cli.Command{Name: "help", Help: "print this text; help COMMAND, or COMMAND --help: how to use that", Run: runHelp},
	)
}

var usageExit = cli.Word{Name: "2", Help: "a flag or a setting is wrong"}

// settingFlags are the settings as flags, for man pages and completion.
func settingFlags() []cli.Flag {
	var all []cli.Flag
	for _, row := range config.Rows() {
		arg := "value"
		if row.File {
			arg = "file"
		}
		all = append(all, cli.Flag{Name: row.Flag, Arg: arg, Default: row.Default, Help: row.Help, Secret: row.Secret})
	}
	return all
}

func initFlags(yes *bool) []cli.Flag {
	return []cli.Flag{{Name: "yes", Short: "y", Help: "do not ask", Set: cli.Yes(yes)}}
}

func runInit(args, env []string, stdout, stderr io.Writer) int {
	var yes bool
	l, code := loadOwn(initFlags(&yes), args, env, stderr)
	if l == nil {
		return code
	}
	return initialise(l, yes, os.Stdin, stdout, stderr)
}

func runExamination(args, env []string, stdout, stderr io.Writer) int {
	e := newExamination()
	l, code := loadOwn(e.flags(), args, env, stderr)
	if l == nil {
		return code
	}
	return e.run(l, stdout, stderr)
}

// loadOwn is load for a command with flags of its own.
func loadOwn(flags []cli.Flag, args, env []string, stderr io.Writer) (*config.Loaded, int) {
	rest, err := cli.Own(flags, args)
	if err != nil {
		fmt.Fprintln(stderr, "lockproxy:", err)
		return nil, exitUsage
	}
	return load(rest, env, stderr)
}

func manFlags(dir *string) []cli.Flag {
	return []cli.Flag{{Name: "dir", Arg: "directory", Help: "write all pages into this directory", Set: cli.Text(dir)}}
}

func runMan(args, _ []string, stdout, stderr io.Writer) int {
	var dir string
	words, _, err := cli.Operands(manFlags(&dir), args)
	all := commands()
	manual := cli.Manual{Program: "lockproxy", Summary: "Redlock majority locks for any Redis client", Version: versionText(), Settings: settingFlags()}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "lockproxy: man:", err)
		return exitUsage
	case dir != "":
		return writePages(&manual, all, dir, stderr)
	case len(words) == 0:
		manual.WriteMain(stdout, documented(all))
		return exitOK
	}
	c := cli.Find(documented(all), words[0])
	if c == nil {
		fmt.Fprintf(stderr, "lockproxy: man: %s has no page; there are %s\n", config.WithoutPassword(words[0]), strings.Join(cli.Names(documented(all)), ", "))
		return exitUsage
	}
	manual.WriteMan(stdout, c)
	return exitOK
}

// documented are the commands that have pages of their own.
func documented(all []cli.Command) []cli.Command {
	var with []cli.Command
	for _, c := range all {
		if c.Text != "" {
			with = append(with, c)
		}
	}
	return with
}

func writePages(manual *cli.Manual, all []cli.Command, dir string, stderr io.Writer) int {
	pages := map[string]func(io.Writer){"lockproxy.1": func(w io.Writer) { manual.WriteMain(w, documented(all)) }}
	for _, c := range documented(all) {
		pages["lockproxy-"+c.Name+".1"] = func(w io.Writer) { manual.WriteMan(w, &c) }
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everybody
		fmt.Fprintln(stderr, "lockproxy: man:", err)
		return exitFailure
	}
	for name, write := range pages {
		var page strings.Builder
		write(&page)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(page.String()), 0o644); err != nil { //nolint:gosec // a page for everybody
			fmt.Fprintln(stderr, "lockproxy: man:", err)
			return exitFailure
		}
	}
	return exitOK
}

func runCompletion(args, _ []string, stdout, stderr io.Writer) int {
	var known string
	if len(args) != 1 || cli.OneOf(&known, cli.Shells...)(args[0]) != nil {
		fmt.Fprintln(stderr, "lockproxy: completion: name one shell:", strings.Join(cli.Shells, ", "))
		return exitUsage
	}
	cli.WriteCompletion(stdout, known, "lockproxy", commands(), settingFlags())
	return exitOK
}
