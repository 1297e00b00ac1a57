package integration

import (
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// A clientProgram is a small program in another language that locks through a real client library and prints
// "ok NAME". Its dependencies are installed once, into the user's cache, by the language's own tool.
type clientProgram struct {
	name    string
	needs   []string // runtimes
	dir     string   // under clients
	install [][]string
	run     []string // HOST and PORT are appended
}

var (
	nodeInstall = [][]string{{"npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"}}
	javaInstall = [][]string{
		{"mvn", "-q", "-B", "compile", "dependency:build-classpath", "-Dmdep.outputFile=classpath"},
	}
)

var clientPrograms = []clientProgram{
	{
		name: "redis-py", needs: []string{"python3"}, dir: "python",
		install: [][]string{
			{"python3", "-m", "venv", "venv"},
			{"venv/bin/pip", "install", "--quiet", "--requirement", "requirements.txt"},
		},
		run: []string{"venv/bin/python", "locking.py"},
	},
	{name: "node-redis", needs: []string{"node", "npm"}, dir: "node", install: nodeInstall, run: []string{"node", "node-redis.js"}},
	{name: "ioredis", needs: []string{"node", "npm"}, dir: "node", install: nodeInstall, run: []string{"node", "ioredis.js"}},
	{name: "jedis", needs: []string{"java", "mvn"}, dir: "java", install: javaInstall, run: []string{"sh", "java.sh", "JedisLocking"}},
	{name: "lettuce", needs: []string{"java", "mvn"}, dir: "java", install: javaInstall, run: []string{"sh", "java.sh", "LettuceLocking"}},
}

func TestClientLibrariesOfOtherLanguagesLock(t *testing.T) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	host, port, err := net.SplitHostPort(proxy.Addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range clientPrograms {
		t.Run(p.name, func(t *testing.T) {
			dir := p.prepare(t)
			out, err := command(dir, append(p.run, host, port)).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "ok "+p.name) {
				t.Errorf("%v\n%s", err, out)
			}
			eventually(t, cleanMax, "no key is left", func() error { return keysLeft(0, masters...) })
		})
	}
}

// prepare copies the program to a directory in the cache and installs its dependencies there, unless that was done
// for the same files before. Without the runtime the test is skipped.
func (p clientProgram) prepare(t *testing.T) string {
	t.Helper()
	for _, tool := range p.needs {
		if _, err := exec.LookPath(tool); err != nil {
			missing(t, "LOCKPROXY_REQUIRE_CLIENTS", "%s was not tested: %s is not installed", p.name, tool)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		missing(t, "LOCKPROXY_REQUIRE_CLIENTS", "%s was not tested: no directory for its dependencies: %v", p.name, err)
	}
	source := filepath.Join("clients", p.dir)
	dir := filepath.Join(cache, "lockproxy-clients", p.dir+"-"+hashOf(t, source))
	installed := filepath.Join(dir, "installed")
	if _, err := os.Stat(installed); err == nil {
		return dir
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	for _, step := range p.install {
		if out, err := command(dir, step).CombinedOutput(); err != nil {
			missing(t, "LOCKPROXY_REQUIRE_CLIENTS", "%s was not tested: %q: %v\n%s", p.name, step, err, out)
		}
	}
	if err := os.WriteFile(installed, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func command(dir string, words []string) *exec.Cmd {
	name := words[0]
	if strings.Contains(name, "/") {
		name = filepath.Join(dir, name)
	}
	cmd := exec.Command(name, words[1:]...)
	cmd.Dir = dir
	return cmd
}

// hashOf names the content of a directory, so that a changed program is installed anew.
func hashOf(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil {
			_, err = fmt.Fprintf(h, "%s %d\n%s", path, len(content), content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:12]
}
