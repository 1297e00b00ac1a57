package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// programMax is how long one program may run.
const programMax = 10 * time.Minute

// stepTries is how often an installation or a build is tried: what it downloads may fail for a moment.
const stepTries = 3

// A language is a folder of programs. Commands run in the folder's place in the cache; {source} is the folder itself,
// {dir} its place in the cache.
type language struct {
	name     string     // of the folder
	title    string     // in the table
	needs    []string   // programs that must be installed
	files    []string   // which decide, with the steps, whether the dependencies have to be installed anew
	install  [][]string // dependencies, once
	build    [][]string // every time
	programs [][]string

	frameworks [][]string // programs that are only put through dataScenario, with an upstream: their locks are a library's
}

// A prepared language can run: its dependencies are in the directory.
type prepared struct {
	language
	source, dir string
}

// A job is one program, and what came of it.
type job struct {
	prepared
	words     []string
	framework bool
	results   []result
	err       error
}

// buildRemote builds what puts programs of other languages through the scenarios.
var buildRemote = []string{"go", "build", "-C", "{source}/../go", "-o", "{dir}/remote", "./remote"}

var languages = []language{
	{
		name: "python", title: "Python", needs: []string{"python3"},
		files: []string{"redis-4.txt", "redis-5.txt", "redis-8.txt", "aioredis-1.txt", "libraries.txt", "frameworks.txt"},
		install: [][]string{
			{"sh", "{source}/install.sh", "redis-4", "redis-5", "redis-8", "aioredis-1", "libraries", "frameworks"},
		},
		programs: [][]string{
			{"redis-4/bin/python", "{source}/redis_py.py"},
			{"redis-5/bin/python", "{source}/redis_py.py"},
			{"redis-8/bin/python", "{source}/redis_py.py"},
			{"aioredis-1/bin/python", "{source}/aioredlocks.py"},
			{"libraries/bin/python", "{source}/libraries.py"},
		},
		frameworks: [][]string{{"frameworks/bin/python", "{source}/frameworks.py"}},
	},
	{
		name: "node", title: "Node", needs: []string{"node", "npm"},
		files: []string{"package.json", "package-lock.json"},
		install: [][]string{
			{"cp", "{source}/package.json", "{source}/package-lock.json", "."},
			{"npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"},
		},
		programs:   [][]string{{"node", "{source}/main.js"}},
		frameworks: [][]string{{"node", "{source}/frameworks.js"}},
	},
	{
		name: "go", title: "Go", needs: []string{"go"},
		build: [][]string{
			{"sh", "{source}/build.sh"},
		},
		programs:   [][]string{{"./hand"}, {"./redsync"}, {"./redislock-0.9.3"}, {"./redislock-0.9.4"}, {"./redislock"}, {"./rueidislock"}},
		frameworks: [][]string{{"./asynq"}},
	},
	java(),
	{
		name: "ruby", title: "Ruby", needs: []string{"ruby", "go"},
		build:      [][]string{buildRemote, {"ruby", "-e", `require "redis"; require "sidekiq"`}},
		programs:   [][]string{{"./remote", "redis-rb", "ruby", "{source}/locks.rb"}},
		frameworks: [][]string{{"./remote", "Sidekiq", "ruby", "{source}/sidekiq.rb"}},
	},
	{
		name: "php", title: "PHP", needs: []string{"php", "go"},
		build: [][]string{
			buildRemote,
			{"php", "-r", `foreach (["Predis/Autoloader.php", "Symfony/Component/Lock/autoload.php", "Illuminate/Cache/autoload.php", "Illuminate/Queue/autoload.php"] as $file) {
				require "/usr/share/php/$file";
			}
			new Redis();`},
		},
		programs: [][]string{
			{"./remote", "phpredis", "php", "{source}/locks.php", "phpredis"},
			{"./remote", "predis", "php", "{source}/locks.php", "predis"},
			{"./remote", "phpredis, session locking", "php", "{source}/locks.php", "session"},
			{"./remote", "Symfony Lock", "php", "{source}/locks.php", "symfony"},
			{"./remote", "Laravel, phpredis", "php", "{source}/locks.php", "laravel", "phpredis"},
			{"./remote", "Laravel, predis", "php", "{source}/locks.php", "laravel", "predis"},
		},
	},
	{
		name: "perl", title: "Perl", needs: []string{"perl", "go"},
		build:    [][]string{buildRemote, {"perl", "-e", "use Redis"}},
		programs: [][]string{{"./remote", "Redis.pm", "perl", "{source}/locks.pl"}},
	},
	{
		name: "lua", title: "Lua", needs: []string{"lua5.1", "go"},
		build:    [][]string{buildRemote, {"lua5.1", "-e", "require 'redis'"}},
		programs: [][]string{{"./remote", "redis-lua", "lua5.1", "{source}/locks.lua"}},
	},
	{
		name: "c", title: "C", needs: []string{"cc", "go"},
		build:    [][]string{buildRemote, {"cc", "-Wall", "-Wextra", "-o", "hiredis", "{source}/locks.c", "-lhiredis"}},
		programs: [][]string{{"./remote", "hiredis", "./hiredis"}},
	},
	{
		name: "rust", title: "Rust", needs: []string{"cargo", "go"},
		build: [][]string{
			buildRemote,
			{"cargo", "build", "--quiet", "--locked", "--manifest-path", "{source}/Cargo.toml", "--target-dir", "{dir}/target"},
		},
		programs: [][]string{
			{"./remote", "redis-rs", "target/debug/locks", "redis-0"},
			{"./remote", "redis-rs", "target/debug/locks", "redis-1"},
			{"./remote", "rslock", "target/debug/locks", "rslock"},
		},
	},
}

