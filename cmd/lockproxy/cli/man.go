package cli

import (
	"fmt"
	"io"
	"strings"
)

// A Manual is the content of man pages beside the rows of the table.
type Manual struct {
	Program string // lockproxy
	Summary string // one line
	Version string
	// Settings are the settings' flags.
	Settings []Flag
}

// WriteMan prints the man page of a command.
func (m *Manual) WriteMan(w io.Writer, c *Command) {
	name := m.Program + "-" + c.Name
	m.head(w, name, c.Help)
	fmt.Fprint(w, ".SH SYNOPSIS\n")
	for _, line := range c.Usage {
		fmt.Fprintf(w, ".B %s\n.br\n", roff(line))
	}
	fmt.Fprint(w, ".SH DESCRIPTION\n")
	for i, paragraph := range strings.Split(strings.TrimSpace(c.Text), "\n\n") {
		if i > 0 {
			fmt.Fprint(w, ".PP\n")
		}
		fmt.Fprint(w, roff(Wrap(paragraph, columns)))
	}
	manFlags(w, "OPTIONS", c.Flags)
	if c.Settings {
		manFlags(w, "SETTINGS", m.Settings)
	}
	manWords(w, "ENVIRONMENT", c.Variables)
	manWords(w, "EXIT STATUS", c.Exits)
	if len(c.Examples) > 0 {
		fmt.Fprint(w, ".SH EXAMPLES\n.nf\n")
		for _, e := range c.Examples {
			fmt.Fprintf(w, "%s\n", roff(e))
		}
		fmt.Fprint(w, ".fi\n")
	}
	fmt.Fprintf(w, ".SH SEE ALSO\n.BR %s (1)\n", roff(m.Program))
}

// WriteMain prints the man page of the program, which names all commands and all settings.
func (m *Manual) WriteMain(w io.Writer, all []Command) {
	m.head(w, m.Program, m.Summary)
	fmt.Fprintf(w, ".SH SYNOPSIS\n.B %s\n[command] [flags]\n.SH COMMANDS\n", roff(m.Program))
	for _, c := range all {
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(c.Name), roff(c.Help))
	}
	manFlags(w, "SETTINGS", m.Settings)
	fmt.Fprint(w, ".SH SEE ALSO\n")
	for i, c := range all {
		comma := ","
		if i == len(all)-1 {
			comma = ""
		}
		fmt.Fprintf(w, ".BR %s (1)%s\n", roff(m.Program+"-"+c.Name), comma)
	}
}

func (m *Manual) head(w io.Writer, name, summary string) {
	fmt.Fprintf(w, ".TH %s 1 \"\" \"%s %s\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(roff(name)), roff(m.Program), roff(m.Version), roff(name), roff(summary))
}

func manFlags(w io.Writer, title string, flags []Flag) {
	if len(flags) == 0 {
		return
	}
	fmt.Fprintf(w, ".SH %s\n", title)
	for _, f := range flags {
		if f.Secret {
			continue
		}
		text := f.Help
		if f.Default != "" {
			text += " (default: " + f.Default + ")"
		}
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(f.usage()), roff(text))
	}
}

func manWords(w io.Writer, title string, words []Word) {
	if len(words) == 0 {
		return
	}
	fmt.Fprintf(w, ".SH %s\n", title)
	for _, word := range words {
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(word.Name), roff(word.Help))
	}
}

// roff writes a text so that none of it is taken for a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
