package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Shells are the shells with completion.
var Shells = []string{"bash", "zsh", "fish"}

// WriteCompletion prints the script by which a shell completes command lines. settings are the settings' flags, for commands that take
// settings.
func WriteCompletion(w io.Writer, shell, program string, all []Command, settings []Flag) {
	switch shell {
	case "bash":
		writeBash(w, program, all, settings)
	case "zsh":
		writeZsh(w, program, all, settings)
	case "fish":
		writeFish(w, program, all, settings)
	}
}

// flagsOf returns the flags that a command completes.
func flagsOf(c *Command, settings []Flag) []Flag {
	all := slices.Clone(c.Flags)
	if c.Settings {
		all = append(all, settings...)
	}
	all = append(all, Flag{Name: "help", Help: "how to use the command"})
	return slices.DeleteFunc(all, func(f Flag) bool { return f.Secret })
}

// isFile says whether a flag's value is a file.
func isFile(f Flag) bool { return f.Arg == "file" }

func writeBash(w io.Writer, program string, all []Command, settings []Flag) {
	fmt.Fprintf(w, "# bash completion for %s\n_%s() {\n", program, program)
	fmt.Fprint(w, `  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} i
  COMPREPLY=()
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then COMPREPLY=($(compgen -c -f -- "$cur")); return; fi
  done
`)
	fmt.Fprintf(w, "  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W %s -- \"$cur\")); return; fi\n", quoted(strings.Join(Names(all), " ")))
	fmt.Fprint(w, "  case $command in\n")
	for i := range all {
		c := &all[i]
		var flags, files, valued []string
		var chosen string // the lines for flags with few values
		for _, f := range flagsOf(c, settings) {
			flags = append(flags, "--"+f.Name)
			switch {
			case isFile(f):
				files = append(files, "--"+f.Name)
			case len(f.Values) > 0:
				chosen += fmt.Sprintf("    case $prev in --%s) COMPREPLY=($(compgen -W %s -- \"$cur\")); return ;; esac\n", f.Name, quoted(strings.Join(f.Values, " ")))
			case f.Arg != "":
				valued = append(valued, "--"+f.Name)
			}
		}
		fmt.Fprintf(w, "  %s)\n", c.Name)
		if len(files) > 0 {
			fmt.Fprintf(w, "    case $prev in %s) COMPREPLY=($(compgen -f -- \"$cur\")); return ;; esac\n", strings.Join(files, "|"))
		}
		fmt.Fprint(w, chosen)
		if len(valued) > 0 {
			fmt.Fprintf(w, "    case $prev in %s) return ;; esac\n", strings.Join(valued, "|"))
		}
		words := append(flags, words(c)...)
		fmt.Fprintf(w, "    COMPREPLY=($(compgen -W %s -- \"$cur\")) ;;\n", quoted(strings.Join(words, " ")))
	}
	fmt.Fprintf(w, "  esac\n}\ncomplete -F _%s %s\n", program, program)
}

// words are the operands to be typed as they stand. An operand in capitals, as KEY, is a placeholder.
func words(c *Command) []string {
	return slices.DeleteFunc(slices.Clone(c.Operands), func(o string) bool { return o == strings.ToUpper(o) })
}

func writeZsh(w io.Writer, program string, all []Command, settings []Flag) {
	fmt.Fprintf(w, "#compdef %s\n_%s() {\n  local -a commands\n  commands=(\n", program, program)
	for _, c := range all {
		fmt.Fprintf(w, "    %s\n", quoted(c.Name+":"+strings.ReplaceAll(c.Help, ":", `\:`)))
	}
	fmt.Fprint(w, "  )\n  if ((CURRENT == 2)); then _describe command commands; return; fi\n")
	fmt.Fprintf(w, `  local at=${words[(i)--]}
  if ((at < CURRENT)); then
    words=("${(@)words[at+1,-1]}")
    ((CURRENT -= at))
    if ((CURRENT == 1)); then _command_names; else _normal -p %s; fi
    return
  fi
`, program)
	fmt.Fprint(w, "  case ${words[2]} in\n")
	for i := range all {
		c := &all[i]
		fmt.Fprintf(w, "  %s) _arguments \\\n", c.Name)
		for _, f := range flagsOf(c, settings) {
			help := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(f.Help)
			value := ""
			switch {
			case isFile(f):
				value = ":file:_files"
			case len(f.Values) > 0:
				value = ":" + f.Arg + ":(" + strings.Join(f.Values, " ") + ")"
			case f.Arg != "":
				value = ":" + f.Arg + ":"
			}
			fmt.Fprintf(w, "    %s \\\n", quoted("--"+f.Name+"["+help+"]"+value))
		}
		operands := "'*: :'"
		if named := words(c); len(named) > 0 {
			operands = quoted("*: :(" + strings.Join(named, " ") + ")")
		}
		fmt.Fprintf(w, "    %s ;;\n", operands)
	}
	fmt.Fprintf(w, "  esac\n}\nif [ \"$funcstack[1]\" = \"_%s\" ]; then _%s \"$@\"; else compdef _%s %s; fi\n", program, program, program, program)
}

func writeFish(w io.Writer, program string, all []Command, settings []Flag) {
	fmt.Fprintf(w, "# fish completion for %s\ncomplete -c %s -f\n", program, program)
	fmt.Fprintf(w, "complete -c %s -n 'contains -- -- (commandline -opc)' -x -a '(set -l all (commandline -opc) (commandline -ct); "+
		"complete -C (string join \" \" -- $all[(math (contains -i -- -- $all) + 1)..-1]))'\n", program)
	for i := range all {
		c := &all[i]
		fmt.Fprintf(w, "complete -c %s -n __fish_use_subcommand -a %s -d %s\n", program, c.Name, quoted(c.Help))
		for _, f := range flagsOf(c, settings) {
			takes := ""
			switch {
			case isFile(f):
				takes = " -r -F"
			case len(f.Values) > 0:
				takes = " -x -a " + quoted(strings.Join(f.Values, " "))
			case f.Arg != "":
				takes = " -x"
			}
			fmt.Fprintf(w, "complete -c %s -n '__fish_seen_subcommand_from %s' -l %s%s -d %s\n", program, c.Name, f.Name, takes, quoted(f.Help))
		}
		if named := words(c); len(named) > 0 {
			fmt.Fprintf(w, "complete -c %s -n '__fish_seen_subcommand_from %s' -a %s\n", program, c.Name, quoted(strings.Join(named, " ")))
		}
	}
}

// quoted is a word in single quotes, for any shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
