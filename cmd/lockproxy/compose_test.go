package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"lockproxy/cmd/lockproxy/config"
)

const root = "../.."

// A composed is what compose.yaml says.
type composed struct {
	Services map[string]struct {
		Command     string
		Environment map[string]string
		Healthcheck struct{ Test []string }
	}
}

func readRoot(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// imageEnv returns the variables that the Dockerfile sets.
func imageEnv(t *testing.T) []string {
	t.Helper()
	for line := range strings.Lines(readRoot(t, "Dockerfile")) {
		if rest, ok := strings.CutPrefix(line, "ENV "); ok {
			return strings.Fields(rest)
		}
	}
	t.Fatal("the Dockerfile sets no variable")
	return nil
}

// What compose.yaml starts works, in the steps that its comment names: with real masters, but without containers.
func TestComposeStartsAsItSays(t *testing.T) {
	text := readRoot(t, "compose.yaml")
	passwords := map[string]string{"MASTER_PASSWORD": "for-masters", "CLIENT_PASSWORD": "for-clients"}
	text = regexp.MustCompile(`\$\{(\w+)(:\?[^}]*)?\}`).ReplaceAllStringFunc(text, func(found string) string {
		name := strings.FieldsFunc(found, func(r rune) bool { return strings.ContainsRune("${:}", r) })[0]
		if passwords[name] == "" {
			t.Errorf("compose.yaml asks for %s", name)
		}
		return passwords[name]
	})
	var c composed
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	env := imageEnv(t)
	for key, value := range c.Services["lockproxy"].Environment {
		if key == "LOCKPROXY_MASTERS" {
			var addrs []string
			for host := range strings.SplitSeq(value, ",") {
				name, port, _ := strings.Cut(host, ":")
				words := strings.Fields(c.Services[name].Command)
				if port != "6379" || len(words) == 0 || words[0] != "redis-server" {
					t.Fatalf("master %s runs %q", host, words)
				}
				addrs = append(addrs, startRedis(t, words[1:]...))
			}
			value = strings.Join(addrs, ",")
		}
		env = append(env, key+"="+value)
	}
	step := func(want string, words ...string) {
		t.Helper()
		var out bytes.Buffer
		if code := run(words, env, &out, &out); code != exitOK || !strings.Contains(out.String(), want) {
			t.Errorf("lockproxy %s: exit code %d, want %q\n%s", strings.Join(words, " "), code, want, &out)
		}
	}
	_, told, _ := strings.Cut(text, "docker compose run --build --rm lockproxy ")
	told, _, _ = strings.Cut(told, "#")
	step("3 masters are clean.", strings.Fields(told)...)
	if health := c.Services["lockproxy"].Healthcheck.Test; !slices.Equal(health, []string{"CMD", "/lockproxy", "check"}) {
		t.Errorf("lockproxy is healthy if %q", health)
	}
	step("\n3 of 3 masters could vote, 2 needed.\n", "check")
	healthOfMasters(t, c, env)
}

// healthOfMasters runs the health check of the masters: with the password it succeeds, with another it fails.
func healthOfMasters(t *testing.T, c composed, env []string) {
	t.Helper()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("NOT RUN: redis-cli is missing")
	}
	var addr string
	for _, kv := range env {
		if rest, ok := strings.CutPrefix(kv, "LOCKPROXY_MASTERS="); ok {
			addr, _, _ = strings.Cut(rest, ",")
		}
	}
	_, port, _ := strings.Cut(addr, ":")
	test := c.Services["redis-1"].Healthcheck.Test
	for password, healthy := range map[string]bool{c.Services["redis-1"].Environment["REDISCLI_AUTH"]: true, "another": false} {
		cmd := exec.Command("sh", "-c", strings.Replace(test[1], "redis-cli", "redis-cli -p "+port, 1))
		cmd.Env = append(os.Environ(), "REDISCLI_AUTH="+password)
		if err := cmd.Run(); test[0] != "CMD-SHELL" || (err == nil) != healthy {
			t.Errorf("%q with the password %s: %v", test, password, err)
		}
	}
}

// In the image, lockproxy listens for other machines, so that it does not start without masters.
func TestTheImageNeedsMasters(t *testing.T) {
	l, err := config.Load(nil, imageEnv(t))
	if err != nil || !l.Config.Embedded() || !l.Config.Exposed() {
		t.Errorf("it starts on embedded masters: %v", err)
	}
}

// The image has all that the program is built of.
func TestTheImageHasAllItIsBuiltOf(t *testing.T) {
	var copied []string
	for line := range strings.Lines(readRoot(t, "Dockerfile")) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "COPY" || strings.HasPrefix(words[1], "--") {
			continue
		}
		for _, name := range words[1 : len(words)-1] {
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Error(err)
			}
			copied = append(copied, name)
		}
	}
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		rest, ours := strings.CutPrefix(strings.TrimSpace(line), "lockproxy/")
		if top, _, _ := strings.Cut(rest, "/"); ours && !slices.Contains(copied, top) {
			t.Errorf("the Dockerfile does not copy %s", rest)
		}
	}
}
