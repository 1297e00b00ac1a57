package integration

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// How an outage is written down: samples while all is well, and samples after the fault. Prometheus takes one every 15 s, so these
// are 3 and 5 minutes of its time.
const (
	samplesBefore = 12
	samplesAfter  = 20
)

// An observed is a proxy that an outage strikes, and what its /metrics said, as Prometheus would have scraped them.
type observed struct {
	t      *testing.T
	proxy  *harness.Proxy
	admin  string
	load   *harness.Conn // asks for locks before each sample
	asked  int
	count  int                 // samples so far
	series map[string][]string // a value for each sample; "_" where there was none
}

// observe starts a proxy whose metrics are taken down.
func observe(t *testing.T, masters []*harness.Redis, flags ...string) *observed {
	t.Helper()
	o := &observed{t: t, admin: freeAddr(t), series: map[string][]string{}}
	o.proxy = startProxy(t, harness.Addrs(masters), append([]string{"--admin", o.admin, "--dial-timeout", "10s"}, flags...)...)
	o.load = dial(t, o.proxy.Addr)
	o.until("lockproxy_master_clean", float64(len(masters)), float64(len(masters)))
	return o
}

// metrics returns the lines of /metrics that have values, or none if the proxy is gone.
func (o *observed) metrics() []string {
	reply, err := http.Get("http://" + o.admin + "/metrics")
	if err != nil {
		return nil
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(line string) bool { return line[0] == '#' })
}

// sample asks for locks, takes the metrics down, and does so n times.
func (o *observed) sample(n int) {
	for range n {
		for range 5 {
			o.asked++
			_, _ = o.load.Do("SET", fmt.Sprintf("lock:load:%d", o.asked), "x", "NX", "PX", "1000")
		}
		lines := o.metrics()
		o.take("up", map[bool]string{true: "1", false: "0"}[len(lines) > 0])
		for _, line := range lines {
			if i := strings.LastIndexByte(line, ' '); strings.HasPrefix(line, "lockproxy_") {
				o.take(line[:i], line[i+1:])
			}
		}
		o.count++
	}
}

// take appends a value to a series.
func (o *observed) take(series, value string) {
	for len(o.series[series]) < o.count {
		o.series[series] = append(o.series[series], "_")
	}
	o.series[series] = append(o.series[series], value)
}

// value returns the sum of the metric's series as they are now, or -1 if there is none.
func (o *observed) value(metric string) float64 {
	sum, found := 0.0, false
	for _, line := range o.metrics() {
		name, value := line[:strings.LastIndexByte(line, ' ')], line[strings.LastIndexByte(line, ' ')+1:]
		if base, _, _ := strings.Cut(name, "{"); base == metric {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				o.t.Fatal(err)
			}
			sum, found = sum+n, true
		}
	}
	if !found {
		return -1
	}
	return sum
}

