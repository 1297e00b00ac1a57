package integration

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

var (
	exampleBlock = regexp.MustCompile("(?s)```\n(\\$ redis-cli.*?)```")
	longNumber   = regexp.MustCompile(`\d{4,}`) // ports, milliseconds, fences: another time they are others
	fenceNumber  = regexp.MustCompile(`\d{13,}`)
)

// An example is what a page says to type, and what it says comes back, or begins what comes back.
type example struct {
	typed, want string
	begins      bool
}

// readExamples reads the pages' examples of redis-cli, and what sets variables for them.
func readExamples(t *testing.T) []example {
	t.Helper()
	var text []byte
	for _, page := range []string{"../README.md", "../docs/commands.md"} {
		one, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, one...)
	}
	var all []example
	for _, block := range exampleBlock.FindAllStringSubmatch(string(text), -1) {
		for _, step := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			typed, want, _ := strings.Cut(step, "\n")
			want, _, begins := strings.Cut(want, "…")
			all = append(all, example{typed, strings.TrimSpace(longNumber.ReplaceAllString(want, "N")), begins})
		}
	}
	return all
}

// What the pages show is what their reader sees.
func TestExamplesComeOutAsPrinted(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		missing(t, "LOCKPROXY_REQUIRE_REDIS", "redis-cli is not installed")
	}
	examples := readExamples(t)
	if len(examples) < 11 {
		t.Fatalf("found %d examples only", len(examples))
	}
	proxy := startProxy(t, harness.Addrs(startMasters(t, 3)))
	_, port, _ := net.SplitHostPort(proxy.Addr)
	variables, fence := "", ""
	for _, e := range examples {
		if !strings.HasPrefix(e.typed, "redis-cli ") {
			variables += e.typed + "\n"
			continue
		}
		line := strings.NewReplacer("redis-cli ", "redis-cli --no-raw ", "-p 6380", "-p "+port).Replace(e.typed)
		line = fenceNumber.ReplaceAllLiteralString(line, fence)
		run := func() error {
			out, err := exec.Command("sh", "-c", variables+line).CombinedOutput()
			fence = cmp.Or(string(fenceNumber.Find(out)), fence)
			got := strings.TrimSpace(strings.ReplaceAll(longNumber.ReplaceAllString(string(out), "N"), " \n", "\n"))
			if err != nil || got != e.want && !(e.begins && strings.HasPrefix(got, e.want)) {
				return errors.Join(err, fmt.Errorf("%s\nprints\n%s\nand not\n%s", e.typed, got, e.want))
			}
			return nil
		}
		if strings.Contains(line, " LOCKINFO ") { // the last master may be later than the quorum
			eventually(t, 10*time.Second, "what each master says", run)
		} else if err := run(); err != nil {
			t.Error(err)
		}
	}
}

var (
	codeBlock = regexp.MustCompile("(?s)```.*?```")
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInLink = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	link      = regexp.MustCompile(`\]\(([^)#]*)#?([^)]*)\)`)
)

// anchors returns what links can lead to in a page.
func anchors(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, h := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(text), ""), -1) {
		all = append(all, strings.ReplaceAll(notInLink.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return all
}

func TestLinksInThePagesLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, page := range append(pages, "../README.md", "../CHANGELOG.md", "../CONTRIBUTING.md", "../SECURITY.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			links++
			to := page
			if l[1] != "" {
				to = filepath.Join(filepath.Dir(page), l[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if l[2] != "" && !slices.Contains(anchors(t, to), l[2]) {
				t.Errorf("%s: %s has no heading #%s", page, to, l[2])
			}
		}
	}
	if links < 10 {
		t.Errorf("found %d links only", links)
	}
}

var sourceFile = regexp.MustCompile("`([a-z0-9_/]+\\.(?:go|lua))`")

// A file that was renamed has its new name in the pages for those who change the code.
func TestFilesInThePagesAreThere(t *testing.T) {
	var files []string
	err := filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Name() == ".git" {
			return filepath.SkipDir
		}
		files = append(files, filepath.ToSlash(path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"../docs/architecture.md", "../docs/proofs.md", "../CONTRIBUTING.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range sourceFile.FindAllStringSubmatch(string(text), -1) {
			if !slices.ContainsFunc(files, func(path string) bool { return strings.HasSuffix(path, "/"+name[1]) }) {
				t.Errorf("%s names %s, which is not there", page, name[1])
			}
		}
	}
}

// What an operator reads: warnings in the log, and causes for which a master has no vote.
var (
	warning = regexp.MustCompile(`(?:[lL]og(?:ger)?\.(?:Warn|Error)|\bwarn)\("([^"]+)"`)
	cause   = regexp.MustCompile(`"((?:is|has|does|did|was|may|gave|bears|belongs|stands|answers|asks) [a-z%(][^"]*)"`)
)

// Whoever finds a warning in the log, or is told why a master has no vote, finds in docs/troubleshooting.md what to make of it: the text,
// or how it begins.
func TestEveryWarningAndCauseIsExplained(t *testing.T) {
	explained(t, "## Log lines", 20, warning, "../cmd", "../quorum", "../resp")
	explained(t, "## When there is no quorum", 35, cause, "../quorum")
}

// explained wants all texts that the pattern finds in the sources, at least so many, to be quoted behind the heading, up to
// what differs each time.
func explained(t *testing.T, heading string, least int, pattern *regexp.Regexp, dirs ...string) {
	t.Helper()
	page, err := os.ReadFile("../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), heading+"\n")
	if !found {
		t.Fatalf("docs/troubleshooting.md has no %q", heading)
	}
	rest = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(rest, "")
	var quoted []string
	for _, q := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(rest, -1) {
		if begins, _, _ := strings.Cut(q[1], " …"); len(begins) > 5 {
			quoted = append(quoted, begins)
		}
	}
	texts := 0
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			switch {
			case err == nil && entry.Name() == "sim": // whose texts nobody else reads
				return filepath.SkipDir
			case err != nil, !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
				return err
			}
			source, err := os.ReadFile(path)
			for _, text := range pattern.FindAllStringSubmatch(string(source), -1) {
				texts++
				begins, _, _ := strings.Cut(text[1], "%")
				if !slices.ContainsFunc(quoted, func(q string) bool { return strings.HasPrefix(begins, q) || strings.HasPrefix(q, begins) }) {
					t.Errorf("%s has %q, which docs/troubleshooting.md does not explain", path, text[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if texts < least {
		t.Errorf("found %d texts only", texts)
	}
}
