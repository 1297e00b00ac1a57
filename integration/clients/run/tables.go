package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A table stands in a file of the repository, after the line begin.
type table struct{ file, begin, head string }

const tableEnd = "<!-- end of the table -->"

var (
	lockTable = table{"docs/clients.md", "<!-- the table of make test-clients -->",
		"| language | library | versions | scenarios passed | not in the library | does not work, and why |\n" +
			"| --- | --- | --- | --- | --- | --- |\n"}
	dataTable = table{"docs/upstream.md", "<!-- the table of make test-clients CLIENTSFLAGS=-upstream -->",
		"| language | library | versions | used beside a lock |\n" +
			"| --- | --- | --- | --- |\n"}
)

// update compares the table with the rows, or writes it. Rows of languages that were not run stay.
func (t table) update(root string, ran []prepared, rows []string, write bool) error {
	path := filepath.Join(root, t.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), t.begin+"\n")
	old, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		return fmt.Errorf("%s has no lines %q and %q", path, t.begin, tableEnd)
	}
	fresh := t.merge(old, ran, rows)
	switch {
	case fresh == old:
		return nil
	case write:
		return os.WriteFile(path, []byte(before+t.begin+"\n"+fresh+tableEnd+after), 0o644)
	}
	return fmt.Errorf("the table of clients in %s is stale; \"make test-clients UPDATE=1\" writes this:\n%s", path, fresh)
}

// merge replaces the rows of the languages that were run, in the order of the languages.
func (t table) merge(old string, ran []prepared, rows []string) string {
	var b strings.Builder
	b.WriteString(t.head)
	for _, l := range languages {
		from := strings.SplitAfter(old, "\n")
		if slices.ContainsFunc(ran, func(p prepared) bool { return p.name == l.name }) {
			from = rows
		}
		for _, row := range from {
			if strings.HasPrefix(row, "| "+l.title+" |") {
				b.WriteString(row)
			}
		}
	}
	return b.String()
}

// lockRows makes a row for each library of how its locks fared.
func lockRows(results []result, known []knownFailure) []string {
	return renderRows(results, func(row result) string { return renderResults(results, known, row) })
}

// dataRows makes a row for each library that was used for more than locks.
func dataRows(results []result) []string {
	results = slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.Scenario != dataScenario || r.Result != ok })
	return renderRows(results, func(row result) string { return row.Used })
}

// renderRows makes a row for each library, which ends with what is rendered; versions with the same share one.
func renderRows(results []result, render func(result) string) []string {
	type group struct {
		language, library, rest string
		versions                []string
	}
	var groups []*group
	for _, r := range rowsOf(results) {
		rest := render(r)
		same := func(g *group) bool { return g.language == r.language && g.library == r.Library && g.rest == rest }
		if i := slices.IndexFunc(groups, same); i >= 0 {
			groups[i].versions = append(groups[i].versions, r.Version)
		} else {
			groups = append(groups, &group{r.language, r.Library, rest, []string{r.Version}})
		}
	}
	place := func(g *group) int { // rows of one library stand together, where its first one does
		return slices.IndexFunc(results, func(r result) bool { return r.language == g.language && r.Library == g.library })
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return place(a) - place(b) })
	var rows []string
	for _, g := range groups {
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |\n", g.language, g.library, strings.Join(g.versions, ", "), g.rest))
	}
	return rows
}

// renderResults renders how one version of a library fared: the last three columns.
func renderResults(results []result, known []knownFailure, row result) string {
	passed, tried := 0, 0
	var without, reasons []string
	for _, r := range results {
		if r.Library != row.Library || r.Version != row.Version {
			continue
		}
		switch r.Result {
		case absent:
			without = append(without, r.Scenario)
			continue
		case ok:
			passed++
		case failed:
			reasons = addReason(reasons, r.Scenario, reasonFor(r, known))
		}
		tried++
	}
	if why := reasonFor(result{Library: row.Library, Version: row.Version, Scenario: "*"}, known); why != "" && passed == 0 {
		reasons = []string{"everything: " + why}
	}
	return fmt.Sprintf("%d of %d | %s | %s", passed, tried, orDash(strings.Join(without, ", ")), orDash(strings.Join(reasons, "; ")))
}

// addReason says a reason once, after the names of all scenarios that fail for it.
func addReason(reasons []string, scenario, why string) []string {
	for i, r := range reasons {
		if names, found := strings.CutSuffix(r, ": "+why); found {
			reasons[i] = names + ", " + scenario + ": " + why
			return reasons
		}
	}
	return append(reasons, scenario+": "+why)
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