// until waits until the metric is at least low and at most high.
func (o *observed) until(metric string, low, high float64) {
	o.t.Helper()
	eventually(o.t, progressMax, metric, func() error {
		if got := o.value(metric); got < low || got > high {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}

// series in promtool's own notation.
var labelled = regexp.MustCompile(`^(\w+)(?:\{(.*)\})?$`)

// file writes the samples as a test for promtool: none of the alerts that call somebody fires before the fault, and afterwards those
// that are named, and no others.
func (o *observed) file(fires []string) string {
	o.t.Helper()
	rules, err := filepath.Abs("../deploy/alerts.yaml")
	if err != nil {
		o.t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "rule_files: [%s]\nevaluation_interval: 15s\ntests:\n  - interval: 15s\n    input_series:\n", rules)
	for series, values := range o.series {
		parts := labelled.FindStringSubmatch(series)
		if parts == nil {
			o.t.Fatalf("%q is no series", series)
		}
		labels := strings.TrimSuffix(`job="lockproxy",instance="p",`+parts[2], ",")
		fmt.Fprintf(&text, "      - {series: '%s{%s}', values: '%s'}\n", parts[1], labels, strings.Join(values, " "))
	}
	const firing = `ALERTS{alertstate="firing",severity="page"}`
	fmt.Fprintf(&text, "    promql_expr_test:\n      - {expr: 'count(%s) or vector(0)', eval_time: %ds, exp_samples: [{labels: '{}', value: 0}]}\n",
		firing, 15*(samplesBefore-1))
	fmt.Fprintf(&text, "      - expr: 'count by (alertname) (%s)'\n        eval_time: %ds\n        exp_samples:\n", firing, 15*(o.count-1))
	for _, name := range fires {
		fmt.Fprintf(&text, "          - {labels: '{alertname=%q}', value: 1}\n", name)
	}
	name := filepath.Join(o.t.TempDir(), "outage.yaml")
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		o.t.Fatal(err)
	}
	return name
}

// Real masters, proxies and upstreams fail, and Prometheus is shown what /metrics said meanwhile.
func TestPagesAreSentForRealOutages(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		missing(t, "LOCKPROXY_REQUIRE_REDIS", "promtool is not installed (Debian has it in the package prometheus)")
	}
	for name, c := range map[string]struct {
		strike func(t *testing.T, o *observed, masters []*harness.Redis, upstream *harness.Redis)
		fires  []string
	}{
		"two of three masters are killed, and a client holds a lock": {func(t *testing.T, o *observed, masters []*harness.Redis, _ *harness.Redis) {
			if reply, err := o.load.Do("LOCK", "lock:held", "1000", "HOLD"); err != nil || reply[0] != '*' {
				t.Fatalf("LOCK: %q, %v", reply, err)
			}
			masters[0].Kill()
			masters[1].Kill()
			o.until("lockproxy_ready", 0, 0)
			o.until("lockproxy_held_lost_total", 1, 1)
		}, []string{"LockproxyHeldLockLost", "LockproxyNoQuorum"}},
		"two of three masters have no memory left": {func(_ *testing.T, _ *observed, masters []*harness.Redis, _ *harness.Redis) {
			direct(t, masters[:2], "CONFIG", "SET", "maxmemory", "1")
		}, []string{"LockproxyNoLockGranted"}},
		"the proxy is killed": {func(_ *testing.T, o *observed, _ []*harness.Redis, _ *harness.Redis) {
			o.proxy.Kill()
		}, []string{"LockproxyGone"}},
		"the upstream is killed": {func(_ *testing.T, o *observed, _ []*harness.Redis, upstream *harness.Redis) {
			upstream.Kill()
			o.until("lockproxy_upstream_down", 1, 1)
		}, []string{"LockproxyUpstreamGone"}},
		"another proxy has other names for locks": {func(t *testing.T, o *observed, masters []*harness.Redis, upstream *harness.Redis) {
			startProxy(t, harness.Addrs(masters), "--upstream", "redis://"+upstream.Addr, "--lock-keys", "lock:*,mutex:*", "--dial-timeout", "10s")
			o.until("lockproxy_other_names_total", 7, 1e9)
		}, []string{"LockproxyNamesDiffer"}},
	} {
		t.Run(name, func(t *testing.T) {
			masters, upstream := startMasters(t, 3), startMasters(t, 1)[0]
			o := observe(t, masters, "--upstream", "redis://"+upstream.Addr, "--lock-keys", "lock:*")
			o.sample(samplesBefore)
			c.strike(t, o, masters, upstream)
			o.sample(samplesAfter)
			out, err := exec.Command(promtool, "test", "rules", o.file(c.fires)).CombinedOutput()
			if err != nil {
				t.Errorf("promtool: %v\n%s", err, out)
			}
			if o.proxy.Ended() {
				if err := o.proxy.Start(); err != nil { // the end of the test stops it
					t.Fatal(err)
				}
			}
		})
	}
}

// Every alert that calls somebody has an outage above.
func TestEveryPageHasARealOutage(t *testing.T) {
	text, err := os.ReadFile("outage_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range readAlerts(t) {
		if name := strings.Split(row, "`")[1]; strings.HasPrefix(row, "| page: ") && !strings.Contains(string(text), `"`+name+`"`) {
			t.Errorf("no real outage has %s fire", name)
		}
	}
}
