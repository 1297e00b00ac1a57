// Package cli is what a command of lockproxy is told: rows of a table with the command's flags, its text and its exit codes. The
// parser, the text of --help, the man pages and the completion of shells are all made from these rows (parse.go, help.go, man.go,
// complete.go), so that none of them lacks a flag that another one has.
package cli

import (
	"io"
	"slices"
)

// A Command is one thing that lockproxy can be told to do.
type Command struct {
	Name string
	// Help says in one line what the command does.
	Help string
	// Usage are the lines under "Usage:".
	Usage []string
	// Text explains the command. Paragraphs have an empty line between them; lines are broken where they are printed.
	Text string
	// Flags are the command's own.
	Flags []Flag
	// Settings says that the settings of the proxy are flags of the command, too.
	Settings bool
	// Operands are the words that may follow the name, for completion.
	Operands []string
	// Variables are what the command reads in the environment, beside the settings.
	Variables []Word
	// Exits are the exit codes.
	Exits []Word
	// Examples are command lines.
	Examples []string
	// Run gets what follows the name, and returns the exit code.
	Run func(args, env []string, stdout, stderr io.Writer) int
}

// A Word is a word that has a meaning: an exit code, a variable.
type Word struct{ Name, Help string }

// A Flag is one flag of a command.
type Flag struct {
	Name    string // without dashes
	Short   string // one letter, or ""
	Arg     string // what its value is, "" if it has none
	Default string
	Help    string // one line
	Secret  bool   // the flag is refused: a command line is for everybody on the machine to read
	// Set takes the value, or "" where the flag has none. It returns what is wrong with the value.
	Set func(value string) error
}

// Find returns the command of that name, or nil.
func Find(all []Command, name string) *Command {
	i := slices.IndexFunc(all, func(c Command) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Names returns the names of all commands.
func Names(all []Command) []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}
