package integration

import (
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// Behind a balancer, people see the client and not the balancer.
func TestABalancerSaysWhoItsClientsAre(t *testing.T) {
	masters := harness.Addrs(startMasters(t, 3))
	for name, test := range map[string]struct{ networks, want string }{
		"from a network that is named": {"10.0.0.0/8,127.0.0.1", " addr=203.0.113.7:5555 "},
		"from another":                 {"10.0.0.0/8", ""},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := startProxy(t, masters, "--proxy-protocol", test.networks, "--protected-mode", "no")
			c := dial(t, proxy.Addr)
			if err := c.Send([]byte("PROXY TCP4 203.0.113.7 10.0.0.1 5555 6380\r\n")); err != nil {
				t.Fatal(err)
			}
			reply, err := c.Do("CLIENT", "LIST")
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" {
				if !strings.HasPrefix(string(reply), "-ERR unknown command 'PROXY'") {
					t.Errorf("answered with %q", reply)
				}
				return
			}
			if !strings.Contains(string(reply), test.want) {
				t.Errorf("CLIENT LIST says %q", reply)
			}
		})
	}
}
