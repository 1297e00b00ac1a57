package integration

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// A release has one version, wherever it is written.
func TestTheVersionIsTheSameEverywhere(t *testing.T) {
	text := func(name string) string {
		t.Helper()
		text, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	version := strings.TrimSpace(text("VERSION"))
	if !regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`).MatchString(version) {
		t.Errorf("VERSION holds %q, want one like 0.1.0", version)
	}
	for name, pattern := range map[string]string{
		"CHANGELOG.md":                       `(?m)\A# Changelog\n\n## (\S+)`,
		"deploy/helm/lockproxy/Chart.yaml":   `(?m)^version: (\S+)$`,
		"./deploy/helm/lockproxy/Chart.yaml": `(?m)^appVersion: (\S+)$`,
	} {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(text(name)); found == nil || found[1] != version {
			t.Errorf("%s says %q, VERSION %s", name, found, version)
		}
	}
}
