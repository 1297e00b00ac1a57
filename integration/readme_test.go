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
	for _, page := range append(pages, "../README.md") {
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

var warning = regexp.MustCompile(`[lL]og(?:ger)?\.(?:Warn|Error)\("([^"]+)"`)

// Whoever finds a warning in the log finds in docs/operating.md what to make of it: the line, or how it begins.
func TestEveryWarningIsExplained(t *testing.T) {
	page, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "## Log lines")
	if !found {
		t.Fatal("docs/operating.md has no log lines")
	}
	var explained []string
	for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(table, -1) {
		explained = append(explained, strings.TrimSuffix(quoted[1], " …"))
	}
	warnings := 0
	for _, dir := range []string{"../cmd", "../quorum", "../resp"} {
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, w := range warning.FindAllStringSubmatch(string(text), -1) {
				warnings++
				if !slices.ContainsFunc(explained, func(e string) bool { return len(e) > 5 && strings.HasPrefix(w[1], e) }) {
					t.Errorf("%s logs %q, which docs/operating.md does not explain", path, w[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if warnings < 20 {
		t.Errorf("found %d warnings only", warnings)
	}
}
