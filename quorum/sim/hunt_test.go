package sim

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	huntFlag    = flag.Uint64("hunt", 0, "look for a seed that fails among so many")
	mutantsFlag = flag.Uint64("mutants", 0, "look for a seed that catches each mutant: the known one, then among so many")
	anewFlag    = flag.Bool("anew", false, "look for seeds as if none were known")
	firstFlag   = flag.Uint64("first", 1, "the number of the first seed of a hunt")
	classesFlag = flag.String("classes", "", "hunt among seeds of these classes, with + between them")
	aimFlag     = flag.String("aim", "", "hunt among worlds of this class only; none are those that aim at nothing")
	knownFlag   = flag.Duration("known", 2*time.Second, "how long to look whether known seeds catch mutants")
	onlyFlag    = flag.String("only", "", "only the mutants whose names match")
)

// TestEveryMutantHasItsMarker, and every marker its mutant.
func TestEveryMutantHasItsMarker(t *testing.T) {
	at := allMarkers(t)
	names := make(map[string]bool)
	for _, m := range allMutants() {
		if names[m.name] {
			t.Errorf("two mutants are called %q", m.name)
		}
		names[m.name] = true
		if _, ok := at[m.name]; !ok {
			t.Errorf("no marker names the mutant %q", m.name)
		}
	}
	for name, place := range at {
		if !names[name] {
			t.Errorf("%s:%d: there is no mutant %q", place.file, place.line, name)
		}
	}
	for _, m := range allMutants() {
		if m.both != "" && !names[m.both] {
			t.Errorf("%s: there is no mutant %q", m.name, m.both)
		}
	}
}

// TestEveryMutantBuilds makes all changes, of one function one at a time, and builds what comes out: who changes the code near a
// marker is told here whether the mutant still fits.
func TestEveryMutantBuilds(t *testing.T) {
	at := allMarkers(t)
	rest := allMutants()
	for len(rest) > 0 {
		var now, later []mutant
		taken := make(map[marker]bool)
		for _, m := range rest {
			place := at[m.name]
			if place.within != "" {
				place.line = 0 // the whole function
			}
			if taken[place] {
				later = append(later, m)
			} else {
				taken[place] = true
				now = append(now, m)
			}
		}
		overlay, err := overlayOf(t.TempDir(), at, now)
		if err != nil {
			t.Fatal(err)
		}
		build := exec.Command("go", "build", "-gcflags=-e", "-overlay", overlay, "../...", "../../resp/...")
		if out, err := build.CombinedOutput(); err != nil {
			t.Errorf("mutants do not build: %s", out)
		}
		t.Logf("%d mutants built", len(now))
		rest = later
	}
}

func allMarkers(t *testing.T) map[string]marker {
	t.Helper()
	at, err := markers()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestHunt runs seeds from 1 until one fails, and says which.
func TestHunt(t *testing.T) {
	if *huntFlag == 0 {
		t.Skip("no -hunt")
	}
	seed := Seed{Number: *firstFlag}
	if *classesFlag != "" {
		var err error
		if seed.Classes, err = ParseClasses(*classesFlag); err != nil {
			t.Fatal(err)
		}
	}
	for n := uint64(0); n < *huntFlag; seed.Number++ {
		if *aimFlag != "" && cmp.Or(NewPlan(seed).Aim, "none") != *aimFlag {
			continue
		}
		n++
		fmt.Println("seed", seed)
		if r := play(t, NewPlan(seed), nil); len(r.Findings) > 0 {
			fmt.Println("found", r.Findings[0].Rule)
			return
		}
	}
}

// TestMutants takes one rule after the other out of the engine, by an overlay at build time: the shipping code knows
// nothing of it. A simulation that finds nothing in an engine without the rule has not tested it.
func TestMutants(t *testing.T) {
	if *mutantsFlag == 0 {
		t.Skip("no -mutants")
	}
	known := make(map[string]Seed)
	if !*anewFlag {
		for _, k := range keptSeeds(t, "mutants.txt") {
			known[k.name] = k.seed
		}
	}
	only, err := regexp.Compile(*onlyFlag)
	if err != nil {
		t.Fatal(err)
	}
	began, tried := time.Now(), 0
	var wg sync.WaitGroup
	turns := make(chan struct{}, runtime.NumCPU())
	for _, m := range allMutants() {
		if !only.MatchString(m.name) {
			continue
		}
		tried++
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			verdict, caught := m.hunt(t.TempDir(), known[m.name])
			fmt.Printf("%-55s %-25s %s\n", m.name, m.rule, verdict)
			if !caught {
				t.Errorf("%s: %s", m.name, verdict)
			}
		})
	}
	wg.Wait()
	if tried == 0 {
		t.Errorf("no mutant matches %q", *onlyFlag)
	}
	t.Logf("%d mutants in %v", tried, time.Since(began).Round(time.Second))
}

// TestKnownSeedsCatchMutants is a sample of make mutants: as many as there is time for, from a different one each day.
func TestKnownSeedsCatchMutants(t *testing.T) {
	known := keptSeeds(t, "mutants.txt")
	if len(known) == 0 || raceEnabled && testing.Short() {
		t.Skip("no time")
	}
	all := allMutants()
	first, n := int(time.Now().Unix()/86400), 0
	for began := time.Now(); n < len(known) && time.Since(began) < *knownFlag; n++ {
		k := known[(first+n)%len(known)]
		i := slices.IndexFunc(all, func(m mutant) bool { return m.name == k.name })
		if i < 0 {
			t.Fatalf("there is no mutant %q", k.name)
		}
		dir := t.TempDir()
		if trouble := all[i].build(dir, all[i].worlds()); trouble != "" {
			t.Fatal(trouble)
		}
		if _, caught := all[i].retry(dir, k.seed); !caught {
			t.Errorf("%s: seed %v does not catch it any more: make mutants finds another", k.name, k.seed)
		}
	}
	t.Logf("%d of %d known seeds", n, len(known))
}

