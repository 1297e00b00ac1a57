package config

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteHelp prints every setting: its flag, its default and its purpose.
func WriteHelp(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "  --config file\t\tYAML file with any of the settings below (config.example.yaml is the manual)")
	for _, s := range settings {
		name := flagOf(s.name)
		if s.secret {
			name = variableOf(s.name)
		}
		def := s.def
		if def == "" {
			def = "-"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", name, def, s.help)
	}
	_ = table.Flush()
}
