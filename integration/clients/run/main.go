// Command run tests real client libraries, unmodified, against lockproxy in front of three real masters.
//
// Each folder beside this one holds the programs of one language, with build files of their own that lock every version.
// A program reports on standard output, a JSON object a line, how each of its libraries fared in each scenario; while it
// runs it can ask for faults over the control port (control.go). What every library must do is in scenarios.go, what
// one cannot do, and why, in ../known.txt. A script of a library must be understood, or be in the table of families: one that the
// proxy does not know fails the run. The table in docs/clients.md is made from the run: one that differs from it fails,
// and -update writes it anew. With -upstream the proxy stands in front of a fourth Redis as well, where all goes that is
// no lock, and each library is also used for that, beside a lock: that is the table in docs/upstream.md. Frameworks that are built
// on Redis, as job queues, are run only there.
//
// Dependencies are installed by the language's own tool, once, in the user's cache. A language whose runtime is missing
// is not run; LOCKPROXY_REQUIRE_CLIENTS=1 makes that a failure.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"lockproxy/integration/harness"
)

// errFailed ends the program when everything that is wrong has been printed.
var errFailed = errors.New("failed")

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "root of the tree")
	flag.StringVar(&o.languages, "languages", "", "comma-separated folders to run; default all")
	flag.StringVar(&o.libraries, "libraries", "", "run only libraries whose name contains this; nothing is compared then")
	flag.IntVar(&o.parallel, "parallel", runtime.NumCPU(), "programs that run at once, each against masters of its own")
	flag.StringVar(&o.scenarios, "scenarios", "", "comma-separated scenarios to run; default all")
	flag.BoolVar(&o.upstream, "upstream", false, "put the proxy in front of an upstream, too, and use that beside the locks")
	flag.BoolVar(&o.update, "update", false, "write the table in docs/clients.md, or docs/upstream.md, instead of comparing it")
	flag.BoolVar(&o.speed, "speed", false, "only compare the speed of Redisson's locks through lockproxy and without it")
	flag.BoolVar(&o.verbose, "v", false, "show what the programs print")
	flag.Parse()
	o.parallel = max(o.parallel, 1)
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type options struct {
	root, languages, libraries, scenarios string
	parallel                              int
	update, verbose, speed, upstream      bool
}

func run(o options) error {
	if err := harness.HaveRedis(); err != nil {
		return fmt.Errorf("redis-server cannot be run: %w", err)
	}
	clients := filepath.Join(o.root, "integration", "clients")
	known, err := readKnown(filepath.Join(clients, "known.txt"))
	if err != nil {
		return err
	}
	bin, done, err := buildProxy()
	if err != nil {
		return err
	}
	defer done()
	if o.speed {
		return compareRedisson(clients, bin)
	}
	chosen, err := chooseLanguages(o.languages)
	if err != nil {
		return err
	}
	start := time.Now()
	ready, complete := prepareAll(chosen, clients)
	results, passed := runAll(o, ready, bin, known)
	fmt.Printf("%d scenarios of %d languages in %.0f s\n", len(results), len(ready), time.Since(start).Seconds())
	if !passed || !complete && os.Getenv("LOCKPROXY_REQUIRE_CLIENTS") == "1" {
		return errFailed
	}
	switch {
	case o.libraries != "":
		return nil
	case o.upstream && slices.Contains(o.chosen(), dataScenario):
		return dataTable.update(o.root, ready, dataRows(results), o.update)
	case o.upstream || o.scenarios != "":
		return nil
	}
	return lockTable.update(o.root, ready, lockRows(results, known), o.update)
}

// prepareAll installs what the languages need. A language for which that fails is told, and left out.
func prepareAll(chosen []language, clients string) (ready []prepared, complete bool) {
	complete = true
	for _, l := range chosen {
		start := time.Now()
		p, err := l.prepare(clients)
		if err != nil {
			fmt.Printf("NOT RUN: %s: %v\n", l.title, err)
			complete = false
			continue
		}
		fmt.Printf("%s: ready after %.0f s\n", l.title, time.Since(start).Seconds())
		ready = append(ready, p)
	}
	return ready, complete
}

// runAll runs all programs, some at a time, and prints what is wrong with their results.
func runAll(o options, ready []prepared, bin string, known []knownFailure) (results []result, passed bool) {
	var jobs []*job
	for _, p := range ready {
		for _, words := range p.programs {
			jobs = append(jobs, &job{prepared: p, words: words})
		}
		for _, words := range p.frameworks {
			if o.upstream && slices.Contains(o.chosen(), dataScenario) {
				jobs = append(jobs, &job{prepared: p, words: words, framework: true})
			}
		}
	}
	var running sync.WaitGroup
	free := make(chan struct{}, o.parallel)
	for _, j := range jobs {
		free <- struct{}{}
		running.Go(func() {
			j.run(o, bin)
			<-free
		})
	}
	running.Wait()
	passed = true
	for _, j := range jobs {
		results = append(results, j.results...)
		if j.err != nil {
			fmt.Printf("FAILED: %s: %v\n", j.title, j.err)
			passed = false
		}
	}
	for _, fault := range check(results, o.chosen(), known) {
		fmt.Printf("FAILED: %s\n", fault)
		passed = false
	}
	return results, passed
}

func buildProxy() (bin string, done func(), err error) {
	dir, err := os.MkdirTemp("", "lockproxy-clients-")
	if err != nil {
		return "", nil, err
	}
	done = func() { _ = os.RemoveAll(dir) }
	if bin, err = harness.BuildProxy(dir); err != nil {
		done()
	}
	return bin, done, err
}

func chooseLanguages(names string) ([]language, error) {
	if names == "" {
		return languages, nil
	}
	var chosen []language
	for name := range strings.SplitSeq(names, ",") {
		l, ok := languageNamed(name)
		if !ok {
			return nil, fmt.Errorf("there is no language %q", name)
		}
		chosen = append(chosen, l)
	}
	return chosen, nil
}
