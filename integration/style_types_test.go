package integration

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// A type is one idea. One with more methods, or in more files, is several.
const (
	typeMethodsMax = 40
	typeFilesMax   = 6
)

// largeTypes may be larger, for the reason that is given.
var largeTypes = map[string]string{
	"quorum.round": "what a round does is told beside what it is about: its release made late, its undo, its epochs, its notices",
}

// A typeSize is how many methods a type has, and in which files these are.
type typeSize struct {
	methods int
	files   map[string]bool
}

// typeSizes returns the sizes of the types that have methods, by package and name. Tests are left out, and so are the simulations, which no
// client runs.
func typeSizes(tree []*source) map[string]*typeSize {
	sizes := map[string]*typeSize{}
	for _, s := range tree {
		dir, file := path.Split(s.path)
		if dir = strings.TrimSuffix(dir, "/"); s.isTest() || path.Base(dir) == "sim" || below(dir, "integration") {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			name := dir + "." + receiver(f.Recv.List[0].Type)
			if sizes[name] == nil {
				sizes[name] = &typeSize{files: map[string]bool{}}
			}
			sizes[name].methods++
			sizes[name].files[file] = true
		}
	}
	return sizes
}

// receiver returns the name of a receiver's type, without what it points to or is made of.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// typeFaults returns which types are too large, and which exceptions are none any more.
func typeFaults(sizes map[string]*typeSize, exceptions map[string]string) (faults []string) {
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		is := sizes[name]
		large := is.methods > typeMethodsMax || len(is.files) > typeFilesMax
		switch _, may := exceptions[name]; {
		case large && !may:
			faults = append(faults, fmt.Sprintf("%s has %d methods in %d files, at most %d in %d: make several types of it", name, is.methods, len(is.files), typeMethodsMax, typeFilesMax))
		case may && !large:
			faults = append(faults, name+" is not large any more: take it out of largeTypes")
		}
	}
	for name := range exceptions {
		if sizes[name] == nil {
			faults = append(faults, "largeTypes names "+name+", which is no type")
		}
	}
	return faults
}

func TestStyleOfTypes(t *testing.T) {
	for _, f := range typeFaults(typeSizes(theTree(t)), largeTypes) {
		t.Error(f)
	}
}

// A check that cannot fail checks nothing.
func TestStyleLargeTypesAreFound(t *testing.T) {
	many := "package x\n" + strings.Repeat("func (t *large[K]) f() {}\n", typeMethodsMax+1)
	var spread []*source
	for i := range typeFilesMax + 1 {
		spread = append(spread, parsed(t, fmt.Sprintf("x/f%d.go", i), "package x\nfunc (wide) f() {}\n"))
	}
	for name, test := range map[string]struct {
		tree       []*source
		exceptions map[string]string
		want       string
	}{
		"many methods":  {[]*source{parsed(t, "x/a.go", many)}, nil, "x.large has 41 methods in 1 files, at most 40 in 6: make several types of it"},
		"many files":    {spread, nil, "x.wide has 7 methods in 7 files, at most 40 in 6: make several types of it"},
		"an exception":  {spread, map[string]string{"x.wide": "why"}, ""},
		"none any more": {spread[1:], map[string]string{"x.wide": "why"}, "x.wide is not large any more: take it out of largeTypes"},
		"gone":          {nil, map[string]string{"x.wide": "why"}, "largeTypes names x.wide, which is no type"},
		"a test":        {[]*source{parsed(t, "x/a_test.go", many)}, nil, ""},
		"a simulation":  {[]*source{parsed(t, "x/sim/a.go", many)}, nil, ""},
	} {
		if got := strings.Join(typeFaults(typeSizes(test.tree), test.exceptions), "\n"); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func parsed(t *testing.T, name, text string) *source {
	t.Helper()
	s, err := parseSource(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
