package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// write puts text into a file of its own and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheLaterSourceWins(t *testing.T) {
	file := write(t, "lockproxy.yaml", "instance_timeout: 20ms\ndatabases: 2\ngrace: 3ms\ndeployment: d\n")
	env := []string{"LOCKPROXY_DATABASES=3", "LOCKPROXY_GRACE=4ms", "LOCKPROXY_MASTER_USER=", "LOCKPROXY_DEPLOYMENT=", "HOME=/"}
	l, err := Load([]string{"--config=" + file, "--grace", "5ms"}, env)
	if err != nil {
		t.Fatal(err)
	}
	c := l.Config
	if c.InstanceTimeout != 20*time.Millisecond { // file over default
		t.Errorf("instance_timeout %v", c.InstanceTimeout)
	}
	if c.Databases != 3 { // environment over file
		t.Errorf("databases %d", c.Databases)
	}
	if c.Grace != 5*time.Millisecond { // flag over environment
		t.Errorf("grace %v", c.Grace)
	}
	if c.Deployment != "d" { // an empty variable is none
		t.Errorf("deployment %q", c.Deployment)
	}
}

// As editors on Windows write it: with a byte order mark, and with line ends of two characters.
func TestTheFileOfAnyEditor(t *testing.T) {
	const text = "ttl_max: 30m\nmasters:\n  - a:1\nusers:\n  - name: me\n    password: \"secret\"\nlisten: 127.0.0.1:1 # here\n"
	for _, text := range []string{text, "\ufeff" + text, "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n"), "\ufeff# nothing\nttl_max: 30m\n" + text[13:],
		"# " + strings.Repeat("x", valueMax+1) + "\n" + text} {
		l, err := Load([]string{"--config", write(t, "lockproxy.yaml", text)}, nil)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		c := l.Config
		if c.TTLMax != 30*time.Minute || len(c.Masters) != 1 || len(c.Users) != 1 || c.Users[0].Password.Reveal() != "secret" || c.Listen != "127.0.0.1:1" {
			t.Errorf("%q: %+v", text, c)
		}
	}
	if _, err := Load([]string{"--config", write(t, "empty.yaml", "\ufeff")}, nil); err == nil || !strings.Contains(err.Error(), "sets nothing") {
		t.Errorf("a mark alone: %v", err)
	}
}

func TestASwitchMayHaveAValue(t *testing.T) {
	for args, want := range map[string]bool{
		"": false, "--pprof": true, "--pprof true": true, "--pprof false": false, "--pprof=false": false, "--pprof --databases 2": true,
	} {
		l, err := Load(strings.Fields("--admin 127.0.0.1:1 "+args), nil)
		if err != nil || l.Config.Pprof != want {
			t.Errorf("%s: %+v, %v", args, l, err)
		}
	}
}

func TestTheEnvironmentCanNameTheFile(t *testing.T) {
	file := write(t, "a.yaml", "databases: 2\n")
	other := write(t, "b.yaml", "databases: 5\n")
	l, err := Load(nil, []string{"LOCKPROXY_CONFIG=" + file})
	if err != nil || l.Config.Databases != 2 {
		t.Errorf("databases %v, %v", l, err)
	}
	l, err = Load([]string{"--config", other}, []string{"LOCKPROXY_CONFIG=" + file})
	if err != nil || l.Config.Databases != 5 {
		t.Errorf("databases %v, %v", l, err)
	}
}

