package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// FILE stands for the path of the file, which is what the first column holds.
var fileProblems = []struct{ file, want string }{
	// The shape of the file.
	{"a: b: c", "FILE:1: is no YAML: mapping value is not allowed in this context"},
	{"databases: 1\ndatabases: 2", "FILE:2: is no YAML: mapping key \"databases\" already defined at [1:1]"},
	{"- databases", "FILE:1: is no mapping; write one \"key: value\" on each line"},
	{"databases", "FILE:1: is no mapping; write one \"key: value\" on each line"},
	{"databases: 1\n---\ndatabases: 2", "FILE:3: a second document begins; keep all settings in one"},
	{"\xff\xfem\x00a\x00s\x00", "FILE:1: is not UTF-8; have your editor save the file so"},
	{"databases: 1\n# M\xfcnchen", "FILE:2: is not UTF-8; have your editor save the file so"},
	{"grace:", "FILE:1: grace: has no value; give one, or remove the line"},
	{"grace: &a 1ms", "FILE:1: grace: is more than a plain value; write it out, without anchors, aliases and tags"},
	{"masters: [a, ~]", "FILE:1: masters: item 2 has no value; give one, or remove the line"},
	{"users: [{name: ~}]", "FILE:1: users: item 1 name has no value; give one, or remove the line"},
	{"", "FILE: sets nothing; write masters and what else is to be set there, or leave it out"},
	{"# masters: [a, b, c]\n---\n", "FILE: sets nothing; write masters and what else is to be set there, or leave it out"},
	{`masters: ""`, "FILE:1: masters: is empty; give it a value, or write [] so that three embedded masters serve, for trying out only"},
	{"masters: [a, b, c]\nusers: ' '", "FILE:2: users: is empty; give it a value, or write [] so that nobody needs to log in"},
	{"audit_log: audit.log", "FILE:1: audit_log: is no path from the root: \"audit.log\"; write stdout, /var/log/lockproxy/audit.log or the like, or off"},
	{"lock_groups: {a: b}", "FILE:1: lock_groups: is no list; write - pattern: … and group: … for each"},
	{"lock_groups: [a]", `FILE:1: lock_groups: entry 1 is no mapping; write pattern: "stock:*" and group: stock`},
	{"lock_groups: ['a=b']", `FILE:1: lock_groups: entry 1 is no mapping; write pattern: "stock:*" and group: stock`},
	{"lock_groups: 'a=b,c'", "FILE:1: lock_groups: entry 2 has no group; write what the metrics call these locks, such as group: stock, or in a flag stock:*=stock"},
	{"lock_groups: '=b'", `FILE:1: lock_groups: entry 1 has no pattern; write one such as "stock:*"`},
	{"lock_groups: [{pattern: [a], group: b}]", "FILE:1: lock_groups: entry 1 pattern is no text"},
	{"lock_groups: [{pattern: a, label: b}]", `FILE:1: lock_groups: entry 1 has the unknown key "label"; there are pattern and group`},
	{"lock_groups: [{pattern: a, group: 'b c'}]", `FILE:1: lock_groups: entry 1 has the group "b c"; write 1 to 64 of the letters a to z, digits, _ . : / -`},
	{"lock_groups:\n- {pattern: a, group: b}\n- {pattern: a, group: c}", `FILE:3: lock_groups: entry 2 has pattern "a", as an earlier entry has, and the first counts; remove one`},
	{"lock_groups: [{pattern: " + strings.Repeat("x", 257) + ", group: b}]", "FILE:1: lock_groups: entry 1 has a pattern of more than 256 bytes; write the beginning and *"},
	{"lock_groups: [" + strings.Repeat("a, ", 33) + "]", "FILE:1: lock_groups: has more than 32 entries; let one pattern match more names"},
	{"lock_groups: '" + strings.Repeat("a,", 33) + "'", "FILE:1: lock_groups: has more than 32 entries; let one pattern match more names"},
	{"scripts: 7", "FILE:1: scripts: script 1 needs its sha1, 40 hex digits"},
	{"upstream: redis://a\nlock_keys: [*a]", "FILE:2: lock_keys: item 1 is more than a plain value; write it out, without anchors, aliases and tags"},
	{"masters: " + strings.Repeat("[", 100_000), "FILE:1: nests lists or mappings more than 32 deep; no setting needs that"},
	{"masters:\n" + strings.Repeat("- ", 100_000), "FILE:2: nests lists or mappings more than 32 deep; no setting needs that"},
	{"masters: " + strings.Repeat("]", 99) + strings.Repeat("{a: ", 33), "FILE:1: nests lists or mappings more than 32 deep; no setting needs that"},
	{"databases: 1\nlisten: " + strings.Repeat("x", 5<<10), "FILE:2: has a value of more than 4kb; no setting needs that"},
	{strings.Repeat("x", 5<<10) + ": 1", "FILE:1: has a value of more than 4kb; no setting needs that"},
	{strings.Repeat("# x\n", 80_000), "--config: cannot read FILE: is larger than 256kb, which no such file needs; name a file such as config.example.yaml"},
	// Unknown keys.
	{"xyzzy: &a 1", "FILE:1: xyzzy: is no setting; config.example.yaml lists them all"},
	{"\nmaster: [a]", "FILE:2: master: is no setting; did you mean masters?"},
	{"xyzzy: 1", "FILE:1: xyzzy: is no setting; config.example.yaml lists them all"},
	// One of each kind of value.
	{"databases: [1]", "FILE:1: databases: is a list; write one value: a whole number from 1 to 1024"},
	{"databases: {a: 1}", "FILE:1: databases: is a mapping; write one value: a whole number from 1 to 1024"},
	{"databases: 1.5", `FILE:1: databases: "1.5" is no whole number; write a whole number from 1 to 1024`},
	{"databases: 1025", "FILE:1: databases: 1025 is out of range; write a whole number from 1 to 1024"},
	{"grace: 10", "FILE:1: grace: 10 has no unit; write 10ms for milliseconds, 10s for seconds"},
	{"grace: soon", `FILE:1: grace: "soon" is no duration; write a duration from 1ms to 1m, such as 50ms, 5s or 1h, or 0 for none`},
	{"grace: 2h", "FILE:1: grace: 2h is out of range; write a duration from 1ms to 1m, such as 50ms, 5s or 1h, or 0 for none"},
	{"ttl_max: -1s", "FILE:1: ttl_max: -1s is out of range; write a duration from 10ms to 720h, such as 50ms, 5s or 1h"},
	{"max_bulk: big", `FILE:1: max_bulk: "big" is no size; write a size from 1kb to 512mb, such as 512kb or 1mb`},
	{"max_bulk: 1gb", "FILE:1: max_bulk: 1gb is out of range; write a size from 1kb to 512mb, such as 512kb or 1mb"},
	{"max_bulk: 9223372036854775807gb", `FILE:1: max_bulk: "9223372036854775807gb" is no size; write a size from 1kb to 512mb, such as 512kb or 1mb`},
	{"drift_factor: much", `FILE:1: drift_factor: "much" is no number; write a number from 0.0001 to 0.5`},
	{"drift_factor: NaN", "FILE:1: drift_factor: NaN is out of range; write a number from 0.0001 to 0.5"},
	{"pprof: perhaps", `FILE:1: pprof: "perhaps" is neither true nor false; write one of them`},
	{"log_level: inf", `FILE:1: log_level: "inf" is not known; did you mean info?`},
	{"log_format: logfmt", `FILE:1: log_format: "logfmt" is not known; write text or json`},
	{"listen: localhost", `FILE:1: listen: "localhost" is no address; write host:port, or :port for all interfaces`},
	{"listen: off", `FILE:1: listen: "off" is no address; write host:port, or :port for all interfaces`},
	{"proxy_protocol: [10.0.0.0/8, haproxy]", "FILE:1: proxy_protocol: network 2 is no network; write one such as 10.0.0.0/8, or the address of the balancer"},
	{"proxy_protocol: 10.0.0.0/33", "FILE:1: proxy_protocol: network 1 is no network; write one such as 10.0.0.0/8, or the address of the balancer"},
	{"proxy_protocol: {a: b}", "FILE:1: proxy_protocol: is no list; write the networks as [10.0.0.0/8]"},
	{"admin: a:70000", `FILE:1: admin: "a:70000" has no port from 0 to 65535; write host:port, or :port for all interfaces, or off`},
	// Masters.
	{"masters: {a: b}", "FILE:1: masters: is no list; write the masters as [10.0.0.1:6379, 10.0.0.2:6379, 10.0.0.3:6379]"},
	{"masters:\n  - a\n  - [b]", "FILE:3: masters: master 2 is no address; write host:port or a redis:// URL"},
	{"masters: [http://a]", `FILE:1: masters: master 1 has the scheme "http"; write redis:// or, for TLS, rediss://`},
	{"masters: ['redis://:6379']", "FILE:1: masters: master 1 names no host; write host:port or redis://user:password@host:port"},
	{"masters: ['redis://u:s3cr%t@a']", "FILE:1: masters: master 1 is no URL; write redis://user:password@host:port, with %-escapes for what is special in a password"},
	{"masters: ['redis://u:s3cr3t@a:1:2']", "FILE:1: masters: master 1 is no URL; write redis://user:password@host:port, with %-escapes for what is special in a password"},
	{"masters: ['redis://:s3@cr3t/x@a']", "FILE:1: masters: master 1 is no URL; write redis://user:password@host:port, with %-escapes for what is special in a password"},
	{"masters: ['redis://u:12/s3cr3t@a']", "FILE:1: masters: master 1 is no URL; write redis://user:password@host:port, with %-escapes for what is special in a password"},
	{"masters: ['redis://u:12?s3cr3t@a']", "FILE:1: masters: master 1 is no URL; write redis://user:password@host:port, with %-escapes for what is special in a password"},
	{"masters: ['redis://u:12#s3cr3t@a']", "FILE:1: masters: master 1 is no URL; write redis://user:password@host:port, with %-escapes for what is special in a password"},
	{"masters: ['redis://:s3cr3t:6379']", "FILE:1: masters: master 1 is no URL; write redis://user:password@host:port, with %-escapes for what is special in a password"},
	{"masters: ['redis://u:s3cr3t@a:1/x']", `FILE:1: masters: master 1 a:1 names the database "x"; write a number, such as redis://a:1/1`},
	{"masters: ['redis://a/1', 'b', 'redis://c/1']", `masters: a:6379 names database 1, b:6379 database 0; clients begin in one: name the same for all, or none`},
	{"masters: ['redis://a/16', 'redis://b/16', 'redis://c/16']", `masters: names database 16, of databases 0 to 15; clients begin there: raise databases`},
	{"masters: ['redis://a/1', 'redis://b/1', 'redis://c/1']\nupstream: redis://d/2\nlock_keys: ['*']", `masters: names database 1, and upstream 2; clients begin in one, for their locks too: leave it to upstream`},
	{"masters: ['redis://a:1?db=3']", "FILE:1: masters: master 1 a:1 has parameters after the address; leave them out, the settings of lockproxy stand for them"},
	{"masters: ['a:0']", `FILE:1: masters: master 1 a:0 has the port "0"; ports go from 1 to 65535`},
	{"masters: ['a:1', b, 'redis://u:p@a:1']", "masters: a:1 is there twice, and one server must not vote twice; remove one"},
	{"masters: [a, a:6379]", "masters: a:6379 is there twice, and one server must not vote twice; remove one"},
	{"masters: 'a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p'", "masters: 16 are too many; name at most 15"},
	// Users.
	{"users: {name: a}", "FILE:1: users: is no list; write - name: … and password: … for each user"},
	{"users: [a]", "FILE:1: users: user 1 is no mapping; write name: … and password: …"},
	{"users: [{password: s3cr3t}]", `FILE:1: users: user 1 has no name; give one, or "default" for clients that AUTH with a password alone`},
	{"users: [{name: bob}]", "FILE:1: users: user 1 (bob) has no password; give password or password_file"},
	{"users:\n  - {name: bob, password: s3cr3t}\n  - {name: bob, password: s3cr3t}", "FILE:3: users: user 2 (bob) is there twice; remove one"},
	{"users: [{name: bob, pass: s3cr3t}]", `FILE:1: users: user 1 has the unknown key "pass"; there are name, password, password_file and force_unlock`},
	{"users: [{name: bob, password: s3cr3t, force_unlock: maybe}]", `FILE:1: users: user 1 force_unlock "maybe" is neither true nor false; write one of them`},
	{"users: [{name: [bob]}]", "FILE:1: users: user 1 name is no text"},
	{"users: [{name: bob, password: s3cr3t, password_file: /x}]", "FILE:1: users: user 1 has both password and password_file; remove one"},
	{"users: [{name: bob, password_file: /nowhere}]", "FILE:1: users: user 1 password_file cannot be read: /nowhere: no such file or directory; name a file that holds the password and nothing else"},
	// Scripts.
	{"scripts: {sha1: x}", "FILE:1: scripts: is no list; write - sha1: …, kind: … and granted: … for each script"},
	{"scripts: [a b]", "FILE:1: scripts: script 1 is no mapping; write sha1: …, kind: … and granted: …"},
	{"scripts: [{sha1: abc, kind: take, granted: nil}]", "FILE:1: scripts: script 1 needs its sha1, 40 hex digits"},
	{"scripts: [{sha1: SHA1, kind: grab, granted: nil}]", `FILE:1: scripts: script 1 has kind "grab"; write agree, take, extend, release, tell, ask, refuse`},
	{"scripts: [{sha1: SHA1, kind: take, granted: yes}]", `FILE:1: scripts: script 1 has granted "yes"; write positive, nil, not nil, OK, keys, first`},
	{"scripts: [{sha1: SHA1, kind: take}]", "FILE:1: scripts: script 1 needs granted, which reply says yes; write positive, nil, not nil, OK, keys, first"},
	{"scripts: [{sha1: SHA1, kind: take, granted: nil, holder: 0}]", `FILE:1: scripts: script 1 has holder "0"; write which of ARGV, from 1, is the holder's field of the hash`},
	{"scripts: [{sha1: SHA1, kind: ask, granted: positive}]", `FILE:1: scripts: script 1 has granted, which kind "ask" does not look at; remove it, or write take, extend, release`},
	{"scripts: [{sha1: SHA1, kind: release, granted: nil, holder: 2}]", `FILE:1: scripts: script 1 has holder, which kind "release" does not look at; remove it, or write take`},
	{"scripts: [{sha1: SHA1, kind: take, granted: nil, keys: 1}]", `FILE:1: scripts: script 1 has the unknown key "keys"; there are sha1, kind, granted, holder and name`},
	{"scripts: [{sha1: SHA1, kind: tell}, {sha1: SHA1, kind: tell}]", "FILE:1: scripts: script 2 is there twice; remove one"},
	// Upstream.
	{"upstream: http://a\nlock_keys: ['*']", `FILE:1: upstream: has the scheme "http"; write redis:// or, for TLS, rediss://`},
	{"upstream: 'redis://:s3cr%t@a'\nlock_keys: ['*']", "FILE:1: upstream: is no URL; write redis://user:password@host:port, with %-escapes for what is special in a password"},
	{"upstream: 'redis://u:12/s3cr3t@a'\nlock_keys: ['*']", "FILE:1: upstream: is no URL; write redis://user:password@host:port, with %-escapes for what is special in a password"},
	{"upstream: redis://a/x\nlock_keys: ['*']", `FILE:1: upstream: a:6379 names the database "x"; write a number, such as redis://a:6379/1`},
	{"upstream: redis://a\nlock_keys: {a: b}", `FILE:2: lock_keys: is no list; write the patterns as ["lock:*", "*:lock"]`},
	{"upstream: redis://a\nlock_keys: [a, [b]]", `FILE:2: lock_keys: pattern 2 is no text; write one such as "lock:*"`},
	// How settings go together.
	{"upstream: 'redis://u:s3cr3t@a/2'", `lock_keys: is empty, so that no key would be a lock, and upstream would get all; name the locks, such as ["lock:*"], or ["*"] for every key`},
	{"upstream: redis://a/3\nlock_keys: ['*']\ndatabases: 3", "upstream: names database 3, of databases 0 to 2; clients begin there, with their locks, too: raise databases"},
	{"upstream_password_file: SECRET", "upstream_password_file: is set, but no upstream; set upstream, or remove it"},
	{"upstream: 'redis://:s3cr3t@a'\nlock_keys: ['*']\nupstream_password_file: SECRET", "upstream_password_file: and the URL of upstream both have a password; remove one"},
	{"upstream: redis://a\nlock_keys: ['*']\nupstream_password_file: /nowhere", "upstream_password_file: cannot be read: /nowhere: no such file or directory; name a file that holds the password and nothing else"},
	{"lock_keys: ['lock:*']", "lock_keys: is set, but no upstream, so that every key is a lock's; set upstream, or remove lock_keys"},
	{"masters: [a, b]\nupstream: redis://b/3\nlock_keys: ['*']", "upstream: b:6379 is also a master, and what clients do to their data (FLUSHALL, eviction) must not reach locks; give the masters servers of their own"},
	{"masters: [a]\nmaster_password: s3cr3t\nmaster_password_file: SECRET", "master_password: and master_password_file are both set; remove one"},
	{"masters: [a]\nmaster_user: u", "master_user: has no password; set master_password or master_password_file"},
	{"master_user: u\nmaster_password: s3cr3t", "master_user: or a password of the masters is set, but no masters; name them in masters"},
	{"masters: [a]\nmaster_password_file: /nowhere", "master_password_file: cannot be read: /nowhere: no such file or directory; name a file that holds the password and nothing else"},
	{"masters: [a]\nmaster_password_file: EMPTY", "master_password_file: EMPTY is empty; it must hold the password"},
	{"masters: [a]\nmaster_password_file: /dev/zero", "master_password_file: cannot be read: /dev/zero: is larger than 64kb, which no such file needs; name a file that holds the password and nothing else"},
	{"users: [{name: bob, password_file: /dev/zero}]", "FILE:1: users: user 1 password_file cannot be read: /dev/zero: is larger than 64kb, which no such file needs; name a file that holds the password and nothing else"},
	{"masters: ['rediss://a']\nmaster_tls_ca: /dev/zero", "master_tls_ca: cannot be read: /dev/zero: is larger than 4mb, which no such file needs; name a PEM file with certificates"},
	{"tls_cert: CERT\ntls_key: /dev/zero", "tls_cert: cannot be used: /dev/zero: is larger than 4mb, which no such file needs; name a PEM certificate and the key that belongs to it"},
	{"masters: ['rediss://a']\nmaster_tls_key: KEY", "master_tls_cert: and master_tls_key belong together; set both or none"},
	{"masters: [a]\nmaster_tls_ca: CERT", "master_tls_ca: or master_tls_cert is set, but no master is reached by TLS; write its address as rediss://host:port"},
	{"masters: ['rediss://a']\nmaster_tls_ca: EMPTY", "master_tls_ca: EMPTY holds no PEM certificate; name a PEM file with certificates"},
	{"masters: ['rediss://a']\nmaster_tls_cert: CERT\nmaster_tls_key: /nowhere", "master_tls_cert: cannot be used: /nowhere: no such file or directory; name a PEM certificate and the key that belongs to it"},
	{"tls_cert: CERT", "tls_cert: and tls_key belong together; set both or none"},
	{"tls_client_ca: CERT", "tls_client_ca: needs TLS; set tls_cert and tls_key too"},
	{"tls_cert: CERT\ntls_key: /nowhere", "tls_cert: cannot be used: /nowhere: no such file or directory; name a PEM certificate and the key that belongs to it"},
	{"tls_cert: CERT\ntls_key: KEY\ntls_client_ca: /nowhere", "tls_client_ca: cannot be read: /nowhere: no such file or directory; name a PEM file with certificates"},
	{"admin: 127.0.0.1:6380", "admin: is the same address as listen; give it another port, or off"},
	{"admin: off\npprof: true", "pprof: is on, but admin is off; give admin an address or set pprof: false"},
	{"instance_timeout: 5s", "master_dead_after: 5s is not longer than instance_timeout (5s), so that every slow vote would end a connection; raise it or lower instance_timeout"},
	{"ttl_max: 100ms", "ttl_max: 100ms leaves no validity: a round may take instance_timeout (250ms), and drift = ttl_max × drift_factor + 2ms is 3ms; raise it"},
	{"shutdown_timeout: 50ms", "shutdown_timeout: 50ms is shorter than instance_timeout (250ms), so that running commands could not end; raise it"},
	{"max_command: 512kb", "max_command: 512kb is less than max_bulk (1mb); raise it to that at least"},
	{"max_input: 1mb", "max_input: 1mb is less than max_command (4mb); raise it to that at least"},
	{"max_output: 512kb", "max_output: 512kb is less than max_bulk (1mb); raise it to that at least"},
	{"max_memory: 8mb", "max_memory: 8mb is less than max_input (16mb); raise it to that at least"},
	// A bad value is reported once, not again by what it goes together with.
	{"ttl_max: soon\ninstance_timeout: 1h", "FILE:1: ttl_max: \"soon\" is no duration; write a duration from 10ms to 720h, such as 50ms, 5s or 1h\n" +
		"FILE:2: instance_timeout: 1h is out of range; write a duration from 1ms to 1m, such as 50ms, 5s or 1h"},
}

