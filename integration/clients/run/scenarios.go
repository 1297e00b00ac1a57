package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Scenarios that every library is put through, in the order of the runs. The names are those in the table.
var scenarios = []string{
	"take",         // the lock is granted, and a quorum of masters hold it
	"refuse",       // somebody else is refused meanwhile
	"release",      // no master holds anything, and the lock can be taken again
	"stranger",     // the release of one whose lock has expired does not release the next holder's
	"extend",       // the lock outlives its first TTL
	"expiry",       // it passes to another when its TTL is over, and not before
	"wait",         // a waiter gets it when it is released, long before the TTL is over
	"lost",         // it vanishes from the masters: extend and release say so
	"no quorum",    // two of three masters down: never granted, never released
	"minority",     // one of three masters down: everything works
	"re-entrance",  // its holder takes it again, and releases as often
	"watchdog",     // it is kept over several periods by the library itself
	"binary token", // any bytes, and none at all, are a token
	"reconnect",    // the proxy restarts: the lock is still held, and the same client goes on
}

// dataScenario is for a proxy with an upstream: a client that holds a lock uses everything else that its library has,
// which is data, at the upstream.
const dataScenario = "data"

// chosen returns the scenarios that are to be run.
func (o *options) chosen() []string {
	switch {
	case o.scenarios != "":
		return strings.Split(o.scenarios, ",")
	case o.upstream:
		return append(slices.Clone(scenarios), dataScenario)
	}
	return scenarios
}

// Results of a scenario.
const (
	ok     = "ok"
	failed = "failed"
	absent = "absent" // the library has no such feature
)

// A result is how one version of a library fared in one scenario, as its program reports it.
type result struct {
	language  string
	framework bool

	Library  string `json:"library"`
	Version  string `json:"version"`
	Scenario string `json:"scenario"`
	Result   string `json:"result"`
	Why      string `json:"why"`
	Used     string `json:"used"` // in the scenario "data": what of the library
}

func (r result) String() string {
	return fmt.Sprintf("%s %s: %s: %s %s", r.Library, r.Version, r.Scenario, r.Result, r.Why)
}

// readResults takes the lines of a program that are JSON objects; libraries may write lines of their own.
func readResults(language string, out []byte) ([]result, error) {
	var all []result
	for line := range bytes.Lines(out) {
		if !bytes.HasPrefix(line, []byte("{")) {
			continue
		}
		r := result{language: language}
		if err := json.Unmarshal(line, &r); err != nil {
			return all, fmt.Errorf("not a result: %s: %w", line, err)
		}
		if r.Library == "" || r.Version == "" || !slices.Contains([]string{ok, failed, absent}, r.Result) {
			return all, fmt.Errorf("not a result: %s", line)
		}
		all = append(all, r)
	}
	return all, nil
}

// A knownFailure is a scenario that a library fails, and why.
type knownFailure struct {
	library, version, scenario string // "*" is any
	why                        string
}

func (k knownFailure) fits(r result) bool {
	match := func(pattern, s string) bool { return pattern == "*" || pattern == s }
	return match(k.library, r.Library) && match(k.version, r.Version) && match(k.scenario, r.Scenario)
}

// readKnown reads the known failures: library | version | scenarios | why, a line each.
func readKnown(path string) ([]knownFailure, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []knownFailure
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(line, "|", 4)
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if len(fields) != 4 || fields[3] == "" {
			return nil, fmt.Errorf("%s: not a known failure: %s", path, line)
		}
		for scenario := range strings.SplitSeq(fields[2], ", ") {
			if scenario != "*" && !slices.Contains(scenarios, scenario) {
				return nil, fmt.Errorf("%s: no scenario %q: %s", path, scenario, line)
			}
			all = append(all, knownFailure{fields[0], fields[1], scenario, fields[3]})
		}
	}
	return all, nil
}

// reasonFor returns why the scenario is known to fail, or "".
func reasonFor(r result, known []knownFailure) string {
	for _, k := range known {
		if k.fits(r) {
			return k.why
		}
	}
	return ""
}

// check returns what is wrong with the results of the chosen scenarios: a failure nobody knew of, a known one that did
// not happen, a scenario that was not run or was run twice.
func check(results []result, chosen []string, known []knownFailure) []string {
	var faults []string
	seen := map[[3]string]int{}
	for _, r := range results {
		seen[[3]string{r.Library, r.Version, r.Scenario}]++
		reason := reasonFor(r, known)
		switch {
		case !slices.Contains(chosen, r.Scenario):
			faults = append(faults, "unknown scenario: "+r.String())
		case r.Result == failed && reason == "":
			faults = append(faults, r.String())
		case r.Result == ok && reason != "":
			faults = append(faults, fmt.Sprintf("%s %s: %s works, but is known to fail: %s", r.Library, r.Version, r.Scenario, reason))
		}
	}
	for _, l := range rowsOf(results) {
		for _, name := range chosen {
			if n := seen[[3]string{l.Library, l.Version, name}]; n != 1 && (!l.framework || name == dataScenario) {
				faults = append(faults, fmt.Sprintf("%s %s: %s was reported %d times, want once", l.Library, l.Version, name, n))
			}
		}
	}
	return faults
}

// rowsOf returns the first result of each version of each library, in the order of the reports.
func rowsOf(results []result) []result {
	var rows []result
	for _, r := range results {
		if !slices.ContainsFunc(rows, func(o result) bool { return o.Library == r.Library && o.Version == r.Version }) {
			rows = append(rows, r)
		}
	}
	return rows
}
