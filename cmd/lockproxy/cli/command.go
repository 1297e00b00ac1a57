// Package cli describes the commands of lockproxy: rows of a table with each command's flags, text and exit codes. The parser, the
// text of --help, the man pages and the completion of shells are all made from these rows (parse.go, help.go, man.go, complete.go), so
// all four know the same flags.
package cli

import (
	"io"
	"slices"
)

// A Command is a command of lockproxy, such as run or check.
type Command struct {
	Name string
	// Help is the command's purpose in one line.
	Help string
	// Usage are the lines under "Usage:".
	Usage []string
	// Text explains the command. Paragraphs are parted by an empty line; lines are broken when printed.
	Text string
	// Flags are the command's own.
	Flags []Flag
	// Settings is true if the settings of the proxy are flags of the command, too.
	Settings bool
	// Operands are the words that may follow the name, for completion.
	Operands []string
	// Variables are the environment variables that the command reads, beside the settings.
	Variables []Word
	// Exits are the exit codes.
	Exits []Word
	// Examples are command lines.
	Examples []string
	// Run gets the words after the name, and returns the exit code.
	Run func(args, env []string, stdout, stderr io.Writer) int
}

// A Word is a word with its meaning: an exit code, a variable.
type Word struct{ Name, Help string }

// A Flag is one flag of a command.
type Flag struct {
	Name    string // without dashes
	Short   string // one letter, or ""
	Arg     string // the kind of value, "" without a value
	Default string
	Help    string   // one line
	Values  []string // all values that the flag takes, for completion; nil: others, too
	Secret  bool     // the flag is refused: a command line is for everybody on the machine to read
	// Set takes the value, or "" for a flag without a value. The error says why the value is wrong.
	Set func(value string) error
}

// Find returns the named command, or nil.
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