func TestEveryProblemOfTheFileHasItsLine(t *testing.T) {
	cert, key := certificate(t, time.Now().Add(time.Minute))
	names := strings.NewReplacer("SHA1", strings.Repeat("0", 40), "CERT", cert, "KEY", key, "SECRET", write(t, "secret", "s3cr3t"), "EMPTY", write(t, "empty", ""))
	for _, c := range fileProblems {
		file := write(t, "lockproxy.yaml", names.Replace(c.file))
		_, err := Load([]string{"--config", file}, nil)
		want := strings.ReplaceAll(names.Replace(c.want), "FILE", file)
		switch {
		case err == nil:
			t.Errorf("%q: no problem, want %s", c.file, want)
		case err.Error() != want:
			t.Errorf("%q:\n got %s\nwant %s", c.file, err, want)
		case strings.Contains(err.Error(), "s3cr"):
			t.Errorf("%q: a password shows: %s", c.file, err)
		}
	}
}

// Every relation must have a line in fileProblems.
func TestEveryRelationIsTested(t *testing.T) {
	for _, r := range slices.Concat(relations, files) {
		tested := slices.ContainsFunc(fileProblems, func(c struct{ file, want string }) bool {
			return strings.HasPrefix(c.want, r.keys[0]+": ")
		})
		if !tested {
			t.Errorf("no problem of %v is tested", r.keys)
		}
	}
}

