package sim

import (
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
)

var (
	huntFlag    = flag.Uint64("hunt", 0, "look for a seed that fails among so many")
	mutantsFlag = flag.Uint64("mutants", 0, "look for a seed that catches each mutant among so many")
	firstFlag   = flag.Uint64("first", 1, "the first seed of a hunt")
	aimFlag     = flag.String("aim", "", "hunt among worlds of this class")
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
}

// TestHunt runs seeds from 1 until one fails, and says which.
func TestHunt(t *testing.T) {
	if *huntFlag == 0 {
		t.Skip("no -hunt")
	}
	for seed, n := *firstFlag, uint64(0); n < *huntFlag; seed++ {
		if *aimFlag != "" && NewPlan(seed).Aim != *aimFlag {
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

// hunt builds the tests over the mutant and runs them until one fails.
func (m *mutant) hunt(dir string) (verdict string, caught bool) {
	overlay, err := m.overlay(dir)
	if err != nil {
		return err.Error(), false
	}
	pkg := "."
	if m.test != "" {
		pkg = ".."
	}
	bin := filepath.Join(dir, "mutant.test")
	if out, err := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", bin, pkg).CombinedOutput(); err != nil {
		return fmt.Sprintf("does not build: %s", out), false
	}
	if m.test != "" {
		run := exec.Command(bin, "-test.run", m.test)
		run.Dir = pkg
		if run.Run() == nil {
			return "SURVIVED go test ./quorum -run " + m.test, false
		}
		return "caught by go test ./quorum -run " + m.test, true
	}
	run := exec.Command(bin, "-test.run=^TestHunt$", fmt.Sprintf("-hunt=%d", *mutantsFlag), "-aim="+m.aim, "-test.timeout=0")
	run.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GOGC=800")
	out, err := run.Output()
	return judge(string(out), err)
}

func judge(out string, err error) (verdict string, caught bool) {
	seed, found := "0", ""
	for line := range strings.Lines(out) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "seed":
			seed = rest
		case "found":
			found = rest
		}
	}
	var exit *exec.ExitError
	switch {
	case found != "":
		return fmt.Sprintf("caught by seed %s: %s", seed, found), true
	case errors.As(err, &exit):
		return fmt.Sprintf("caught by seed %s: the process ended: %.60q", seed, exit.Stderr), true
	case err != nil:
		return err.Error(), false
	}
	return fmt.Sprintf("SURVIVED %s seeds", seed), false
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
