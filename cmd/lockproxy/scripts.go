package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/quorum"
	"lockproxy/script"
)

// scripts prints the table of known scripts, or says how one text would be treated. What is not "explain FILE" of its
// arguments are settings.
func scripts(args, env []string, stdout, stderr io.Writer) int {
	file := ""
	if len(args) > 0 && args[0] == "explain" {
		if len(args) == 1 || strings.HasPrefix(args[1], "--") {
			fmt.Fprintln(stderr, "lockproxy: scripts explain needs a file with a Lua text, or - for standard input")
			return exitUsage
		}
		file, args = args[1], args[2:]
	}
	l, code := load(args, env, stdout, stderr)
	if l == nil {
		return code
	}
	rows := scriptRows(l.Config)
	if file == "" {
		writeFamilies(stdout, append(rows, script.Families()...))
		return exitOK
	}
	text, err := readText(file)
	if err == nil {
		text = strings.TrimSuffix(text, "\n") // which editors add, and libraries do not send
		var lines []string
		if lines, err = script.Explain(text, quorum.MayVote, rows...); err == nil {
			fmt.Fprintln(stdout, strings.Join(lines, "\n"))
			return exitOK
		}
	}
	fmt.Fprintf(stderr, "lockproxy: %s: %v\n", file, err)
	return exitFailure
}

func readText(file string) (string, error) {
	if file == "-" {
		text, err := io.ReadAll(os.Stdin)
		return string(text), err
	}
	text, err := os.ReadFile(file) //nolint:gosec // a file that the user named
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return string(text), err
}

// scriptRows returns the rows that the configuration adds to the table.
func scriptRows(c *config.Config) []script.Family {
	rows := make([]script.Family, len(c.Scripts))
	for i, s := range c.Scripts {
		kind, _ := script.ParseFamilyKind(s.Kind) // config has checked both
		granted, _ := script.ParseGrant(s.Granted)
		rows[i] = script.Family{SHA: s.SHA1, Kind: kind, Granted: granted, Holder: s.Holder,
			Library: "scripts:", Does: s.Name, Why: "the configuration says so"}
	}
	return rows
}

func writeFamilies(w io.Writer, rows []script.Family) {
	fmt.Fprintf(w, "%-8s %-9s %-40s %s\n", "KIND", "GRANTED", "SHA-1 OR SHAPE", "WHAT IT IS")
	for _, f := range rows {
		granted := "-"
		if f.Kind == script.Takes || f.Kind == script.Extends || f.Kind == script.Releases {
			granted = f.Granted.String()
		}
		fmt.Fprintf(w, "%-8v %-9s %-40s %s: %s\n", f.Kind, granted, f.SHA+f.Shape, f.Library, f.Does)
	}
	fmt.Fprint(w, `
Operations on one string key are understood by what they do, whoever sends them. These are known to be sent:

`)
	for _, u := range script.Understoods() {
		fmt.Fprintf(w, "%-8s %-12s %s\n", u.Does, u.Shape, u.Libraries)
	}
	fmt.Fprint(w, `
Any other text runs by vote. lockproxy scripts explain FILE says how a text is treated.
`)
}
