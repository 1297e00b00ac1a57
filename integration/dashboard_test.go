package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A dashboard is what Grafana is told, as far as it is looked at here.
type dashboard struct {
	Panels []struct {
		ID          int
		Title, Type string
		Description string
		GridPos     struct{ H, W, X, Y int }
		Targets     []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Query string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("../deploy/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// expressions returns what the panels show, with the variables of the dashboard filled in, by title.
func (d dashboard) expressions() map[string][]string {
	fill := strings.NewReplacer("$instance", ".*", "$db", "0", "$__rate_interval", "1m")
	all := map[string][]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], fill.Replace(target.Expr))
		}
	}
	return all
}

// Prometheus parses what the panels show, and a live proxy has every metric in it.
func TestTheDashboardShowsWhatThereIs(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		missing(t, "LOCKPROXY_REQUIRE_REDIS", "promtool is not installed (Debian has it in the package prometheus)")
	}
	d := readDashboard(t)
	o := observe(t, startMasters(t, 3), "--lock-groups", "lock:*=lock")
	o.sample(1)
	live := strings.Join(o.metrics(), "\n")

	var rules strings.Builder
	rules.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	named := regexp.MustCompile(`\b(?:lockproxy|process|go)_\w+`)
	for title, expressions := range d.expressions() {
		for i, expr := range expressions {
			fmt.Fprintf(&rules, "      - {record: 'panel:%d:%d', expr: '%s'}\n", len(title), i, expr)
			metrics := named.FindAllString(expr, -1)
			if len(metrics) == 0 || strings.Contains(expr, "$") {
				t.Errorf("%s: %s has no metric of ours, or a variable that nobody fills in", title, expr)
			}
			for _, metric := range metrics {
				if !regexp.MustCompile(`(?m)^` + metric + `[{ ]`).MatchString(live) {
					t.Errorf("%s: a proxy has no %s", title, metric)
				}
			}
		}
	}
	for _, v := range d.Templating.List {
		if metric := named.FindString(v.Query); metric != "" && !strings.Contains(live, metric+"{") {
			t.Errorf("variable %s: a proxy has no %s", v.Name, metric)
		}
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "check", "rules", "--lint=none", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// Whoever is called by an alert finds its metric on the dashboard.
func TestTheDashboardShowsWhatAlertsAreAbout(t *testing.T) {
	text, err := os.ReadFile("../deploy/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range readAlerts(t) {
		for _, metric := range regexp.MustCompile(`lockproxy_\w+`).FindAllString(row, -1) {
			switch metric {
			case "lockproxy_other_names_total", "lockproxy_certificate_expiry_timestamp_seconds": // the alert says it all
				continue
			}
			if !strings.Contains(string(text), metric) {
				t.Errorf("no panel shows %s, which %s is about", metric, strings.Split(row, "`")[1])
			}
		}
	}
}

// Panels have titles, say what they mean, and do not lie over one another.
func TestTheDashboardIsLaidOut(t *testing.T) {
	d := readDashboard(t)
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %d, %q: its id is taken, or it lacks a title, a description or an expression", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x > 23 {
					t.Fatalf("%s lies over %s, or outside", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	if len(ids) < 20 {
		t.Errorf("only %d panels were looked at", len(ids))
	}
}
