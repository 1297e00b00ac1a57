package deploy

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"lockproxy/integration/harness"
)

// The tools, by the versions that were tried.
const (
	helm     = "helm.sh/helm/v3/cmd/helm@v3.22.0"
	schemas  = "kubernetes-validate==1.37.0" // from PyPI
	platform = "1.30"                        // the version of Kubernetes whose schemas are taken
	chart    = "../../deploy/helm/lockproxy"
)

// The values with which a chart is tried: masters of one's own, and masters of the chart's.
var (
	external = []string{"--set", "passwords.clients=clients,masterAddresses={10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379}"}
	internal = []string{"--set", "passwords.clients=clients,passwords.operator=operator,passwords.masters=masters,masters.enabled=true"}
)

// required skips the test unless make test-deploy runs it.
func required(t *testing.T) {
	t.Helper()
	if os.Getenv("LOCKPROXY_REQUIRE_DEPLOY") != "1" {
		t.Skip("NOT RUN: make test-deploy runs it")
	}
}

func runHelm(args ...string) (string, error) {
	out, err := exec.Command("go", append([]string{"run", helm}, args...)...).CombinedOutput()
	return string(out), err
}

// render returns what the chart makes of the values.
func render(t *testing.T, values ...string) string {
	t.Helper()
	out, err := runHelm(append([]string{"template", "locks", chart, "--namespace", "here", "--kube-version", platform}, values...)...)
	if err != nil {
		t.Fatalf("helm template %v: %v\n%s", values, err, out)
	}
	return out
}

func TestTheChartIsRight(t *testing.T) {
	required(t)
	venv := filepath.Join(t.TempDir(), "venv")
	for _, args := range [][]string{{"python3", "-m", "venv", venv}, {venv + "/bin/pip", "install", "-q", schemas}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	soft := append([]string{"--set", "spread=soft,masters.storageClassName=fast,priorityClassName=high"}, internal...)
	for _, values := range [][]string{external, internal, soft} {
		if out, err := runHelm(append([]string{"lint", "--strict", chart}, values...)...); err != nil {
			t.Errorf("helm lint %v: %v\n%s", values, err, out)
		}
		file := filepath.Join(t.TempDir(), "rendered.yaml")
		if err := os.WriteFile(file, []byte(render(t, values...)), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(venv+"/bin/kubernetes-validate", "--strict", "-k", platform, file).CombinedOutput()
		if err != nil || strings.Contains(string(out), "WARN") || !strings.Contains(string(out), "deployment/locks") {
			t.Errorf("kubernetes-validate %v: %v\n%s", values, err, out)
		}
	}
	monitored := render(t, append([]string{"--set", "serviceMonitor.enabled=true"}, external...)...)
	if !strings.Contains(monitored, "jobLabel: app.kubernetes.io/name") || !strings.Contains(monitored, "interval: 15s") {
		t.Error("the alerts need a job that is named lockproxy, and samples every 15 s")
	}
}

// A mistake in the values is told before anything is installed.
func TestTheChartRefusesMistakes(t *testing.T) {
	required(t)
	for _, c := range []struct {
		values []string
		want   string
	}{
		{[]string{"--set", "passwords.clients=clients"}, "masterAddresses: name the masters"},
		{external[:0], "passwords.clients: name the Secret"},
		{append([]string{"--set", "masters.enabled=true"}, external...), "set one of the two"},
		{[]string{"--set", "passwords.clients=clients,masters.enabled=true"}, "passwords.masters: name the Secret"},
		{append([]string{"--set", "masters.replicas=4"}, internal...), "/masters/replicas"},
		{append([]string{"--set", "replica=3"}, external...), "additional properties 'replica'"},
		{append([]string{"--set", "service.sessionAffinity=Client"}, external...), "sessionAffinity"},
	} {
		if out, err := runHelm(append([]string{"template", "locks", chart, "--kube-version", platform}, c.values...)...); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("helm template %v: %v, want %q\n%s", c.values, err, c.want, out)
		}
	}
}

// A manifest is what is looked at of the chart's objects.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Template struct {
			Spec struct {
				TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
				Containers                    []struct {
					Args                                        []string
					StartupProbe, ReadinessProbe, LivenessProbe probe
				}
			}
		}
	}
}

type probe struct {
	HTTPGet struct{ Path string } `yaml:"httpGet"`
}

// objects returns the objects of a rendered chart by kind and name.
func objects(t *testing.T, rendered string) map[string]manifest {
	t.Helper()
	all := map[string]manifest{}
	decoder := yaml.NewDecoder(strings.NewReader(strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(rendered,
		"startupProbe:", "startupprobe:"), "readinessProbe:", "readinessprobe:"), "livenessProbe:", "livenessprobe:")))
	for {
		var m manifest
		err := decoder.Decode(&m)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all[m.Kind+"/"+m.Metadata.Name] = m
	}
}

