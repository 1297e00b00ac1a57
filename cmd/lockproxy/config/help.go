package config

import (
	"fmt"
	"io"
	"strings"
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

// A Row is a setting as help and completion show it.
type Row struct {
	Flag    string // without dashes
	Default string
	Help    string
	Secret  bool // it has no flag
	File    bool // its value is a file
}

// Rows returns all settings, and --config.
func Rows() []Row {
	rows := []Row{{Flag: "config", Help: "YAML file with any of the settings (config.example.yaml is the manual)", File: true}}
	for _, s := range settings {
		name := strings.TrimPrefix(flagOf(s.name), "--")
		rows = append(rows, Row{name, s.def, s.help, s.secret, strings.HasPrefix(s.help, "PEM file") || strings.HasPrefix(s.help, "file ")})
	}
	return rows
}
