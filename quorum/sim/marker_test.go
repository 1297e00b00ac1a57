package sim

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A marker is a comment in the code that names a mutant: "//mutant: no undo", in Lua "--mutant: no undo". It stands on a line
// of its own, above what the mutant changes, and moves with that. Several markers may stand above one line.
type marker struct {
	file   string // its path, seen from here
	line   int    // of the code below it, from 0
	within string // the function; "" if it is in none
}

// A change is what a mutant does to the code below its marker.
//
// In Go that is the first of these which begins on the line: the condition of an if or for, the values of a case, what a range
// goes over, a statement, a declaration, an element's value. In Lua it is the whole line, and for never and always the
// condition on it.
type change struct {
	kind string
	text string
}

var (
	skip   = change{kind: "skip"}         // the statement is left out
	never  = change{"condition", "false"} // the condition never holds
	always = change{"condition", "true"}  // the condition always holds
	source = regexp.MustCompile(`\.(go|lua)$`)
	mark   = regexp.MustCompile(`^\s*(?://|--)mutant: (.*)$`)
	luaIf  = regexp.MustCompile(`^(\s*(?:if|elseif|while) ).*?( then\b| do\b)`)
)

// becomes puts a text in the place of the condition, the statement, the value.
func becomes(text string) change { return change{"becomes", text} }

// markers finds all markers of the shipping code, by name.
func markers() (map[string]marker, error) {
	found := make(map[string]marker)
	for _, root := range []string{"..", "../../resp", "../../script"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.Name() == "sim" {
				return filepath.SkipDir
			}
			if d.IsDir() || !source.MatchString(path) || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			return readMarkers(path, found)
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func readMarkers(path string, found map[string]marker) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var names []string
	within := ""
	for n, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "func ") {
			within = line
		} else if strings.HasPrefix(line, "}") {
			within = ""
		}
		if m := mark.FindStringSubmatch(line); m != nil {
			names = append(names, m[1])
			continue
		}
		for _, name := range names {
			if _, twice := found[name]; twice {
				return fmt.Errorf("%s:%d: a second marker %q", path, n, name)
			}
			found[name] = marker{path, n, within}
		}
		names = nil
	}
	return nil
}

// apply makes the change in the text of the marker's file.
func (c change) apply(m marker, text string) (string, error) {
	from, to := lineAt(text, m.line)
	if strings.HasSuffix(m.file, ".lua") || inRawString(text, from) {
		line, err := c.ofLua(text[from:to])
		return text[:from] + line + text[to:], err
	}
	u, err := unitAt(text, m.line+1)
	if err != nil {
		return "", err
	}
	if (c.kind == "condition") != u.condition && c.kind != "becomes" {
		return "", fmt.Errorf("%s does not fit %q", c.kind, text[u.from:u.to])
	}
	return text[:u.from] + c.text + text[u.to:], nil
}

func (c change) ofLua(line string) (string, error) {
	switch c.kind {
	case "skip":
		return "", nil
	case "condition":
		if !luaIf.MatchString(line) {
			return "", fmt.Errorf("%q has no condition", line)
		}
		return luaIf.ReplaceAllString(line, "${1}"+c.text+"${2}"), nil
	}
	return c.text, nil
}

// lineAt returns where a line begins and ends.
func lineAt(text string, line int) (from, to int) {
	for range line {
		from += strings.IndexByte(text[from:], '\n') + 1
	}
	return from, from + strings.IndexByte(text[from:], '\n')
}

// inRawString says whether what is there is between backquotes.
func inRawString(text string, at int) bool { return strings.Count(text[:at], "`")%2 == 1 }

// A unit is what a marker stands above.
type unit struct {
	from, to  int
	condition bool
}

// unitAt finds the unit that begins on a line, from 1.
func unitAt(text string, line int) (unit, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return unit{}, err
	}
	begins := func(p token.Pos) bool { return p.IsValid() && files.Position(p).Line == line }
	var found *unit
	take := func(n ast.Node, condition bool) bool {
		found = &unit{files.Position(n.Pos()).Offset, files.Position(n.End()).Offset, condition}
		return false
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if found != nil || n == nil {
			return false
		}
		switch n := n.(type) {
		case *ast.IfStmt:
			if begins(n.If) {
				return take(n.Cond, true)
			}
		case *ast.ForStmt:
			if begins(n.For) && n.Cond != nil {
				return take(n.Cond, true)
			}
		case *ast.RangeStmt:
			if begins(n.For) {
				return take(n.X, false)
			}
		case *ast.CaseClause:
			if begins(n.Case) && n.List != nil {
				return take(&values{n.List}, true)
			}
		case *ast.BlockStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt, *ast.CommClause, *ast.LabeledStmt:
		case ast.Stmt, *ast.ValueSpec:
			if begins(n.Pos()) {
				return take(n, false)
			}
		case *ast.KeyValueExpr:
			if begins(n.Pos()) {
				return take(n.Value, false)
			}
		}
		return true
	})
	if found == nil {
		return unit{}, fmt.Errorf("nothing that can be changed begins on line %d", line)
	}
	return *found, nil
}

// values are those of a case.
type values struct{ list []ast.Expr }

func (v *values) Pos() token.Pos { return v.list[0].Pos() }
func (v *values) End() token.Pos { return v.list[len(v.list)-1].End() }

func TestAChangeIsMadeBelowItsMarker(t *testing.T) {
	const text = `package p

func f(n int) int {
	if n == 1 {
		n++
	} else if g(n) {
		return 2
	}
	switch {
	case n == 3, n == 4:
		return n
	}
	for _, x := range list {
		h(
			x,
		)
	}
	return n
}
`
	for _, c := range []struct {
		line   int
		change change
		from   string
		to     string
	}{
		{3, never, "if n == 1 {", "if false {"},
		{4, skip, "\t\tn++\n", "\t\t\n"},
		{5, always, "else if g(n) {", "else if true {"},
		{6, becomes("return 3"), "return 2", "return 3"},
		{9, becomes("n == 5"), "n == 3, n == 4", "n == 5"},
		{12, becomes("list[1:]"), "range list", "range list[1:]"},
		{13, skip, "h(\n\t\t\tx,\n\t\t)", ""},
		{17, becomes("return 0"), "\treturn n\n}\n", "\treturn 0\n}\n"},
	} {
		got, err := c.change.apply(marker{file: "f.go", line: c.line}, text)
		want := strings.Replace(text, c.from, c.to, 1)
		if c.line == 17 {
			at := strings.LastIndex(text, c.from)
			want = text[:at] + c.to
		}
		if err != nil || got != want {
			t.Errorf("line %d: %v, %s", c.line, err, got)
		}
	}
	for _, c := range []struct {
		line   int
		change change
	}{{3, skip}, {4, never}, {1, skip}, {18, never}} {
		if _, err := c.change.apply(marker{file: "f.go", line: c.line}, text); err == nil {
			t.Errorf("%v was made on line %d", c.change, c.line)
		}
	}
	lua := marker{file: "f.lua"}
	for from, to := range map[string]string{
		"  if a then b() end\n": "  if false then b() end\n",
		"elseif a < b then\n":   "elseif false then\n",
	} {
		if got, err := never.apply(lua, from); err != nil || got != to {
			t.Errorf("%q became %q, %v", from, got, err)
		}
	}
	if _, err := never.apply(lua, "return 1\n"); err == nil {
		t.Error("a line without a condition never holds")
	}
}
