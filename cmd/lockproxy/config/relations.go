package config

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// A relation is a rule between settings. The rule is checked only if each of the settings is good by itself.
type relation struct {
	keys  []string // the problem is reported under the first key
	check func(c *Config) string
}

// mastersMax is the most masters that quorum accepts: with more, every lock costs more than the safety that it gains.
const mastersMax = 15

// relations are the rules between settings.
var relations = []relation{
	{[]string{"masters"}, func(c *Config) string {
		seen := make(map[string]bool)
		for _, m := range c.Masters {
			if seen[m.Addr] {
				return m.Addr + " is there twice, and one server must not vote twice; remove one"
			}
			seen[m.Addr] = true
		}
		if len(c.Masters) > mastersMax {
			return fmt.Sprintf("%d are too many; name at most %d", len(c.Masters), mastersMax)
		}
		return ""
	}},
	{[]string{"master_password", "master_password_file"}, func(c *Config) string {
		return failIf(!c.MasterPassword.Empty() && c.MasterPasswordFile != "",
			"and master_password_file are both set; remove one")
	}},
	{[]string{"master_user", "master_password", "master_password_file"}, func(c *Config) string {
		return failIf(c.MasterUser != "" && c.MasterPassword.Empty() && c.MasterPasswordFile == "",
			"has no password; set master_password or master_password_file")
	}},
	{[]string{"master_user", "masters", "master_password", "master_password_file"}, func(c *Config) string {
		return failIf(c.Embedded() && c.MasterUser+c.MasterPassword.Reveal()+c.MasterPasswordFile != "",
			"or a password of the masters is set, but no masters; name them in masters")
	}},
	{[]string{"master_tls_cert", "master_tls_key"}, func(c *Config) string {
		return failIf((c.MasterTLSCert == "") != (c.MasterTLSKey == ""), "and master_tls_key belong together; set both or none")
	}},
	{[]string{"master_tls_ca", "master_tls_cert", "masters", "upstream"}, func(c *Config) string {
		return failIf(c.MasterTLSCA+c.MasterTLSCert != "" && !c.masterTLS() && !c.Upstream.TLS,
			"or master_tls_cert is set, but no master is reached by TLS; write its address as rediss://host:port")
	}},
	{[]string{"lock_keys", "upstream"}, func(c *Config) string {
		switch {
		case c.Upstream.Addr != "" && len(c.LockKeys) == 0:
			return `is empty, so that no key would be a lock, and upstream would get all; name the locks, such as ["lock:*"], or ["*"] for every key`
		case c.Upstream.Addr == "" && len(c.LockKeys) > 0:
			return "is set, but no upstream, so that every key is a lock's; set upstream, or remove lock_keys"
		}
		return ""
	}},
	{[]string{"upstream_password_file", "upstream"}, func(c *Config) string {
		switch {
		case c.UpstreamPasswordFile == "":
			return ""
		case c.Upstream.Addr == "":
			return "is set, but no upstream; set upstream, or remove it"
		}
		return failIf(!c.Upstream.Password.Empty(), "and the URL of upstream both have a password; remove one")
	}},
	{[]string{"upstream", "masters"}, func(c *Config) string {
		for _, m := range c.Masters {
			if m.Addr == c.Upstream.Addr {
				return m.Addr + " is also a master, and what clients do to their data (FLUSHALL, eviction) must not reach locks; give the masters servers of their own"
			}
		}
		return ""
	}},
	{[]string{"masters"}, func(c *Config) string {
		for _, m := range c.Masters {
			if first := c.Masters[0]; m.Database != first.Database {
				return fmt.Sprintf("%s names database %d, %s database %d; clients begin in one: name the same for all, or none",
					first.Addr, first.Database, m.Addr, m.Database)
			}
		}
		return ""
	}},
	{[]string{"masters", "databases"}, func(c *Config) string {
		return failIf(c.Upstream.Addr == "" && c.FirstDatabase() >= c.Databases, fmt.Sprintf(
			"names database %d, of databases 0 to %d; clients begin there: raise databases", c.FirstDatabase(), c.Databases-1))
	}},
	{[]string{"masters", "upstream"}, func(c *Config) string {
		for _, m := range c.Masters {
			if c.Upstream.Addr != "" && m.Database != 0 && m.Database != c.Upstream.Database {
				return fmt.Sprintf("names database %d, and upstream %d; clients begin in one, for their locks too: leave it to upstream",
					m.Database, c.Upstream.Database)
			}
		}
		return ""
	}},
	{[]string{"upstream", "databases"}, func(c *Config) string {
		return failIf(c.Upstream.Addr != "" && c.Upstream.Database >= c.Databases, fmt.Sprintf(
			"names database %d, of databases 0 to %d; clients begin there, with their locks, too: raise databases", c.Upstream.Database, c.Databases-1))
	}},
	{[]string{"tls_cert", "tls_key"}, func(c *Config) string {
		return failIf((c.TLSCert == "") != (c.TLSKey == ""), "and tls_key belong together; set both or none")
	}},
	{[]string{"tls_client_ca", "tls_cert"}, func(c *Config) string {
		return failIf(c.TLSClientCA != "" && c.TLSCert == "", "needs TLS; set tls_cert and tls_key too")
	}},
	{[]string{"admin", "listen"}, func(c *Config) string {
		return failIf(c.Admin != "" && c.Admin == c.Listen && !strings.HasSuffix(c.Admin, ":0"),
			"is the same address as listen; give it another port, or off")
	}},
	{[]string{"pprof", "admin"}, func(c *Config) string {
		return failIf(c.Pprof && c.Admin == "", "is on, but admin is off; give admin an address or set pprof: false")
	}},
	{[]string{"master_dead_after", "instance_timeout"}, func(c *Config) string {
		return failIf(c.MasterDeadAfter <= c.InstanceTimeout, fmt.Sprintf(
			"%s is not longer than instance_timeout (%s), so that every slow vote would end a connection; raise it or lower instance_timeout",
			short(c.MasterDeadAfter), short(c.InstanceTimeout)))
	}},
	{[]string{"ttl_max", "drift_factor", "instance_timeout"}, func(c *Config) string {
		drift := time.Duration(float64(c.TTLMax)*c.DriftFactor) + 2*time.Millisecond
		return failIf(c.TTLMax <= c.InstanceTimeout+drift, fmt.Sprintf(
			"%s leaves no validity: a round may take instance_timeout (%s), and drift = ttl_max × drift_factor + 2ms is %s; raise it",
			short(c.TTLMax), short(c.InstanceTimeout), short(drift)))
	}},
	{[]string{"shutdown_timeout", "instance_timeout"}, func(c *Config) string {
		return failIf(c.ShutdownTimeout < c.InstanceTimeout, fmt.Sprintf(
			"%s is shorter than instance_timeout (%s), so that running commands could not end; raise it",
			short(c.ShutdownTimeout), short(c.InstanceTimeout)))
	}},
	sizes("max_command", func(c *Config) int { return c.MaxCommand }, "max_bulk", func(c *Config) int { return c.MaxBulk }),
	sizes("max_input", func(c *Config) int { return c.MaxInput }, "max_command", func(c *Config) int { return c.MaxCommand }),
	sizes("max_output", func(c *Config) int { return c.MaxOutput }, "max_bulk", func(c *Config) int { return c.MaxBulk }),
	sizes("max_memory", func(c *Config) int { return c.MaxMemory }, "max_input", func(c *Config) int { return c.MaxInput }),
}

