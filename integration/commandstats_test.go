package integration

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// INFO commandstats and latencystats count as a real Redis does, and look alike.
func TestCallsAreToldAsByRedis(t *testing.T) {
	servers := startMasters(t, 4)
	proxy := startProxy(t, harness.Addrs(servers[:3]))
	usec := regexp.MustCompile(`(usec|usec_per_call|p[0-9.]+)=(\d+)((\.\d+)?)`)
	tell := func(addr string) (told []string) {
		c := dial(t, addr)
		for _, line := range []string{"SET k v NX PX 60000", "SET k v NX PX 60000", "SET k", "EXISTS k", "EXISTS", "MULTI", "EXISTS", "EXEC", "ECHO x",
			"EVALSHA ffff 0", "EVALSHA ffff", "CONFIG GET save", "COMMAND COUNT", "NOSUCH", "CONFIG NOSUCH x"} {
			if _, err := c.Do(strings.Fields(line)...); err != nil {
				t.Fatal(err)
			}
		}
		info, err := c.Do("INFO", "commandstats", "latencystats")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"set", "exists", "multi", "exec", "echo", "evalsha", "config|get", "command|count", "config", "command"} {
			found := append(lines(string(info), "cmdstat_"+name+":"), lines(string(info), "latency_percentiles_usec_"+name+":")...)
			for _, line := range found {
				told = append(told, usec.ReplaceAllStringFunc(line, func(figure string) string {
					name, value, _ := strings.Cut(figure, "=")
					_, fraction, _ := strings.Cut(value, ".")
					return name + "=N" + strings.Repeat("n", len(fraction))
				}))
			}
		}
		return told
	}
	if ours, theirs := tell(proxy.Addr), tell(servers[3].Addr); len(ours) < 16 || !slices.Equal(ours, theirs) {
		t.Errorf("the proxy tells\n%s\nRedis tells\n%s", strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
	}
}