func TestEveryProblemOfFlagsAndVariables(t *testing.T) {
	for _, c := range []struct {
		args, env []string
		want      string
	}{
		{args: []string{"--databases", "x"}, want: `--databases: "x" is no whole number; write a whole number from 1 to 1024`},
		{args: []string{"--databases"}, want: "--databases: has no value; write --databases value"},
		{args: []string{"--database", "7"}, want: "--database: is no flag; did you mean --databases?"},
		{args: []string{"--xyzzy"}, want: "--xyzzy: is no flag; lockproxy help lists them all"},
		{args: []string{"10.0.0.1:6379"}, want: "10.0.0.1:6379: is no flag; write --name value, see lockproxy help"},
		{args: []string{"redis://u:s3cr3t@a:1"}, want: "redis://[redacted]@a:1: is no flag; write --name value, see lockproxy help"},
		{args: []string{"u:s3cr3t@a"}, want: "[redacted]@a: is no flag; write --name value, see lockproxy help"},
		{args: []string{"--users", "bob:s3cr3t"}, want: "--users: would show the password to everybody on this machine; set LOCKPROXY_USERS, or users in the file"},
		{args: []string{"--master-password=s3cr3t"}, want: "--master-password: would show the password to everybody on this machine; set LOCKPROXY_MASTER_PASSWORD, or master_password in the file"},
		{args: []string{"--config", "/nowhere"}, want: "--config: cannot read /nowhere: no such file or directory; name a file such as config.example.yaml"},
		{env: []string{"LOCKPROXY_CONFIG=/nowhere"}, want: "LOCKPROXY_CONFIG: cannot read /nowhere: no such file or directory; name a file such as config.example.yaml"},
		{args: []string{"--config", "/dev/zero"}, want: "--config: cannot read /dev/zero: is larger than 256kb, which no such file needs; name a file such as config.example.yaml"},
		{args: []string{"--listen", strings.Repeat("x", 5<<10)}, want: "--listen: is longer than 4kb; write host:port, or :port for all interfaces"},
		{args: []string{"--config", ""}, want: "--config: is empty; name a file, or leave it out"},
		{env: []string{"LOCKPROXY_CONFIG="}, want: "LOCKPROXY_CONFIG: is empty; name a file, or leave it out"},
		{args: []string{"--masters", " "}, want: "--masters: is empty; give it a value, or leave it out so that three embedded masters serve, for trying out only"},
		{env: []string{"LOCKPROXY_MASTERS="}, want: "LOCKPROXY_MASTERS: is empty; give it a value, or leave it out so that three embedded masters serve, for trying out only"},
		{env: []string{"LOCKPROXY_MASTERS=a,,b"}, want: "LOCKPROXY_MASTERS: master 2 is empty; write host:port, or remove the comma"},
		{args: []string{"--masters", ","}, want: "--masters: master 1 is empty; write host:port, or remove the comma\n--masters: master 2 is empty; write host:port, or remove the comma"},
		{env: []string{"LOCKPROXY_USERS="}, want: "LOCKPROXY_USERS: is empty; give it a value, or leave it out so that nobody needs to log in"},
		{args: []string{"--tls-cert="}, want: "--tls-cert: is empty; give it a value, or leave it out so that clients come without TLS"},
		{env: []string{"LOCKPROXY_TLS_CLIENT_CA= "}, want: "LOCKPROXY_TLS_CLIENT_CA: is empty; give it a value, or leave it out so that clients need no certificate"},
		{env: []string{"LOCKPROXY_TTL_MAX="}, want: "LOCKPROXY_TTL_MAX: is empty; give it a value, or leave it out for 1h"},
		{env: []string{"LOCKPROXY_USERS=bob"}, want: "LOCKPROXY_USERS: user 1 is not name:password; write it so, with commas between users, and put a password that has a comma into the file"},
		{env: []string{"LOCKPROXY_USERS=,"}, want: "LOCKPROXY_USERS: user 1 is empty; write name:password, or remove the comma\n" +
			"LOCKPROXY_USERS: user 2 is empty; write name:password, or remove the comma"},
		{env: []string{"LOCKPROXY_USERS=bob:s3,cr3t"}, want: "LOCKPROXY_USERS: user 2 is not name:password; write it so, with commas between users, and put a password that has a comma into the file"},
		{env: []string{"LOCKPROXY_USERS=bob:"}, want: "LOCKPROXY_USERS: user 1 is not name:password; write it so, with commas between users, and put a password that has a comma into the file"},
		{env: []string{"LOCKPROXY_MASTERS=redis://:s3cr%t@a"}, want: "LOCKPROXY_MASTERS: master 1 is no URL; write redis://user:password@host:port, with %-escapes for what is special in a password"},
	} {
		_, err := Load(c.args, c.env)
		if err == nil || err.Error() != c.want {
			t.Errorf("%q %q:\n got %v\nwant %s", c.args, c.env, err, c.want)
		}
	}
}

