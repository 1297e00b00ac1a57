package integration

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What a reader can take in at once.
const (
	fileLinesMax     = 400
	functionLinesMax = 70
)

// forbidden says which imports would run upwards: what lies below the directory may import nothing that lies below any
// of these. A name without the module is a dependency.
var forbidden = map[string][]string{
	"quorum":                 {"lockproxy/resp", "lockproxy/script", "lockproxy/cmd", "github.com/tidwall/redcon"},
	"quorum/masters":         {"lockproxy/quorum"},
	"script":                 {"lockproxy/quorum", "lockproxy/resp", "lockproxy/cmd", "github.com/redis", "github.com/tidwall", "net"},
	"resp":                   {"lockproxy/cmd", "lockproxy/quorum/masters", "github.com/redis"},
	"resp/wire":              {"lockproxy/resp", "lockproxy/quorum", "lockproxy/script", "lockproxy/cmd", "net"},
	"cmd/lockproxy/config":   {"lockproxy/quorum", "lockproxy/resp"},
	"cmd/lockproxy/embedded": {"lockproxy/quorum", "lockproxy/resp", "lockproxy/script"},
	"cmd/lockproxy/console":  {"lockproxy/quorum/masters", "lockproxy/script", "github.com/redis"},
	"cmd/lockproxy/shell":    {"lockproxy/quorum", "lockproxy/resp", "lockproxy/script", "github.com/redis", "github.com/tidwall"},
	"cmd/lockproxy/cli":      {"lockproxy/quorum", "lockproxy/resp", "lockproxy/script", "lockproxy/cmd/lockproxy/shell"},
	"cmd/lockproxy/admin":    {"lockproxy/quorum/masters", "lockproxy/script", "github.com/redis"},
	"integration/harness":    {"lockproxy/quorum", "lockproxy/resp", "lockproxy/script", "lockproxy/cmd"},
}

// A source is one Go file of the tree.
type source struct {
	path string // from the root, with slashes
	text []byte
	file *ast.File
	set  *token.FileSet
}

func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s *source) lines() int { return bytes.Count(s.text, []byte("\n")) }

// faults returns what is wrong with the file, one line each.
func (s *source) faults() []string {
	var found []string
	add := func(line int, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s:%d: %s", s.path, line, fmt.Sprintf(format, args...)))
	}
	for n, line := range strings.Split(string(s.text), "\n") {
		if word := "TO" + "DO"; strings.Contains(line, word) {
			add(n+1, "says %s: do it, or make it an issue", word)
		}
	}
	for _, spec := range s.file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if s.isTest() && !strings.HasPrefix(imported, "lockproxy/") {
			continue // a test may bring the client or the server that it needs
		}
		if above := upwards(s.path, imported); above != "" {
			add(s.set.Position(spec.Pos()).Line, "imports %s, but %s must not", imported, above)
		}
	}
	if s.isTest() {
		return found
	}
	if n := s.lines(); n > fileLinesMax {
		add(1, "%d lines, at most %d", n, fileLinesMax)
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		f, ok := n.(*ast.FuncDecl)
		if !ok {
			return true
		}
		first, last := s.set.Position(f.Pos()).Line, s.set.Position(f.End()).Line
		if n := last - first + 1; n > functionLinesMax {
			add(first, "%s has %d lines, at most %d", f.Name.Name, n, functionLinesMax)
		}
		return false
	})
	return found
}

// upwards returns the directory that must not import this, or "".
func upwards(file, imported string) string {
	for dir, list := range forbidden {
		if !below(path.Dir(file), dir) {
			continue
		}
		own := "lockproxy/" + dir
		if slices.ContainsFunc(list, func(f string) bool { return below(imported, f) && !below(imported, own) }) {
			return dir
		}
	}
	return ""
}

func below(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func parseSource(name string, text []byte) (*source, error) {
	s := &source{path: name, text: text, set: token.NewFileSet()}
	var err error
	s.file, err = parser.ParseFile(s.set, name, text, parser.ParseComments)
	return s, err
}

func TestStyleOfTheTree(t *testing.T) {
	tree := theTree(t)
	for _, s := range tree {
		for _, f := range s.faults() {
			t.Error(f)
		}
	}
	if len(tree) < 20 {
		t.Errorf("only %d Go files were looked at", len(tree))
	}
}

// theTree returns all Go files of the tree.
func theTree(t *testing.T) (all []*source) {
	t.Helper()
	root := ".."
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && p != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		s, err := parseSource(filepath.ToSlash(rel), text)
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A comment or a page that names a file is to be followed there.
func TestStyleFilesThatAreNamedExist(t *testing.T) {
	files, texts := map[string]bool{}, map[string]string{}
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && p != ".." && (strings.HasPrefix(name, ".") || name == "node_modules"):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		default:
			files[name] = true
			if strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".lua") || strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
				text, err := os.ReadFile(p)
				texts[p] = string(text)
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?:^|[\s(/` + "`" + `])([a-z_0-9]+\.(?:go|lua))\b`)
	for p, text := range texts {
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			if !files[found[1]] {
				t.Errorf("%s names %s, and there is no such file", p, found[1])
			}
		}
	}
}

// A check that cannot fail checks nothing.
func TestStyleFaultsAreFound(t *testing.T) {
	long := "package x\n\nfunc f() {\n" + strings.Repeat("\tg()\n", 69) + "}\n"
	for _, c := range []struct{ path, text, want string }{
		{"resp/a.go", "package resp\n", ""},
		{"resp/a.go", "package resp\n\n// TO" + "DO later\n", "resp/a.go:3: says TO" + "DO: do it, or make it an issue"},
		{"resp/a.go", long, "resp/a.go:3: f has 71 lines, at most 70"},
		{"resp/a_test.go", long, ""},
		{"resp/a.go", "package resp\n" + strings.Repeat("\n", 400), "resp/a.go:1: 401 lines, at most 400"},
		{"quorum/a.go", "package quorum\n\nimport _ \"lockproxy/resp\"\n", "quorum/a.go:3: imports lockproxy/resp, but quorum must not"},
		{"quorum/a.go", "package quorum\n\nimport _ \"lockproxy/script\"\n", "quorum/a.go:3: imports lockproxy/script, but quorum must not"},
		{"quorum/a.go", "package quorum\n\nimport _ \"lockproxy/quorum/masters\"\n", ""},
		{"quorum/masters/a.go", "package masters\n\nimport _ \"lockproxy/quorum\"\n", "quorum/masters/a.go:3: imports lockproxy/quorum, but quorum/masters must not"},
		{"script/a.go", "package script\n\nimport _ \"lockproxy/quorum\"\n", "script/a.go:3: imports lockproxy/quorum, but script must not"},
		{"script/a.go", "package script\n\nimport _ \"lockproxy/resp\"\n", "script/a.go:3: imports lockproxy/resp, but script must not"},
		{"resp/a.go", "package resp\n\nimport _ \"github.com/redis/go-redis/v9\"\n", "resp/a.go:3: imports github.com/redis/go-redis/v9, but resp must not"},
		{"resp/a_test.go", "package resp\n\nimport _ \"github.com/redis/go-redis/v9\"\n", ""},
		{"resp/a.go", "package resp\n\nimport _ \"github.com/redistribution/x\"\n", ""},
	} {
		s, err := parseSource(c.path, []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.faults(), "\n"); got != c.want {
			t.Errorf("%s: got %q, want %q", c.path, got, c.want)
		}
	}
}