// java runs one program for each profile of the pom.
func java() language {
	profiles := [][2]string{
		{"jedis-2", "JedisTwo"}, {"jedis-4", "JedisNow"}, {"jedis-5", "JedisNow"}, {"jedis-8", "JedisNow"},
		{"lettuce-6", "LettuceLocks"}, {"lettuce-7", "LettuceLocks"}, {"vertx-4", "VertxLocks"}, {"vertx-5", "VertxLocks"},
		{"redisson-3.16", "RedissonLocks"}, {"redisson-3.43", "RedissonLocks"}, {"redisson-3.45", "RedissonLocks"},
		{"redisson-3.52", "RedissonLocks"}, {"redisson-4", "RedissonLocks"},
		{"spring-data-2", "SpringData"}, {"spring-data-4", "SpringData"},
		{"spring-integration-5", "SpringIntegration"}, {"spring-integration-6", "SpringIntegration"},
		{"spring-integration-7", "SpringIntegration"}, {"shedlock", "ShedLocks"},
	}
	l := language{name: "java", title: "Java", needs: []string{"javac", "mvn"}, files: []string{"pom.xml"}}
	find, compile := []string{"sh", "{source}/java.sh", "classpath"}, []string{"sh", "{source}/java.sh", "compile"}
	for _, p := range profiles {
		find, compile = append(find, p[0]), append(compile, p[0]+":"+p[1])
		l.programs = append(l.programs, []string{"sh", "{source}/java.sh", "run", p[0], p[1]})
	}
	find, compile = append(find, "spring-session"), append(compile, "spring-session:SpringSession")
	l.frameworks = [][]string{{"sh", "{source}/java.sh", "run", "spring-session", "SpringSession"}}
	l.install, l.build = [][]string{find}, [][]string{compile}
	return l
}

func languageNamed(name string) (language, bool) {
	i := slices.IndexFunc(languages, func(l language) bool { return l.name == name })
	if i < 0 {
		return language{}, false
	}
	return languages[i], true
}