// What is no file of settings at all is not told line by line.
func TestManyProblemsAreCutShort(t *testing.T) {
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "x%d: 1\n", i)
	}
	file := write(t, "many.yaml", text.String())
	_, err := Load([]string{"--config", file}, nil)
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 51 || lines[50] != "and 9950 more like these" {
		t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
	}
}

func TestTLSIsLoaded(t *testing.T) {
	cert, key := certificate(t, time.Now().Add(time.Minute))
	l, err := Load([]string{
		"--tls-cert", cert, "--tls-key", key, "--tls-client-ca", cert,
		"--masters", "rediss://a", "--master-tls-ca", cert, "--master-tls-cert", cert, "--master-tls-key", key,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	in, err := l.Config.ListenTLS()
	if err != nil || len(in.Certificates) != 1 || in.ClientCAs == nil {
		t.Errorf("%+v, %v", in, err)
	}
	out, err := l.Config.MasterTLS()
	if err != nil || len(out.Certificates) != 1 || out.RootCAs == nil {
		t.Errorf("%+v, %v", out, err)
	}
}

// certificate writes a self-signed certificate, which is valid for an hour, and its key.
func certificate(t *testing.T, until time.Time) (certPath, keyPath string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: until.Add(-time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certPath, keyPath = filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	for path, block := range map[string]*pem.Block{
		certPath: {Type: "CERTIFICATE", Bytes: der}, keyPath: {Type: "PRIVATE KEY", Bytes: pkcs8},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certPath, keyPath
}
