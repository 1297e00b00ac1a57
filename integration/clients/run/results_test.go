package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// allOK is what a program prints whose library passes everything.
func allOK(library, version string) string {
	var b strings.Builder
	for _, s := range scenarios {
		b.WriteString(`{"library":"` + library + `","version":"` + version + `","scenario":"` + s + `","result":"ok","why":""}` + "\n")
	}
	return b.String()
}

func TestFaultsOfARunAreFound(t *testing.T) {
	good := allOK("redis-py", "5.3.1")
	known := []knownFailure{{"redis-py", "*", "wait", "it polls"}}
	failing := strings.Replace(good, `"wait","result":"ok"`, `"wait","result":"failed"`, 1)
	for _, c := range []struct {
		name, out string
		known     []knownFailure
		want      []string
	}{
		{"all ok", good, nil, nil},
		{"a line of the library's own", "warning: old\n" + good, nil, nil},
		{"a failure", failing, nil, []string{"redis-py 5.3.1: wait: failed "}},
		{"a known failure", failing, known, nil},
		{"a known failure that works", good, known, []string{"redis-py 5.3.1: wait works, but is known to fail: it polls"}},
		{"not run", good[strings.Index(good, "\n")+1:], nil, []string{"redis-py 5.3.1: take was reported 0 times, want once"}},
		{
			"run twice", good + good[:strings.Index(good, "\n")+1], nil,
			[]string{"redis-py 5.3.1: take was reported 2 times, want once"},
		},
	} {
		results, err := readResults("Python", []byte(c.out))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := check(results, c.known); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWhatIsNoReportIsRefused(t *testing.T) {
	for _, out := range []string{"{", `{"library":"x","version":"1","result":"passed"}`, `{"library":"x","result":"ok"}`} {
		if results, err := readResults("Python", []byte(out)); err == nil {
			t.Errorf("%q was taken: %v", out, results)
		}
	}
}

func TestKnownFailuresOfTheTreeCanBeRead(t *testing.T) {
	if _, err := readKnown("../known.txt"); err != nil {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "known.txt")
	for _, line := range []string{"a | b | take", "a | b | sleep | why", "a | b | take |"} {
		if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if known, err := readKnown(path); err == nil {
			t.Errorf("%q was taken: %v", line, known)
		}
	}
}

func TestTheReadmesTableIsComparedAndWritten(t *testing.T) {
	python, _ := languageNamed("python")
	out := allOK("redis-py", "4.6.0") + strings.Replace(allOK("redis-py", "5.3.1"), `"ok"`, `"failed"`, 1) + allOK("redis-py", "8.1.0")
	out = strings.ReplaceAll(out, `"re-entrance","result":"ok"`, `"re-entrance","result":"absent"`)
	results, err := readResults(python.title, []byte(out))
	if err != nil {
		t.Fatal(err)
	}
	known := []knownFailure{{"redis-py", "5.3.1", "take", "too old"}}
	path := filepath.Join(t.TempDir(), "README.md")
	const node = "| Node | ioredis | 4.31.0 | 14 of 14 | – | – |\n"
	old := "before\n" + tableBegin + "\n" + tableHead + node + "| Python | gone | 1 | 1 of 1 | – | – |\n" + tableEnd + "\nafter\n"
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := updateReadme(path, []prepared{{language: python}}, results, known, false); err == nil || !strings.Contains(err.Error(), "is stale") {
		t.Errorf("a stale table: %v", err)
	}
	if err := updateReadme(path, []prepared{{language: python}}, results, known, true); err != nil {
		t.Error(err)
	}
	want := "before\n" + tableBegin + "\n" + tableHead +
		"| Python | redis-py | 4.6.0, 8.1.0 | 13 of 13 | re-entrance | – |\n" +
		"| Python | redis-py | 5.3.1 | 12 of 13 | re-entrance | take: too old |\n" +
		node + tableEnd + "\nafter\n"
	if got, _ := os.ReadFile(path); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := updateReadme(path, []prepared{{language: python}}, results, known, false); err != nil {
		t.Errorf("a fresh table: %v", err)
	}
}