// sizes is the relation that the setting larger must be at least the setting smaller.
func sizes(larger string, a func(*Config) int, smaller string, b func(*Config) int) relation {
	return relation{[]string{larger, smaller}, func(c *Config) string {
		return failIf(a(c) < b(c), fmt.Sprintf("%s is less than %s (%s); raise it to that at least", sizeText(a(c)), smaller, sizeText(b(c))))
	}}
}

func failIf(bad bool, text string) string {
	if bad {
		return text
	}
	return ""
}

// finish checks the settings together: relations, files, and warnings.
func (l *Loaded) finish() {
	for _, r := range slices.Concat(relations, files) {
		l.check(r)
	}
	l.warn()
}

func (l *Loaded) check(r relation) {
	for _, key := range r.keys {
		if l.bad[key] {
			return
		}
	}
	if wrong := r.check(l.Config); wrong != "" {
		l.problem("", r.keys[0], wrong)
	}
}

// warn lists settings that work and are not wise.
func (l *Loaded) warn() {
	c := l.Config
	switch n := len(c.Masters); {
	case n == 0:
	case n < 3:
		l.Warnings = append(l.Warnings, fmt.Sprintf(
			"masters: with fewer than 3 (named: %d) no lock survives the loss of one; name three or five independent ones", n))
	case n%2 == 0:
		l.Warnings = append(l.Warnings, fmt.Sprintf(
			"%d masters bear no more failures than %d do, and a lock needs one vote more; name an odd number", n, n-1))
	}
	switch {
	case !c.Exposed() || len(c.Users) > 0 || c.TLSClientCA != "":
	case c.ProtectedMode:
		l.Warnings = append(l.Warnings, "listen "+c.Listen+
			" can be reached from other machines, but protected mode turns their clients away, as nobody needs to log in; set users or tls_client_ca, or protected_mode: no")
	default:
		l.Warnings = append(l.Warnings, "listen "+c.Listen+
			" can be reached from other machines, and nobody needs to log in; set users, or tls_client_ca")
	}
	if c.Pprof && !loopback(c.Admin) {
		l.Warnings = append(l.Warnings, "admin "+c.Admin+
			" can be reached from other machines, and profiles show what is in memory; set pprof: false when done")
	}
	now := time.Now()
	for _, old := range []string{
		outOfDate("tls_cert", c.TLSCert, c.TLSKey, now), outOfDate("master_tls_cert", c.MasterTLSCert, c.MasterTLSKey, now),
	} {
		if old != "" {
			l.Warnings = append(l.Warnings, old)
		}
	}
}

func loopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (c *Config) masterTLS() bool {
	return slices.ContainsFunc(c.Masters, func(m Master) bool { return m.TLS })
}
