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
		if got := check(results, scenarios, c.known); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAFrameworkReportsOnlyWhatItDoesAtTheUpstream(t *testing.T) {
	chosen := append(slices.Clone(scenarios), dataScenario)
	report := result{Library: "asynq", Version: "1", Scenario: dataScenario, Result: ok, framework: true}
	if got := check([]result{report}, chosen, nil); got != nil {
		t.Errorf("got %q", got)
	}
	if got := check([]result{report, report}, chosen, nil); len(got) != 1 {
		t.Errorf("reported twice: got %q", got)
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

func TestTheTableOfClientsIsComparedAndWritten(t *testing.T) {
	python, _ := languageNamed("python")
	out := allOK("redis-py", "4.6.0") + strings.Replace(allOK("redis-py", "5.3.1"), `"ok"`, `"failed"`, 1) + allOK("redis-py", "8.1.0")
	out = strings.ReplaceAll(out, `"re-entrance","result":"ok"`, `"re-entrance","result":"absent"`)
	results, err := readResults(python.title, []byte(out))
	if err != nil {
		t.Fatal(err)
	}
	known := []knownFailure{{"redis-py", "5.3.1", "take", "too old"}}
	root := t.TempDir()
	path := filepath.Join(root, lockTable.file)
	const node = "| Node | ioredis | 4.31.0 | 14 of 14 | – | – |\n"
	old := "before\n" + lockTable.begin + "\n" + lockTable.head + node + "| Python | gone | 1 | 1 of 1 | – | – |\n" + tableEnd + "\nafter\n"
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := lockTable.update(root, []prepared{{language: python}}, lockRows(results, known), false); err == nil || !strings.Contains(err.Error(), "is stale") {
		t.Errorf("a stale table: %v", err)
	}
	if err := lockTable.update(root, []prepared{{language: python}}, lockRows(results, known), true); err != nil {
		t.Error(err)
	}
	want := "before\n" + lockTable.begin + "\n" + lockTable.head +
		"| Python | redis-py | 4.6.0, 8.1.0 | 13 of 13 | re-entrance | – |\n" +
		"| Python | redis-py | 5.3.1 | 12 of 13 | re-entrance | take: too old |\n" +
		node + tableEnd + "\nafter\n"
	if got, _ := os.ReadFile(path); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := lockTable.update(root, []prepared{{language: python}}, lockRows(results, known), false); err != nil {
		t.Errorf("a fresh table: %v", err)
	}
}

func TestTablesStandWhereARunLooksForThem(t *testing.T) {
	for _, table := range []table{lockTable, dataTable} {
		if err := table.update("../../..", nil, nil, false); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatWasUsedBesideALockHasATable(t *testing.T) {
	results, err := readResults("Node", []byte(`{"library":"ioredis","version":"4.31.0","scenario":"data","result":"ok","used":"hash"}
{"library":"ioredis","version":"5.11.1","scenario":"data","result":"ok","used":"hash, list"}
{"library":"redlock","version":"4.2.0","scenario":"data","result":"absent"}
{"library":"ioredis","version":"6.0.0","scenario":"data","result":"ok","used":"hash"}
{"library":"ioredis","version":"6.0.0","scenario":"take","result":"ok"}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"| Node | ioredis | 4.31.0, 6.0.0 | hash |\n", "| Node | ioredis | 5.11.1 | hash, list |\n"}
	if got := dataRows(results); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestScenariosAreChosen(t *testing.T) {
	for _, c := range []struct {
		o    options
		want []string
	}{
		{options{}, scenarios},
		{options{upstream: true}, append(slices.Clone(scenarios), dataScenario)},
		{options{upstream: true, scenarios: "data,no quorum"}, []string{dataScenario, "no quorum"}},
	} {
		if got := c.o.chosen(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %q", c.o, got)
		}
	}
}

func TestLocksAreToldFromData(t *testing.T) {
	for name, want := range map[string]bool{
		"lock:a": true, ":1:lock:a": true, "redisson_lock__channel:{lock:a b/c}": true, "PHPREDIS_SESSION:a_LOCK": true,
		"data:a": false, "PHPREDIS_SESSION:a": false, "lock": false, "{data}:lock": false,
	} {
		if isLock(name) != want {
			t.Errorf("%q: want %v", name, want)
		}
	}
}