// prepare installs the dependencies in the cache, unless that was done for the same build files before, and builds.
func (l language) prepare(clients string) (prepared, error) {
	p := prepared{language: l}
	for _, tool := range l.needs {
		if _, err := exec.LookPath(tool); err != nil {
			return p, fmt.Errorf("%s is not installed", tool)
		}
	}
	var err error
	if p.source, err = filepath.Abs(filepath.Join(clients, l.name)); err != nil {
		return p, err
	}
	if p.dir, err = l.place(p.source); err != nil {
		return p, err
	}
	installed := filepath.Join(p.dir, "installed")
	if _, err := os.Stat(installed); err == nil {
		return p, p.do(l.build)
	}
	if err := errors.Join(os.RemoveAll(p.dir), os.MkdirAll(p.dir, 0o755)); err != nil {
		return p, err
	}
	if err := p.do(l.install); err != nil {
		return p, err
	}
	if err := os.WriteFile(installed, nil, 0o644); err != nil {
		return p, err
	}
	return p, p.do(l.build)
}

// place names the directory of the dependencies, by all that decides what they are.
func (l language) place(source string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for dependencies: %w", err)
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s %q", source, l.install)
	for _, name := range l.files {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(h, "%s %d\n%s", name, len(content), content)
	}
	return filepath.Join(cache, "lockproxy-clients", fmt.Sprintf("%s-%x", l.name, h.Sum(nil)[:6])), nil
}

func (p prepared) do(steps [][]string) error {
	for _, step := range steps {
		out, err := p.command(context.Background(), step).CombinedOutput()
		for try := 1; err != nil && try < stepTries; try++ {
			fmt.Printf("%s: %q: %v; again\n", p.title, step, err)
			time.Sleep(time.Duration(try) * 5 * time.Second) // for the registry to come back
			out, err = p.command(context.Background(), step).CombinedOutput()
		}
		if err != nil {
			return fmt.Errorf("%q: %w\n%s", step, err, out)
		}
	}
	return nil
}

func (p prepared) command(ctx context.Context, words []string) *exec.Cmd {
	var args []string
	for _, w := range words {
		args = append(args, strings.NewReplacer("{source}", p.source, "{dir}", p.dir).Replace(w))
	}
	if strings.Contains(args[0], "/") && !filepath.IsAbs(args[0]) {
		args[0] = filepath.Join(p.dir, args[0])
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a program that is stopped takes its children along
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// run runs the program against fresh masters and reads what it reports.
func (j *job) run(o options, bin string) {
	start := time.Now()
	name := strings.ReplaceAll(strings.Join(j.words, " "), "{source}/", "")
	s, err := startStack(bin, o.upstream)
	if err != nil {
		j.err = err
		return
	}
	defer s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), programMax)
	defer cancel()
	cmd := j.command(ctx, j.words)
	cmd.Env = append(os.Environ(), s.environment()...)
	wanted := o.chosen()
	if j.framework {
		wanted = []string{dataScenario}
	}
	cmd.Env = append(cmd.Env, "LIBRARIES="+o.libraries, "SCENARIOS="+strings.Join(wanted, ","),
		"NODE_PATH="+filepath.Join(j.dir, "node_modules"),
		"PYTHONDONTWRITEBYTECODE=1")
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	j.err = cmd.Run()
	if j.results, err = readResults(j.title, out.Bytes()); j.err == nil && len(j.results) == 0 && o.libraries == "" {
		err = errors.New("no results")
	}
	for i := range j.results {
		j.results[i].framework = j.framework
	}
	if j.err = errors.Join(j.err, err, s.healthy()); j.err != nil {
		j.err = fmt.Errorf("%s: %w\n%s\n%s", name, j.err, problems.Bytes(), out.Bytes())
	}
	if o.verbose {
		fmt.Printf("%s%s%s", problems.Bytes(), out.Bytes(), s.proxy.Output())
	}
	fmt.Printf("%s: %s: %d scenarios in %.0f s\n", j.title, name, len(j.results), time.Since(start).Seconds())
}
