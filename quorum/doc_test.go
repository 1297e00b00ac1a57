package quorum

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Whoever reads the package finds every file where doc.go has it.
func TestEveryFileHasItsPlaceInTheReadingOrder(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`[a-z_*]+\.(go|lua)\b`).FindAllString(string(doc), -1)
	code, _ := filepath.Glob("*.go") // the patterns are good
	lua, _ := filepath.Glob("*.lua")
	files := append(code, lua...)
	is := func(name, file string) bool {
		met, _ := filepath.Match(name, file)
		return met
	}
	files = slices.DeleteFunc(files, func(f string) bool { return f == "doc.go" || strings.HasSuffix(f, "_test.go") })
	for _, file := range files {
		if !slices.ContainsFunc(named, func(name string) bool { return is(name, file) }) {
			t.Errorf("%s is not in doc.go", file)
		}
	}
	for _, name := range named {
		if !slices.ContainsFunc(files, func(file string) bool { return is(name, file) }) {
			t.Errorf("doc.go has %s, which is none", name)
		}
	}
}
