package main

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/quorum"
	"lockproxy/script"
)

// scripts prints the table of known scripts, or, as "scripts explain FILE", says how one text would be treated.
func scripts(args, env []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "explain" {
		return explain(args[1:], env, stdout, stderr)
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		fmt.Fprintf(stderr, "lockproxy: scripts %s is no command; there are scripts and scripts explain FILE\n", config.WithoutPassword(args[0]))
		return exitUsage
	}
	l, code := load(args, env, stderr)
	if l == nil {
		return code
	}
	writeFamilies(stdout, slices.Concat(l.Config.Scripts, script.Families()))
	return exitOK
}

func explain(args, env []string, stdout, stderr io.Writer) int {
	l, err := config.LoadWithOperand(args, env)
	l, code := loaded(l, err, stderr)
	if l == nil {
		return code
	}
	file := l.Operand
	if file == "" {
		fmt.Fprintln(stderr, "lockproxy: scripts explain needs a file with a Lua text, or - for standard input")
		return exitUsage
	}
	if err := writeExplanation(stdout, file, l.Config.Scripts); err != nil {
		fmt.Fprintf(stderr, "lockproxy: %s: %v\n", file, err)
		return exitFailure
	}
	return exitOK
}

func writeExplanation(w io.Writer, file string, rows []script.Family) error {
	whole, err := readText(file)
	if err != nil {
		return err
	}
	text, cut := strings.CutSuffix(whole, "\n") // which editors add, and libraries do not send
	lines, err := script.Explain(text, quorum.MayVote, rows...)
	if err != nil {
		return err
	}
	if cut {
		fmt.Fprintf(w, "The newline at the end of the file is left out, as libraries do not send it; with it, the SHA-1 would be %x.\n",
			sha1.Sum([]byte(whole)))
	}
	fmt.Fprintln(w, strings.Join(lines, "\n"))
	return nil
}

func readText(file string) (string, error) {
	from := os.Stdin
	if file != "-" {
		var err error
		if from, err = os.Open(file); err != nil { //nolint:gosec // a file that the user named
			return "", unreadable(err)
		}
		defer func() { _ = from.Close() }()
	}
	text, err := io.ReadAll(io.LimitReader(from, 1<<20)) // what is longer is no script that is kept
	return string(text), unreadable(err)
}

// unreadable is an error of reading a file that the user named.
func unreadable(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return fmt.Errorf("cannot be read: %w; name a file with a Lua text, or - for standard input", path.Err)
	}
	return err
}

func writeFamilies(w io.Writer, rows []script.Family) {
	fmt.Fprintf(w, "%-8s %-9s %-40s %s\n", "KIND", "GRANTED", "SHA-1 OR SHAPE", "WHAT IT IS")
	for _, f := range rows {
		granted := "-"
		if f.Kind.Grants() {
			granted = f.Granted.String()
		}
		fmt.Fprintf(w, "%-8v %-9s %-40s %s: %s\n", f.Kind, granted, f.SHA+f.Shape, f.Library, f.Does)
	}
	fmt.Fprint(w, `
Operations on one string key are understood by what they do, whoever sends them. These are known to be sent:

`)
	for _, u := range script.KnownTexts() {
		fmt.Fprintf(w, "%-8s %-12s %s\n", u.Does, u.Shape, u.Libraries)
	}
	fmt.Fprint(w, `
Any other text runs by vote. lockproxy scripts explain FILE says how a text is treated.
`)
}