// build makes dir/mutant.test, of the tests of a package, and returns what went wrong.
func (m *mutant) build(dir, pkg string) string {
	overlay, err := m.overlay(dir)
	if err != nil {
		return err.Error()
	}
	bin := filepath.Join(dir, "mutant.test")
	build := exec.Command("go", "test", "-c", "-ldflags=-s -w", "-overlay", overlay, "-o", bin, pkg)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Sprintf("does not build: %s", out)
	}
	return ""
}

// hunt builds the tests over the mutant and runs them until one fails: a test that is named, or seeds, and first the one
// that is known to catch it, if any.
func (m *mutant) hunt(dir string, known Seed) (verdict string, caught bool) {
	if m.both != "" {
		return "covered twice: " + m.both, true
	}
	pkg := m.worlds()
	if m.test != "" {
		pkg = cmp.Or(m.in, "..")
	}
	if trouble := m.build(dir, pkg); trouble != "" {
		return trouble, false
	}
	if m.test != "" {
		return m.runTest(dir, pkg)
	}
	if known != (Seed{}) {
		if verdict, caught = m.retry(dir, known); caught {
			return verdict, true
		}
	}
	first := Seed{Classes: m.classes, Number: 1}
	if m.front {
		first.Classes |= Spoken
		return m.run(dir, first, *mutantsFlag, "")
	}
	return m.run(dir, first, *mutantsFlag, cmp.Or(m.aim, "none"))
}

// worlds is the package whose worlds the mutant is looked for in.
func (m *mutant) worlds() string {
	if m.front {
		return "../../resp/sim"
	}
	return "."
}

// runTest runs the test that is named. It must exist, pass in the engine as it is, which go test sees to, and fail here: that
// the runtime ends it, as for a mutex that is not locked, says nothing of the rule.
func (m *mutant) runTest(dir, pkg string) (verdict string, caught bool) {
	run := exec.Command(filepath.Join(dir, "mutant.test"), "-test.v", "-test.timeout=2m", "-test.run", m.test)
	run.Dir = pkg
	out, err := run.CombinedOutput()
	command := "go test ./" + filepath.Join("quorum/sim", pkg) + " -run " + m.test
	switch {
	case err != nil && strings.Contains(string(out), "--- FAIL: "):
		return "caught by " + command, true
	case err != nil:
		return fmt.Sprintf("%s: %v", command, err), false
	}
	return "SURVIVED " + command, false
}

// retry runs a seed that is known to catch the mutant. What is left to chance may hide it once.
func (m *mutant) retry(dir string, seed Seed) (verdict string, caught bool) {
	for range 3 {
		if verdict, caught = m.run(dir, seed, 1, ""); caught {
			return verdict, true
		}
	}
	return verdict, false
}

// run runs so many seeds from first, of a class of worlds, until one catches the mutant.
func (m *mutant) run(dir string, first Seed, n uint64, aim string) (verdict string, caught bool) {
	run := exec.Command(filepath.Join(dir, "mutant.test"), "-test.run=^TestHunt$", "-test.timeout=0",
		fmt.Sprintf("-first=%d", first.Number), "-classes="+first.Classes.String(), fmt.Sprintf("-hunt=%d", n), "-aim="+aim)
	run.Env = alone()
	out, err := run.Output()
	return judge(string(out), err)
}

func judge(out string, err error) (verdict string, caught bool) {
	seed, found, n := "0", "", 0
	for line := range strings.Lines(out) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "seed":
			seed = rest
			n++
		case "found":
			found = rest
		}
	}
	var exit *exec.ExitError
	switch {
	case found != "":
		return fmt.Sprintf("caught by seed %s, after %d: %s", seed, n, found), true
	case errors.As(err, &exit):
		return fmt.Sprintf("caught by seed %s, after %d: the process ended: %.60q", seed, n, exit.Stderr), true
	case err != nil:
		return err.Error(), false
	}
	return fmt.Sprintf("SURVIVED %d seeds", n), false
}

func (m *mutant) overlay(dir string) (string, error) {
	at, err := markers()
	if err != nil {
		return "", err
	}
	return overlayOf(dir, at, []mutant{*m})
}

// overlayOf writes an overlay for go build in which all these mutants' changes are made, and returns its path.
func overlayOf(dir string, at map[string]marker, mutants []mutant) (string, error) {
	changed := make(map[string]string)                                                           // files
	slices.SortFunc(mutants, func(a, b mutant) int { return at[b.name].line - at[a.name].line }) // from below: lines stay where they are
	for _, m := range mutants {
		place, ok := at[m.name]
		if !ok {
			return "", fmt.Errorf("no marker names the mutant %q", m.name)
		}
		text, ok := changed[place.file]
		if !ok {
			b, err := os.ReadFile(place.file)
			if err != nil {
				return "", err
			}
			text = string(b)
		}
		text, err := m.change.apply(place, text)
		if err != nil {
			return "", fmt.Errorf("%s:%d: %s: %w", place.file, place.line, m.name, err)
		}
		changed[place.file] = text
	}
	replace := make(map[string]string)
	for file, text := range changed {
		path, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(file)))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}
