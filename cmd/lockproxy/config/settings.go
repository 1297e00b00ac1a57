package config

import (
	"path/filepath"
	"time"
)

// A setting is one row of the table. To add a setting, add a row here and a paragraph to config.example.yaml.
type setting struct {
	name   string // its key in the file; LOCKPROXY_NAME and --name (with dashes) follow from the key
	def    string // the default, as a user would write the value
	help   string // one line
	secret bool   // no flag: a command line is for everybody on the machine to read
	value  value
}

// settings is the table of all settings, in the order of config.example.yaml.
var settings = []setting{
	{"masters", "", "the independent Redis masters; none: three embedded ones, for trying out", false, value{set: setMasters}},
	{"deployment", "", "name of the deployment, where its proxies know the masters by different addresses", false,
		text(func(c *Config) *string { return &c.Deployment }, "a name")},
	{"init", "manual", "auto: at the start, mark masters clean that are all empty", false,
		oneOf(func(c *Config) *string { return &c.Init }, "manual", "auto")},
	{"master_user", "", "user at every master whose URL names none", false,
		text(func(c *Config) *string { return &c.MasterUser }, "a name")},
	{"master_password", "", "password at every master whose URL names none", true,
		secret(func(c *Config) *Secret { return &c.MasterPassword }, "a password")},
	{"master_password_file", "", "file that holds master_password", false,
		text(func(c *Config) *string { return &c.MasterPasswordFile }, "a path")},
	{"master_tls_ca", "", "PEM file with the authorities that rediss:// masters are trusted by; empty: the system's", false,
		text(func(c *Config) *string { return &c.MasterTLSCA }, "a path")},
	{"master_tls_cert", "", "PEM file with the certificate that lockproxy shows to rediss:// masters", false,
		text(func(c *Config) *string { return &c.MasterTLSCert }, "a path")},
	{"master_tls_key", "", "PEM file with the key of master_tls_cert", false,
		text(func(c *Config) *string { return &c.MasterTLSKey }, "a path")},

	{"upstream", "", "the Redis that gets every command that is not about a lock; none: such commands are unknown", false,
		scalar("redis://user:password@host:port/database, or rediss:// for TLS", setUpstream)},
	{"upstream_password_file", "", "file that holds the password of upstream, where its URL names none", false,
		text(func(c *Config) *string { return &c.UpstreamPasswordFile }, "a path")},
	{"lock_keys", "", "patterns of the names of locks, where there is an upstream", false, value{set: setLockKeys}},

	{"listen", "127.0.0.1:6380", "where Redis clients connect", false,
		address(func(c *Config) *string { return &c.Listen })},
	{"tls_cert", "", "PEM file with the certificate for clients; set: clients must use TLS", false,
		text(func(c *Config) *string { return &c.TLSCert }, "a path")},
	{"tls_key", "", "PEM file with the key of tls_cert", false,
		text(func(c *Config) *string { return &c.TLSKey }, "a path")},
	{"tls_client_ca", "", "PEM file with the authorities that clients' certificates must come from", false,
		text(func(c *Config) *string { return &c.TLSClientCA }, "a path")},
	{"users", "", "who may log in; none: nobody needs to", true, value{set: setUsers}},
	{"protected_mode", "yes", "turn away clients on other machines, where nobody needs to log in", false,
		boolean(func(c *Config) *bool { return &c.ProtectedMode })},
	{"proxy_protocol", "", "networks of load balancers that say who their clients are, by the PROXY protocol", false,
		value{set: setProxyProtocol}},
	{"admin", "127.0.0.1:6381", "where /metrics, /readyz, /lockz and /healthz are; off: nowhere", false,
		addressOrOff(func(c *Config) *string { return &c.Admin })},
	{"admin_hosts", "", "names by which admin may be asked; IP addresses and this machine's own names always may", false,
		value{set: setAdminHosts}},
	{"pprof", "false", "profiles of the process under /debug/pprof/ of admin", false,
		boolean(func(c *Config) *bool { return &c.Pprof })},

	{"instance_timeout", "250ms", "how long a round waits for a master's vote", false,
		duration(func(c *Config) *time.Duration { return &c.InstanceTimeout }, time.Millisecond, time.Minute)},
	{"drift_factor", "0.01", "part of a TTL by which clocks may come apart", false,
		fraction(func(c *Config) *float64 { return &c.DriftFactor }, 0.0001, 0.5)},
	{"grace", "50ms", "how much longer than TTL + drift a master keeps a lock", false,
		duration(func(c *Config) *time.Duration { return &c.Grace }, time.Millisecond, time.Minute, "none")},
	{"ttl_max", "1h", "longest TTL, and the TTL of a key that asks for none", false,
		duration(func(c *Config) *time.Duration { return &c.TTLMax }, 10*time.Millisecond, 30*24*time.Hour)},
	{"master_dead_after", "5s", "silence that ends a connection to a master", false,
		duration(func(c *Config) *time.Duration { return &c.MasterDeadAfter }, 10*time.Millisecond, 10*time.Minute)},
	{"dial_timeout", "1s", "how long connecting to a master may take", false,
		duration(func(c *Config) *time.Duration { return &c.DialTimeout }, 10*time.Millisecond, time.Minute)},
	{"queue_max", "65536", "commands that may wait for one lane", false,
		integer(func(c *Config) *int { return &c.QueueMax }, 16, 1<<24)},
	{"databases", "16", "logical databases that SELECT reaches", false,
		integer(func(c *Config) *int { return &c.Databases }, 1, 1024)},
	{"script_cache", "1000", "scripts kept for EVALSHA", false,
		integer(func(c *Config) *int { return &c.ScriptCache }, 1, 1<<24)},
	{"scripts", "", "rows for the table of known scripts", false, value{set: setScripts}},

	{"max_clients", "10000", "client connections", false,
		integer(func(c *Config) *int { return &c.MaxClients }, 1, 1<<20)},
	{"max_args", "1024", "arguments of one command", false,
		integer(func(c *Config) *int { return &c.MaxArgs }, 16, 1<<20)},
	{"max_bulk", "1mb", "size of one argument", false,
		size(func(c *Config) *int { return &c.MaxBulk }, "1kb", "512mb")},
	{"max_command", "4mb", "size of one command", false,
		size(func(c *Config) *int { return &c.MaxCommand }, "16kb", "1gb")},
	{"max_input", "16mb", "what one client may send ahead of its replies", false,
		size(func(c *Config) *int { return &c.MaxInput }, "16kb", "1gb")},
	{"max_pipeline", "1024", "commands of one client under way at once", false,
		integer(func(c *Config) *int { return &c.MaxPipeline }, 1, 1<<20)},
	{"max_output", "16mb", "replies that may wait for one client", false,
		size(func(c *Config) *int { return &c.MaxOutput }, "16kb", "1gb")},
	{"max_memory", "256mb", "all that may wait for and from all clients; of masters as much again", false,
		size(func(c *Config) *int { return &c.MaxMemory }, "1mb", "1024gb")},
	{"idle_timeout", "0", "silence that ends a client's connection", false,
		duration(func(c *Config) *time.Duration { return &c.IdleTimeout }, time.Second, 30*24*time.Hour, "never")},
	{"write_timeout", "30s", "how long a client may read nothing while replies wait", false,
		duration(func(c *Config) *time.Duration { return &c.WriteTimeout }, 10*time.Millisecond, time.Hour)},
	{"auth_timeout", "10s", "how long a client may take to log in, where there are users, and for a TLS handshake", false,
		duration(func(c *Config) *time.Duration { return &c.AuthTimeout }, 10*time.Millisecond, time.Hour)},
	{"drain_delay", "0", "how long clients are still let in after SIGTERM, while /readyz says no", false,
		duration(func(c *Config) *time.Duration { return &c.DrainDelay }, time.Millisecond, 10*time.Minute, "none")},
	{"shutdown_timeout", "10s", "how long running commands may take to end after SIGTERM", false,
		duration(func(c *Config) *time.Duration { return &c.ShutdownTimeout }, time.Millisecond, time.Hour)},

	{"log_level", "info", "what is logged", false,
		oneOf(func(c *Config) *string { return &c.LogLevel }, "debug", "info", "warn", "error")},
	{"log_format", "text", "how it is logged", false,
		oneOf(func(c *Config) *string { return &c.LogFormat }, "text", "json")},
	{"audit_log", "off", "where a line of JSON goes for each lock that is taken, given back or lost: stdout, or a file", false,
		scalar("stdout, the path of a file from the root, or off", setAuditLog)},
	{"slow_log", "10ms", "how long a command takes that SLOWLOG shows", false,
		duration(func(c *Config) *time.Duration { return &c.SlowLog }, time.Millisecond, time.Hour, "none")},
	{"lock_groups", "", "groups of locks, by patterns of names, for metrics of waits, holds and refusals", false,
		value{set: setLockGroups}},
}

// lookup returns the setting with this name, or nil.
func lookup(name string) *setting {
	for i := range settings {
		if settings[i].name == name {
			return &settings[i]
		}
	}
	return nil
}

// names returns the names of all settings.
func names() []string {
	all := make([]string, len(settings))
	for i, s := range settings {
		all[i] = s.name
	}
	return all
}

// setAuditLog takes off, stdout, or a path. A relative path would be another file with each directory that lockproxy is started in.
func setAuditLog(c *Config, text string) (problem string) {
	switch {
	case text == "" || text == "off":
		c.AuditLog = ""
	case text == "stdout" || filepath.IsAbs(text):
		c.AuditLog = text
	default:
		return "is no path from the root: \"" + text + "\"; write stdout, /var/log/lockproxy/audit.log or the like, or off"
	}
	return ""
}
