package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockproxy/cmd/lockproxy/cli"
)

// prints returns what a command prints, without an error.
func prints(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(args, nil, &stdout, &stderr); code != exitOK || stderr.Len() > 0 {
		t.Fatalf("%q: exit code %d: %s", args, code, stderr.String())
	}
	return stdout.String()
}

// Help, man page and completion of a command name each of its flags, as all are made from one table.
func TestEveryFlagIsInHelpManAndCompletion(t *testing.T) {
	scripts := map[string]string{}
	for _, shell := range cli.Shells {
		scripts[shell] = prints(t, "completion", shell)
	}
	main := prints(t, "man")
	for _, c := range documented(commands()) {
		help, man := prints(t, c.Name, "--help"), prints(t, "man", c.Name)
		if !strings.Contains(main, "lockproxy\\-"+c.Name+" (1)") {
			t.Errorf("the main page does not name %s", c.Name)
		}
		for _, f := range c.Flags {
			if f.Secret {
				if strings.Contains(help+man, "--"+f.Name+" ") {
					t.Errorf("%s --%s is shown, and would be refused", c.Name, f.Name)
				}
				continue
			}
			if !strings.Contains(help, "--"+f.Name) || !strings.Contains(help, f.Help) {
				t.Errorf("the help of %s lacks --%s", c.Name, f.Name)
			}
			if !strings.Contains(man, `\-\-`+strings.ReplaceAll(f.Name, "-", `\-`)) {
				t.Errorf("the page of %s lacks --%s", c.Name, f.Name)
			}
			for shell, script := range scripts {
				if !strings.Contains(script, f.Name) {
					t.Errorf("the completion of %s for %s lacks --%s", c.Name, shell, f.Name)
				}
			}
		}
		for _, word := range slices.Concat(c.Exits, c.Variables) {
			if !strings.Contains(help, word.Help) {
				t.Errorf("the help of %s lacks %s", c.Name, word.Name)
			}
		}
	}
}

// missing says that a program is not there. Where everything is to be tried, that is a failure.
func missing(t *testing.T, program string) {
	t.Helper()
	if os.Getenv("LOCKPROXY_REQUIRE_REDIS") == "1" {
		t.Fatalf("%s is not installed", program)
	}
	t.Logf("NOT RUN: %s is not installed", program)
}

// Without a terminal, or a mistake, groff is silent.
func TestManPagesAreFreeOfMistakes(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		missing(t, "groff")
		t.SkipNow()
	}
	dir := filepath.Join(t.TempDir(), "new", "man")
	prints(t, "man", "--dir", dir)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) != 1+len(documented(commands())) {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		var stderr bytes.Buffer
		cmd := exec.Command(groff, "-man", "-ww", "-Tascii", page)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || stderr.Len() > 0 {
			t.Errorf("%s: %v: %s", page, err, stderr.String())
		}
		if filepath.Base(page) == "lockproxy-run.1" && !bytes.Contains(out, []byte("--conflict-exit-code")) {
			t.Errorf("the page of run lacks a flag: %s", out)
		}
	}
}

// A real bash completes the words.
func TestBashCompletes(t *testing.T) {
	script := filepath.Join(t.TempDir(), "completion")
	if err := os.WriteFile(script, []byte(prints(t, "completion", "bash")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, want string }{
		{"lockproxy r", "run"},
		{"lockproxy st", "status"},
		{"lockproxy run k --conf", "--conflict-exit-code"},
		{"lockproxy run k --password", "--password-file"},
		{"lockproxy run k --ttl ", ""},
		{"lockproxy run k --tls-ca " + script[:len(script)-3], script},
		{"lockproxy run k -- mkfif", "mkfifo"},
		{"lockproxy check --config-", "--config-only"},
		{"lockproxy check --instance-t", "--instance-timeout"},
		{"lockproxy completion z", "zsh"},
		{"lockproxy scripts e", "explain"},
		{"lockproxy top --sort r", "refused"},
	} {
		words := strings.Split(c.line, " ")
		cmd := exec.Command("bash", append([]string{"-c", `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _lockproxy; printf '%s\n' "${COMPREPLY[@]}" | sort -u`, "bash", script}, words...)...)
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.line, got, err, c.want)
		}
	}
}

// A real fish completes the words, where it is installed; a real zsh says that it understands what it is given.
func TestOtherShellsUnderstandTheirCompletion(t *testing.T) {
	dir := t.TempDir()
	for _, shell := range []string{"zsh", "fish"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			missing(t, shell)
			continue
		}
		script := filepath.Join(dir, shell)
		if err := os.WriteFile(script, []byte(prints(t, "completion", shell)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(path, "-n", script).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "fish")); err != nil {
		return
	}
	for line, want := range map[string]string{
		"lockproxy st": "status\tshow the proxies", "lockproxy run k --conf": "--conflict-exit-code\t", "lockproxy completion z": "zsh",
		"lockproxy run k -- mkfif": "mkfifo", "lockproxy check --config-": "--config-only\t",
		"lockproxy top --sort r": "refused",
	} {
		cmd := exec.Command("fish", "-c", "source "+filepath.Join(dir, "fish")+"; complete -C '"+line+"'")
		cmd.Env = append(os.Environ(), "HOME="+dir)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%s: %q, %v, want %q", line, out, err, want)
		}
	}
}

func TestNamesThatAreWrongAreSaid(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"man nothing", "lockproxy: man: nothing has no page; there are init, check, "},
		{"man --dri x", "lockproxy: man: --dri: is no flag; did you mean --dir?\n"},
		{"completion", "lockproxy: completion: name one shell: bash, zsh, fish\n"},
		{"completion tcsh", "lockproxy: completion: name one shell: bash, zsh, fish\n"},
		{"check --jsno", "lockproxy: --jsno: is no flag"},
		{"check --json=1", "lockproxy: --json: takes no value; write --json alone\n"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(strings.Fields(c.args), nil, &stdout, &stderr); code != exitUsage || !strings.HasPrefix(stderr.String(), c.want) {
			t.Errorf("%s: exit code %d: %s", c.args, code, stderr.String())
		}
	}
}
