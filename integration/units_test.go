package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// exposureMax is how exposed a unit may be, in tenths: systemd calls up to 2.0 "OK".
const exposureMax = "15"

// systemd itself says whether it takes the units, and how exposed they leave the machine.
func TestUnitsAreValidAndHardened(t *testing.T) {
	bin, err := exec.LookPath("systemd-analyze")
	if err != nil {
		missing(t, "LOCKPROXY_REQUIRE_REDIS", "systemd-analyze is not installed (Debian has it in the package systemd)")
	}
	requireRedis(t)
	redis, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal(err)
	}
	for unit, programs := range map[string]*strings.Replacer{
		"lockproxy.service":        strings.NewReplacer("ExecStart=/usr/bin/lockproxy ", "ExecStart="+proxyBinary+" "),
		"lockproxy-master.service": strings.NewReplacer("ExecStart=/usr/bin/redis-server ", "ExecStart="+redis+" "),
	} {
		text, err := os.ReadFile("../deploy/" + unit)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), unit) // with programs that are here: systemd looks whether they are
		if err := os.WriteFile(file, []byte(programs.Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(bin, "verify", "--man=no", file).CombinedOutput()
		if err != nil || strings.Contains(string(out), unit) { // unknown settings are only warned of
			t.Errorf("verify: %v\n%s", err, out)
		}
		out, err = exec.Command(bin, "security", "--offline=true", "--no-pager", "--threshold="+exposureMax, file).CombinedOutput()
		if err != nil {
			t.Errorf("security: %v\n%s", err, out)
		}
	}
}