func TestFlagsAsPeopleWriteThem(t *testing.T) {
	l, err := Load([]string{
		"-listen", ":7000", "--log_level=WARN", "--pprof", "--admin", "off", "--masters", "a, b:7001 ,rediss://c",
	}, nil)
	if err == nil || !strings.Contains(err.Error(), "pprof: is on, but admin is off") || l != nil {
		t.Fatalf("%v, %v", l, err)
	}
	l, err = Load([]string{
		"-listen", ":7000", "--log_level=WARN", "--pprof", "--masters", "a, b:7001 ,rediss://c",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := l.Config
	if got := fmt.Sprintln(c.Listen, c.LogLevel, c.Pprof, c.Masters); got !=
		":7000 warn true [redis://a:6379 redis://b:7001 rediss://c:6379]\n" {
		t.Error(got)
	}
	if l, err := Load([]string{"--admin", ""}, nil); err != nil || l.Config.Admin != "" {
		t.Errorf("--admin \"\" must turn it off: %v, %v", l, err)
	}
}

func TestAllSourcesReportAllProblems(t *testing.T) {
	file := write(t, "lockproxy.yaml", "instance_timout: 20ms\ndatabases: none\n")
	_, err := Load([]string{"--config", file, "--grce", "1ms", "--ttl-max", "1"}, []string{"LOCKPROXY_DATABASES=0"})
	want := strings.Join([]string{
		"--grce: is no flag; did you mean --grace?",
		file + ":1: instance_timout: is no setting; did you mean instance_timeout?",
		file + `:2: databases: "none" is no whole number; write a whole number from 1 to 1024`,
		"LOCKPROXY_DATABASES: 0 is out of range; write a whole number from 1 to 1024",
		"--ttl-max: 1 has no unit; write 1ms for milliseconds, 1s for seconds",
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestAnUnknownVariableIsOnlyWarnedOf(t *testing.T) {
	l, err := Load(nil, []string{
		"LOCKPROXY_DATABASE=3", "LOCKPROXY_XYZZY=1", "LOCKPROXY_SERVICE_HOST=10.0.0.1", "LOCKPROXY_PORT=tcp://10.0.0.1:6380",
		"LOCKPROXY_PORT_6380_TCP=tcp://10.0.0.1:6380", "LOCKPROXY_REQUIRE_REDIS=1",
		"LOCKPROXY_TLS_SERVICE_HOST=10.0.0.1", "LOCKPROXY_TLS_SERVICE_PORT_REDIS=6380", "LOCKPROXY_TLS_PORT=tcp://10.0.0.1:6380",
		"LOCKPROXY_TLS_PORT_6380_TCP_ADDR=10.0.0.1",
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(l.Warnings, "\n"); got != "LOCKPROXY_DATABASE is no setting; did you mean LOCKPROXY_DATABASES?\n"+
		"LOCKPROXY_XYZZY is no setting; lockproxy help lists them all" {
		t.Errorf("warnings: %s", got)
	}
}

// Without it lockproxy would run on embedded masters, or let everybody in.
func TestAMisspelledVariableOfWhatGuardsStopsTheStart(t *testing.T) {
	for variable, meant := range map[string]string{
		"LOCKPROXY_MASTER": "LOCKPROXY_MASTERS", "LOCKPROXY_USER": "LOCKPROXY_USERS", "LOCKPROXY_TLSCERT": "LOCKPROXY_TLS_CERT",
		"LOCKPROXY_TLS_CLIENT_CAS": "LOCKPROXY_TLS_CLIENT_CA",
	} {
		_, err := Load(nil, []string{variable + "=a:1"})
		if want := variable + ": is no setting; did you mean " + meant + "?"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestWhatIsUnwiseIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		args, want string
	}{
		{"--masters a,b,c", ""},
		{"--masters a", "masters: with fewer than 3 (named: 1) no lock survives the loss of one; name three or five independent ones"},
		{"--masters a,b,c,d", "4 masters bear no more failures than 3 do, and a lock needs one vote more; name an odd number"},
		{"--listen :6380", "listen :6380 can be reached from other machines, but protected mode turns their clients away, as nobody needs to log in; set users or tls_client_ca, or protected_mode: no"},
		{"--listen :6380 --protected-mode no", "listen :6380 can be reached from other machines, and nobody needs to log in; set users, or tls_client_ca"},
		{"--listen localhost:6380", ""},
		{"--admin :6381 --pprof", "admin :6381 can be reached from other machines, and profiles show what is in memory; set pprof: false when done"},
	} {
		l, err := Load(strings.Fields(c.args), nil)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		if got := strings.Join(l.Warnings, "\n"); got != c.want {
			t.Errorf("%s: warned %q, want %q", c.args, got, c.want)
		}
	}
}

func TestCertificatesOutOfDateAreWarnedOf(t *testing.T) {
	old, oldKey := certificate(t, time.Date(2020, 2, 29, 12, 0, 0, 0, time.UTC))
	good, goodKey := certificate(t, time.Now().Add(time.Minute))
	l, err := Load([]string{
		"--masters", "rediss://a,b,c", "--master-tls-cert", old, "--master-tls-key", oldKey, "--tls-cert", good, "--tls-key", goodKey,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "master_tls_cert: the certificate is valid only from 2020-02-29 11:00 UTC to 2020-02-29 12:00 UTC, " +
		"and whoever looks ends the connection; renew it"
	if got := strings.Join(l.Warnings, "\n"); got != want {
		t.Errorf("warned %q, want %q", got, want)
	}
	future, futureKey := certificate(t, time.Now().Add(2*time.Hour))
	if l, err = Load([]string{"--tls-cert", future, "--tls-key", futureKey}, nil); err != nil || len(l.Warnings) != 1 {
		t.Errorf("one that is valid only in an hour: %v, warned %q", err, l.Warnings)
	}
}

func TestPasswordsComeFromFiles(t *testing.T) {
	secret := write(t, "secret", "s3cr3t\n")
	file := write(t, "lockproxy.yaml", "masters: [a, b, c]\nmaster_user: u\nmaster_password_file: "+secret+
		"\nusers:\n  - name: default\n    password_file: "+secret+"\n  - {name: billing, password: 12345, force_unlock: yes}\n")
	l, err := Load([]string{"--config", file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := l.Config
	if c.Users[0].ForceUnlock || !c.Users[1].ForceUnlock {
		t.Errorf("force_unlock: %v", c.Users)
	}
	if c.MasterPassword.Reveal() != "s3cr3t" || c.Users[0].Password.Reveal() != "s3cr3t" || c.Users[1].Password.Reveal() != "12345" {
		t.Errorf("%q %q %q", c.MasterPassword.Reveal(), c.Users[0].Password.Reveal(), c.Users[1].Password.Reveal())
	}
}

// However a configuration is printed, no password shows.
func TestSecretsAreRedacted(t *testing.T) {
	l, err := Load([]string{"--masters", "redis://u:s3cr3t@a:1,redis://:s3cr3t@b:1,c:1"},
		[]string{"LOCKPROXY_USERS=bob:s3cr3t", "LOCKPROXY_MASTER_PASSWORD=s3cr3t"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, v := range []any{l.Config, *l.Config, l, l.Config.Masters, l.Config.Users[0], l.Config.MasterPassword,
		struct{ hidden *Config }{l.Config}, struct{ hidden Config }{*l.Config}} {
		fmt.Fprintf(&out, "%v %+v %#v %s\n", v, v, v, v)
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
		for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(h).Info("config", "value", v)
		}
	}
	if before, after, found := strings.Cut(out.String(), "s3cr3t"); found {
		t.Errorf("a password shows: …%sHERE%.50s…", before[max(0, len(before)-100):], after)
	}
	if got := l.Config.Masters[0].String(); got != "redis://u:[redacted]@a:1" {
		t.Error(got)
	}
}

func TestHelpNamesEverySetting(t *testing.T) {
	var out bytes.Buffer
	WriteHelp(&out)
	for _, s := range settings {
		name := flagOf(s.name)
		if s.secret {
			name = variableOf(s.name)
		}
		if !strings.Contains(out.String(), "  "+name+" ") {
			t.Errorf("the help does not name %s", name)
		}
	}
}

func TestNearest(t *testing.T) {
	for _, c := range [][2]string{
		{"instnace_timeout", "instance_timeout"}, {"database", "databases"}, {"password", "master_password"}, {"xyzzy", ""},
		{"mastres", "masters"},
	} {
		want := c[1]
		if c[0] == "password" {
			want = "" // too far away to be a slip
		}
		if got := Nearest(c[0], names()); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", c[0], got, want)
		}
	}
}
