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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	huntFlag    = flag.Uint64("hunt", 0, "look for a seed that fails among so many")
	mutantsFlag = flag.Uint64("mutants", 0, "look for a seed that catches each mutant among so many")
	firstFlag   = flag.Uint64("first", 1, "the first seed of a hunt")
	aimFlag     = flag.String("aim", "", "hunt among worlds of this class only; none are those that aim at nothing")
	knownFlag   = flag.Duration("known", 20*time.Second, "how long to look whether known seeds catch mutants")
	onlyFlag    = flag.String("only", "", "only the mutants with this in their names")
)

func TestEveryMutantFitsTheCode(t *testing.T) {
	names := make(map[string]bool)
	for _, m := range slices.Concat(mutants, vouchMutants) {
		text, err := os.ReadFile(filepath.Join("..", m.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), m.old); n != 1 {
			t.Errorf("%s: %q is %d times in %s", m.name, m.old, n, m.file)
		}
		if names[m.name] {
			t.Errorf("two mutants are called %q", m.name)
		}
		names[m.name] = true
	}
	for _, m := range slices.Concat(mutants, vouchMutants) {
		if m.both != "" && !names[m.both] {
			t.Errorf("%s: there is no mutant %q", m.name, m.both)
		}
	}
}

// TestHunt runs seeds from 1 until one fails, and says which.
func TestHunt(t *testing.T) {
	if *huntFlag == 0 {
		t.Skip("no -hunt")
	}
	for seed, n := *firstFlag, uint64(0); n < *huntFlag; seed++ {
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
	var chosen []mutant
	for _, m := range slices.Concat(mutants, vouchMutants) {
		if strings.Contains(m.name, *onlyFlag) {
			chosen = append(chosen, m)
		}
	}
	results := make([]string, len(chosen))
	var wg sync.WaitGroup
	turns := make(chan struct{}, 2)
	for i, m := range chosen {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			verdict, caught := m.hunt(t.TempDir())
			results[i] = fmt.Sprintf("%-55s %-25s %s", m.name, m.rule, verdict)
			fmt.Println(results[i])
			if !caught {
				t.Errorf("%s: %s", m.name, verdict)
			}
		})
	}
	wg.Wait()
}

// TestKnownSeedsCatchMutants is a sample of make mutants: as many as there is time for, from a different one each day.
func TestKnownSeedsCatchMutants(t *testing.T) {
	known := keptSeeds(t, "mutants.txt")
	if len(known) == 0 || raceEnabled && testing.Short() {
		t.Skip("no time")
	}
	first, n := int(time.Now().Unix()/86400), 0
	for began := time.Now(); n < len(known) && time.Since(began) < *knownFlag; n++ {
		k := known[(first+n)%len(known)]
		all := slices.Concat(mutants, vouchMutants)
		i := slices.IndexFunc(all, func(m mutant) bool { return m.name == k.name })
		if i < 0 {
			t.Fatalf("there is no mutant %q", k.name)
		}
		dir := t.TempDir()
		if trouble := all[i].build(dir); trouble != "" {
			t.Fatal(trouble)
		}
		caught := false
		for try := 0; try < 3 && !caught; try++ {
			_, caught = all[i].run(dir, k.seed, 1, "")
		}
		if !caught {
			t.Errorf("%s: seed %d does not catch it any more: make mutants finds another", k.name, k.seed)
		}
	}
	t.Logf("%d of %d known seeds", n, len(known))
}

// build makes dir/mutant.test, and returns what went wrong.
func (m *mutant) build(dir string) string {
	overlay, err := m.overlay(dir)
	if err != nil {
		return err.Error()
	}
	pkg := "."
	if m.test != "" {
		pkg = ".."
	}
	bin := filepath.Join(dir, "mutant.test")
	if out, err := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", bin, pkg).CombinedOutput(); err != nil {
		return fmt.Sprintf("does not build: %s", out)
	}
	return ""
}

// hunt builds the tests over the mutant and runs them until one fails.
func (m *mutant) hunt(dir string) (verdict string, caught bool) {
	if m.both != "" {
		return "covered twice: " + m.both, true
	}
	if trouble := m.build(dir); trouble != "" {
		return trouble, false
	}
	if m.test != "" {
		run := exec.Command(filepath.Join(dir, "mutant.test"), "-test.run", m.test)
		run.Dir = ".."
		if run.Run() == nil {
			return "SURVIVED go test ./quorum -run " + m.test, false
		}
		return "caught by go test ./quorum -run " + m.test, true
	}
	return m.run(dir, 1, *mutantsFlag, cmp.Or(m.aim, "none"))
}

// run runs so many seeds from first, of a class of worlds, until one catches the mutant.
func (m *mutant) run(dir string, first, n uint64, aim string) (verdict string, caught bool) {
	run := exec.Command(filepath.Join(dir, "mutant.test"), "-test.run=^TestHunt$", "-test.timeout=0",
		fmt.Sprintf("-first=%d", first), fmt.Sprintf("-hunt=%d", n), "-aim="+aim)
	run.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GOGC=800")
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
	file, err := filepath.Abs(filepath.Join("..", m.file))
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	mutated := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{file: mutated}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}
