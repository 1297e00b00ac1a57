// Package config turns the file, the environment and the flags of lockproxy into one Config.
//
// One table, settings, drives everything: the keys of the file, the LOCKPROXY_* variables, the flags, the defaults, the
// messages and the help. Load reads the sources in the order default, file, environment, flag, so that the last one
// wins. Then Load checks the relations between the values. Load reports all problems, not only the first.
//
// Nothing in here prints a password: Secret, User and Master redact themselves.
package config

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"lockproxy/script"
)

// Config has all settings of a lockproxy. The table in settings.go explains each field.
type Config struct {
	Masters            []Master // none: three embedded masters, for trying out
	Deployment         string
	Init               string // "manual" or "auto"
	MasterUser         string
	MasterPassword     Secret
	MasterPasswordFile string
	MasterTLSCA        string
	MasterTLSCert      string
	MasterTLSKey       string

	Upstream             Upstream // no address: none
	UpstreamPasswordFile string
	LockKeys             []string

	Listen        string
	TLSCert       string
	TLSKey        string
	TLSClientCA   string
	Users         []User
	ProtectedMode bool
	Admin         string // empty: off
	AdminHosts    []string
	ProxyProtocol []netip.Prefix
	Pprof         bool

	InstanceTimeout time.Duration
	DriftFactor     float64
	Grace           time.Duration
	TTLMax          time.Duration
	MasterDeadAfter time.Duration
	DialTimeout     time.Duration
	QueueMax        int
	Databases       int
	ScriptCache     int
	Scripts         []script.Family // rows for the table of known scripts

	MaxClients      int
	MaxArgs         int
	MaxBulk         int
	MaxCommand      int
	MaxInput        int
	MaxPipeline     int
	MaxOutput       int
	MaxMemory       int
	IdleTimeout     time.Duration
	WriteTimeout    time.Duration
	AuthTimeout     time.Duration
	DrainDelay      time.Duration
	ShutdownTimeout time.Duration

	LogLevel  string
	LogFormat string
	AuditLog  string        // a path, or stdout; empty: off
	SlowLog   time.Duration // 0: no slow log

	LockGroups []LockGroup // the first that matches a name counts
}

// Default returns the configuration of a lockproxy without settings.
func Default() *Config {
	c := &Config{}
	for _, s := range settings {
		s.value.set(c, raw{text: s.def})
	}
	return c
}

// Embedded says that no masters are named, so that the embedded masters are used.
func (c *Config) Embedded() bool { return len(c.Masters) == 0 }

// Exposed says that clients on other machines can reach listen.
func (c *Config) Exposed() bool { return !loopback(c.Listen) }

// FirstDatabase is the database of clients that have not selected another.
func (c *Config) FirstDatabase() int {
	if c.Upstream.Addr != "" || c.Embedded() {
		return c.Upstream.Database
	}
	return c.Masters[0].Database
}

// A Problem must be mended before lockproxy starts.
type Problem struct {
	Where string // the file and line, the variable or the flag; empty for a relation between settings
	Key   string // the setting
	Text  string // the fault and its remedy
}

func (p Problem) String() string {
	switch {
	case p.Key == "":
		return p.Where + ": " + p.Text
	case p.Where == "":
		return p.Key + ": " + p.Text
	}
	return p.Where + ": " + p.Key + ": " + p.Text
}

// Problems are all problems, in the order of the sources.
type Problems []Problem

// problemsMax is how many problems are told. With more problems, the file is most likely the wrong file.
const problemsMax = 50

func (ps Problems) Error() string {
	var lines []string
	for i, p := range ps {
		if i == problemsMax {
			lines = append(lines, fmt.Sprintf("and %d more like these", len(ps)-i))
			break
		}
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}
