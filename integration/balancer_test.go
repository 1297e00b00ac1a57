package integration

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// startBalancer runs HAProxy with the file that operators are given, in front of two proxies.
func startBalancer(t *testing.T, proxies, admins []string) (addr string) {
	t.Helper()
	bin, err := exec.LookPath("haproxy")
	if err != nil {
		missing(t, "LOCKPROXY_REQUIRE_REDIS", "haproxy is not installed")
	}
	text, err := os.ReadFile("../deploy/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	addr = freeAddr(t)
	cfg := strings.Replace(string(text), "bind :6380", "bind "+addr, 1)
	for i := range proxies {
		_, port, _ := net.SplitHostPort(admins[i])
		line := fmt.Sprintf("server proxy%d 10.0.0.1%d:6380", i+1, i+1)
		if !strings.Contains(cfg, line) {
			t.Fatalf("deploy/haproxy.cfg has no %q", line)
		}
		cfg = strings.Replace(cfg, line, fmt.Sprintf("server proxy%d %s port %s", i+1, proxies[i], port), 1)
	}
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(cfg), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(bin, "-c", "-f", file).CombinedOutput(); err != nil || strings.Contains(string(out), "WARNING") {
		t.Fatalf("haproxy -c: %v\n%s", err, out)
	}
	p, err := harness.StartProgram("haproxy", bin, "-db", "-f", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	if err := p.Ready(func() error { return harness.Ping(addr) }); err != nil {
		t.Fatal(err)
	}
	return addr
}

func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

var portField = regexp.MustCompile(`tcp_port:(\d+)\r\n`)

// A newcomer connects, locks, and says to which proxy it came, and what it was told.
func newcomer(addr string, n int) (port, reply string, err error) {
	c, err := harness.Dial(addr)
	if err != nil {
		return "", "", err
	}
	defer c.Close()
	info, err := c.Do("INFO", "server")
	if err != nil {
		return "", "", err
	}
	found := portField.FindSubmatch(info)
	if found == nil {
		return "", "", fmt.Errorf("INFO: %q", info)
	}
	raw, err := c.Do("SET", fmt.Sprintf("newcomer:%d", n), "x", "NX", "PX", "2000")
	return string(found[1]), string(raw), err
}

// Clients that come while one proxy drains, is killed, or has no quorum get a reply each, and none is turned away.
func TestABalancerSendsClientsWhereTheyAreAnswered(t *testing.T) {
	masters := startMasters(t, 3)
	var proxies []*harness.Proxy
	var addrs, admins []string
	for range 2 {
		admin := freeAddr(t)
		p := startProxy(t, harness.Addrs(masters), "--admin", admin, "--drain-delay", "5s")
		proxies, addrs, admins = append(proxies, p), append(addrs, p.Addr), append(admins, admin)
	}
	addr, n := startBalancer(t, addrs, admins), 0
	// come lets clients come until done says that it is enough. Each must get a reply that has this in it.
	come := func(what, want string, done func(port string) bool) {
		t.Helper()
		eventually(t, progressMax, what, func() error {
			n++
			port, reply, err := newcomer(addr, n)
			if err != nil || !strings.Contains(reply, want) {
				t.Fatalf("%s: client %d got %q, %v", what, n, reply, err)
			}
			if !done(port) {
				return errors.New("not yet")
			}
			return nil
		})
	}
	inUse := func() (used, other int) {
		port, _, err := newcomer(addr, 0)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(proxies[0].Addr, ":"+port) {
			return 0, 1
		}
		return 1, 0
	}

	used, other := inUse()
	stays := dial(t, addr)
	if err := proxies[used].Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	come("drained", "+OK", func(port string) bool { return strings.HasSuffix(proxies[other].Addr, ":"+port) })
	expect(t, stays, "+OK\r\n", "SET", "stays", "x", "NX", "PX", "2000") // whoever was there is served until the end
	if err := proxies[used].Wait(harness.DrainMax); err != nil {
		t.Error(err)
	}
	come("stopped", "+OK", func(string) bool { return n%20 == 0 })
	if err := proxies[used].Start(); err != nil {
		t.Fatal(err)
	}
	come("back", "+OK", func(port string) bool { return strings.HasSuffix(proxies[used].Addr, ":"+port) })

	proxies[used].Kill()
	come("killed", "+OK", func(string) bool { return n%50 == 0 })
	if err := proxies[used].Start(); err != nil {
		t.Fatal(err)
	}
	come("back", "+OK", func(port string) bool { return strings.HasSuffix(proxies[used].Addr, ":"+port) })

	for _, m := range masters[:2] {
		m.Kill()
	}
	begun := time.Now()
	come("masters away", "-NOQUORUM ", func(string) bool { return time.Since(begun) > 5*time.Second }) // five checks
	for _, admin := range admins {
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/lockz": 503} {
			if got := status(t, "http://"+admin+path); got != want {
				t.Errorf("masters away: %s says %d", path, got)
			}
		}
	}
	if _, reply, err := newcomer(addr, 0); err != nil || strings.Count(reply, "connection refused") != 2 {
		t.Errorf("the causes are not told: %q, %v", reply, err)
	}
}

func status(t *testing.T, url string) int {
	t.Helper()
	reply, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	return reply.StatusCode
}
