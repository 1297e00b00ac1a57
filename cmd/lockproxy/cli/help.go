package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// columns is how wide --help is.
const columns = 100

// WriteHelp prints how a command is used.
func (c *Command) WriteHelp(w io.Writer) {
	fmt.Fprint(w, "Usage:\n")
	for _, line := range c.Usage {
		fmt.Fprintf(w, "  %s\n", line)
	}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(c.Text), "\n\n") {
		fmt.Fprintf(w, "\n%s", Wrap(paragraph, columns))
	}
	if len(c.Flags) > 0 {
		fmt.Fprint(w, "\nFlags:\n")
		table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		for _, f := range c.Flags {
			if f.Secret {
				continue
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\n", f.usage(), dash(f.Default), f.Help)
		}
		_ = table.Flush()
	}
	writeWords(w, "Environment", c.Variables)
	writeWords(w, "Exit codes", c.Exits)
	if len(c.Examples) > 0 {
		fmt.Fprint(w, "\nExamples:\n")
		for _, e := range c.Examples {
			fmt.Fprintf(w, "  %s\n", e)
		}
	}
	if c.Settings {
		fmt.Fprint(w, "\nThe settings are flags, too; lockproxy help lists them all.\n")
	}
}

// usage is the flag as one writes it.
func (f *Flag) usage() string {
	text := "--" + f.Name
	if f.Short != "" {
		text = "-" + f.Short + ", " + text
	}
	if f.Arg != "" {
		text += " " + f.Arg
	}
	return text
}

func writeWords(w io.Writer, title string, words []Word) {
	if len(words) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, word := range words {
		fmt.Fprintf(table, "  %s\t%s\n", word.Name, word.Help)
	}
	_ = table.Flush()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Wrap breaks a paragraph into lines of at most so many columns, each with a newline.
func Wrap(paragraph string, most int) string {
	var b strings.Builder
	at := 0
	for _, word := range strings.Fields(paragraph) {
		if n := len([]rune(word)); at > 0 && at+1+n > most {
			b.WriteByte('\n')
			at = 0
		} else if at > 0 {
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len([]rune(word))
	}
	b.WriteByte('\n')
	return b.String()
}
