package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// On a bare machine, .ci/need installs the C compiler that the race detector needs, and the same make must use it.
func TestMakeTestUsesTheCompilerThatItHasJustInstalled(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make")
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		installs string // what .ci/need does
		want     string // what Go is asked for, beside its settings
	}{
		"installed": {"touch compiler", "test -race -count=1 -timeout 30m ./...\ntest -run ^TestASeedDecides ./resp/sim\n"},
		"none":      {"true", "test -count=1 -timeout 30m ./...\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(file, text string) {
				t.Helper()
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			write("Makefile", string(makefile))
			write(".ci/need", "#!/bin/sh\n"+c.installs+"\n")
			write("bin/go", "#!/bin/sh\nif [ \"$1\" = env ]; then [ -e compiler ] && echo 1 || echo 0; else echo \"$@\" >>asked; fi\n")
			cmd := exec.Command("make", "test")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "MAKEFLAGS=")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			asked, err := os.ReadFile(filepath.Join(dir, "asked"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.ReplaceAll(string(asked), "test  ", "test "); got != c.want {
				t.Errorf("Go was asked for\n%swant\n%s", got, c.want)
			}
		})
	}
}
