package resp

import (
	"regexp"
	"strings"
	"testing"
)

// A call is counted once: by the row of its subcommand, as failed or rejected, and under EXEC what MULTI has queued.
func TestCallsAreCountedByCommand(t *testing.T) {
	c := newRig(t, Config{}).dial()
	for _, line := range []string{"GET", "GET k", "CLIENT ID", "CLIENT HELP", "EVALSHA x 0", "MULTI", "GET k", "GET", "EXEC", "NOSUCH",
		"SUBSCRIBE c", "UNSUBSCRIBE c"} {
		c.ask(strings.Fields(line)...)
	}
	told := c.ask("INFO", "commandstats", "latencystats")
	for name, want := range map[string]string{"get": "1 2 0", "client|id": "1 0 0", "evalsha": "1 0 1", "multi": "1 0 0", "exec": "1 0 1",
		"subscribe": "1 0 0", "unsubscribe": "1 0 0"} {
		calls, others, _ := strings.Cut(want, " ")
		rejected, failed, _ := strings.Cut(others, " ")
		line := "\ncmdstat_" + regexp.QuoteMeta(name) + ":calls=" + calls + `,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=` +
			rejected + ",failed_calls=" + failed + "\r\n"
		if !regexp.MustCompile(line).MatchString(told) {
			t.Errorf("no line %q in %s", line, told)
		}
		ran := regexp.MustCompile("\nlatency_percentiles_usec_" + regexp.QuoteMeta(name) + `:p50=[1-9]\d*\.000,p99=[1-9]\d*\.000,p99\.9=[1-9]\d*\.000`)
		if ran.MatchString(told) != (calls != "0") {
			t.Errorf("%s: %s", name, told)
		}
	}
	for _, section := range []string{"Commandstats", "Latencystats"} {
		if byDefault := c.ask("INFO"); strings.Contains(byDefault, "# "+section) {
			t.Errorf("INFO has %s", section)
		}
		if all := c.ask("INFO", "all"); !strings.Contains(all, "# "+section) {
			t.Errorf("INFO all lacks %s", section)
		}
	}
}
