package integration

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// An alert is one rule for Prometheus.
type alert struct {
	Alert, Expr, For string
	Labels           struct{ Severity string }
}

// String is the row of the manual's table, without what the alert means.
func (a alert) String() string {
	page := ""
	if a.Labels.Severity == "page" {
		page = "page: "
	}
	return fmt.Sprintf("| %s`%s` | `%s` | %s |", page, a.Alert, a.Expr, a.For)
}

func readAlerts(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, g := range file.Groups {
		for _, a := range g.Rules {
			all = append(all, a.String())
		}
	}
	return all
}

func TestTheManualHasTheAlertsOfTheirFile(t *testing.T) {
	text, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| (page: )?`Lockproxy\\w+` \\| `[^`]+` \\| \\w+ \\|").FindAllString(string(text), -1)
	if alerts := readAlerts(t); !slices.Equal(rows, alerts) {
		t.Errorf("docs/operating.md has\n%s\ndeploy/alerts.yaml\n%s", strings.Join(rows, "\n"), strings.Join(alerts, "\n"))
	}
}

// Prometheus itself says whether it takes the rules, and what fires.
func TestAlertsFireForWhatTheyAreFor(t *testing.T) {
	bin, err := exec.LookPath("promtool")
	if err != nil {
		missing(t, "LOCKPROXY_REQUIRE_REDIS", "promtool is not installed (Debian has it in the package prometheus)")
	}
	for _, args := range [][]string{{"check", "rules", "../deploy/alerts.yaml"}, {"test", "rules", "testdata/alerts.yaml"}} {
		if out, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	fires, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range readAlerts(t) {
		name := strings.Split(row, "`")[1]
		if !strings.Contains(string(fires), `alertname="`+name+`"`) {
			t.Errorf("no test has %s fire", name)
		}
	}
}