// The masters run the chart's own commands, the proxy the chart's own settings; only addresses and folders are the test's.
func TestWhatTheChartStartsWorks(t *testing.T) {
	required(t)
	dir := t.TempDir()
	for _, name := range []string{"masters", "clients", "operator"} {
		writeFile(t, filepath.Join(dir, "passwords", name, "password"), name+"-secret\n")
	}
	all := objects(t, render(t, internal...))
	settings := all["ConfigMap/locks"].Data["lockproxy.yaml"]
	script := all["StatefulSet/locks-master"].Spec.Template.Spec.Containers[0].Args[0]
	for i := range 3 {
		addr := startMaster(t, script, filepath.Join(dir, "passwords/masters"))
		name := fmt.Sprintf("locks-master-%d.locks-masters.here.svc:6379", i)
		if !strings.Contains(settings, name) {
			t.Fatalf("the settings name no %s\n%s", name, settings)
		}
		settings = strings.Replace(settings, name, addr, 1)
	}
	listen, admin := freeAddr(t), freeAddr(t)
	for from, to := range map[string]string{"/etc/lockproxy/passwords": filepath.Join(dir, "passwords"), `":6380"`: listen, `":6381"`: admin} {
		if !strings.Contains(settings, from) {
			t.Fatalf("the settings have no %s\n%s", from, settings)
		}
		settings = strings.ReplaceAll(settings, from, to)
	}
	file := filepath.Join(dir, "lockproxy.yaml")
	writeFile(t, file, settings)
	bin, err := harness.BuildPlainProxy(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "--yes", "--config", file}, {"check", "--config", file}} {
		if code, out, err := harness.RunProxy(bin, args...); err != nil || code != 0 || strings.Contains(out, "may not run") {
			t.Fatalf("lockproxy %v: %v, exit code %d\n%s", args, err, code, out)
		}
	}
	p, err := harness.StartProgram("lockproxy", bin, "--config", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	pod := all["Deployment/locks"].Spec.Template.Spec
	container := pod.Containers[0]
	for _, path := range []string{container.StartupProbe.HTTPGet.Path, container.ReadinessProbe.HTTPGet.Path, container.LivenessProbe.HTTPGet.Path} {
		if err := p.Ready(func() error { return answers("http://" + admin + path) }); err != nil || len(path) < 2 {
			t.Fatalf("probe %q: %v", path, err)
		}
	}
	c, err := harness.Dial(listen)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, step := range []struct{ want, command string }{
		{"-NOAUTH", "SET job:7 me NX PX 30000"},
		{"+OK", "AUTH clients-secret"},
		{"+OK", "SET job:7 me NX PX 30000"},
		{"+OK", "AUTH operator operator-secret"},
		{":1", "FORCEUNLOCK job:7"},
	} {
		if reply, err := c.Do(strings.Fields(step.command)...); err != nil || !strings.HasPrefix(string(reply), step.want) {
			t.Errorf("%s: %q, %v", step.command, reply, err)
		}
	}
	// drain_delay is the chart's, shutdown_timeout (10 s) and master_dead_after (5 s) are the defaults.
	delay := regexp.MustCompile(`drain_delay: (\S+)`).FindStringSubmatch(settings)
	drain, err := time.ParseDuration(delay[1])
	if err != nil || drain+15*time.Second >= time.Duration(pod.TerminationGracePeriodSeconds)*time.Second {
		t.Errorf("a pod is killed after %d s, which is too soon to drain for %v", pod.TerminationGracePeriodSeconds, drain)
	}
}

// startMaster runs the script of the chart's masters, in folders of the test's, and returns the address.
func startMaster(t *testing.T, script, password string) string {
	t.Helper()
	if err := harness.HaveRedis(); err != nil {
		t.Fatal(err)
	}
	addr, dir := freeAddr(t), t.TempDir()
	_, port, _ := strings.Cut(addr, ":")
	script = strings.NewReplacer("/etc/redis/password", password, "/run/redis", dir, "dir /data", "dir "+dir).Replace(script)
	script = strings.TrimSpace(script) + " --port " + port + " --bind 127.0.0.1" // its last line starts the server
	p, err := harness.StartProgram("redis-server", "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	err = p.Ready(func() error {
		if err := harness.Ping(addr); err != nil && !strings.Contains(err.Error(), "NOAUTH") {
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return addr
}
