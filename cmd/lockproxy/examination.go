package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"lockproxy/cmd/lockproxy/audit"
	"lockproxy/cmd/lockproxy/cli"
	"lockproxy/cmd/lockproxy/config"
	"lockproxy/quorum/rules"
)

// An examination is one check.
type examination struct {
	json       bool
	configOnly bool
	wait       time.Duration
}

func newExamination() *examination { return &examination{} }

func (e *examination) flags() []cli.Flag {
	return []cli.Flag{
		{Name: "json", Help: "print one JSON object", Set: cli.Yes(&e.json)},
		{Name: "wait", Arg: "duration", Help: "look again and again until every master votes, for so long at most", Set: cli.Duration(&e.wait, time.Second, 24*time.Hour)},
		{Name: "config-only", Help: "look at the settings only, and ask nobody", Set: cli.Yes(&e.configOnly)},
	}
}

// A finding is the result of one look at everything.
type finding struct {
	OK      bool     `json:"ok"` // as the exit code says
	Voters  int      `json:"voters"`
	Needed  int      `json:"needed"`
	Masters []master `json:"masters"`
	Notes   []string `json:"notes"` // facts beside the table

	text     string // the notes, as printed
	probes   []probe
	everyone bool // votes
}

// A master is a row of the table.
type master struct {
	Addr        string `json:"addr"`
	Votes       bool   `json:"votes"`
	Verdict     string `json:"verdict"`
	Server      string `json:"server,omitempty"`
	Role        string `json:"role,omitempty"`
	RunID       string `json:"run_id,omitempty"`
	Persistence string `json:"persistence,omitempty"`
	MaxMemory   string `json:"maxmemory,omitempty"`
	ClockOffset int64  `json:"clock_offset_usec"`
	RoundTrip   int64  `json:"round_trip_usec"`
}

// run prints the finding. run returns 1 if a quorum could not vote, if the upstream could not be used, or if a running proxy of the same
// upstream takes other names for locks; with --wait, also if not every master votes in time.
func (e *examination) run(l *config.Loaded, stdout, stderr io.Writer) int {
	for _, w := range l.Warnings {
		fmt.Fprintln(stderr, "lockproxy: warning:", w)
	}
	if l.Config.Embedded() && !e.configOnly {
		fmt.Fprintln(stderr, "lockproxy: check: no masters to look at; name them with --masters or --config")
		return exitUsage
	}
	_, err := dialableNow(l.Config)
	if err = cmp.Or(err, audit.Check(l.Config.AuditLog)); err != nil {
		fmt.Fprintln(stderr, "lockproxy:", err)
		return exitUsage
	}
	if e.configOnly {
		return e.settingsAlone(l, stdout)
	}
	f, err := e.untilAllVote(l.Config, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "lockproxy:", err)
		return exitUsage
	}
	if e.json {
		encoder := json.NewEncoder(stdout)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(f) // run in main.go reports failed writes
	} else {
		writeProbes(stdout, f.probes)
		fmt.Fprint(stdout, f.text)
	}
	if !f.OK {
		return exitFailure
	}
	return exitOK
}

// settingsAlone says that the settings can be used.
func (e *examination) settingsAlone(l *config.Loaded, stdout io.Writer) int {
	n := len(l.Config.Masters)
	if e.json {
		_ = json.NewEncoder(stdout).Encode(map[string]any{"ok": true, "masters": n, "needed": rules.Quorum(n), "warnings": append([]string{}, l.Warnings...)})
		return exitOK
	}
	if n == 0 {
		fmt.Fprintln(stdout, "The settings can be used. They name no masters: three embedded ones would serve, for trying out only.")
		return exitOK
	}
	fmt.Fprintf(stdout, "The settings can be used: %d masters, %d needed. Nobody was asked.\n", n, rules.Quorum(n))
	return exitOK
}

// lookAgain is the pause of check between two looks.
const lookAgain = time.Second

// untilAllVote looks once; with --wait, until every master votes and all is well, or the time is over.
func (e *examination) untilAllVote(cfg *config.Config, stderr io.Writer) (*finding, error) {
	end := time.Now().Add(e.wait)
	told := -1
	for {
		f, err := examine(cfg)
		if err != nil || e.wait == 0 {
			return f, err
		}
		if f.OK = f.OK && f.everyone; f.OK || time.Until(end) < lookAgain {
			return f, nil
		}
		if f.Voters != told {
			told = f.Voters
			fmt.Fprintf(stderr, "lockproxy: check: %d of %d masters vote; waiting\n", f.Voters, len(f.probes))
		}
		time.Sleep(lookAgain)
	}
}

// examine looks at everything once.
func examine(cfg *config.Config) (*finding, error) {
	ms, err := dialableNow(cfg)
	if err != nil {
		return nil, err
	}
	all := answering(cfg, ms)
	probes := probeAll(cfg, ms, all)
	inspect(cfg, all, probes)
	askLoading(cfg, ms, probes)
	judge(cfg, probes)
	f := &finding{probes: probes, Needed: rules.Quorum(len(probes)), Notes: []string{}}
	for i := range probes {
		if probes[i].votes {
			f.Voters++
		}
		f.Masters = append(f.Masters, rowOf(&probes[i]))
	}
	f.everyone = f.Voters == len(probes)
	var notes bytes.Buffer
	writeCosts(&notes, permits, probes)
	writeShortfalls(&notes, keepersOf(probes))
	fmt.Fprintf(&notes, "\n%d of %d masters could vote, %d needed.\n", f.Voters, len(probes), f.Needed)
	checkDatabases(cfg, probes, &notes)
	agreed := checkNames(cfg, probes, &notes)
	reached := checkUpstream(cfg, probes, &notes)
	f.OK = f.Voters >= f.Needed && agreed && reached
	f.text = notes.String()
	for note := range strings.SplitSeq(strings.TrimSpace(f.text), "\n") {
		if note = strings.TrimSpace(note); note != "" {
			f.Notes = append(f.Notes, note)
		}
	}
	return f, nil
}

func rowOf(p *probe) master {
	m := master{Addr: p.addr, Votes: p.votes, Verdict: p.verdict}
	if p.err == nil {
		i := &p.info
		m.Server, m.Role, m.RunID = strings.TrimSpace(i.Server+" "+i.Version), i.Role, i.RunID
		m.Persistence, m.MaxMemory = persistence(*i), memory(*i)
		m.ClockOffset, m.RoundTrip = i.ClockOffset.Microseconds(), i.RoundTrip.Microseconds()
	}
	return m
}
