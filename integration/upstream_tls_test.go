package integration

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"lockproxy/integration/harness"
)

// A pair is a certificate and its key.
type pair struct{ cert, key string } // PEM files

func newPair(t *testing.T) pair {
	t.Helper()
	cert, key, err := harness.Certificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return pair{cert, key}
}

// secure returns an address at which the server speaks TLS: a port of its own, or, if it was built without TLS, that of
// a relay in front of it.
func (p pair) secure(t *testing.T, r *harness.Redis) string {
	t.Helper()
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{"tls-cert-file", p.cert}, {"tls-key-file", p.key}, {"tls-ca-cert-file", p.cert}, {"tls-auth-clients", "no"},
		{"tls-port", strconv.Itoa(port)},
	} {
		if reply, err := r.Do(0, "CONFIG", "SET", c[0], c[1]); err != nil || string(reply) != "+OK\r\n" {
			t.Logf("%s has no TLS (CONFIG SET %s: %q, %v); a relay stands in", r.Addr, c[0], reply, err)
			if err := r.Restart(); err != nil { // some die of the question
				t.Fatal(err)
			}
			return p.relay(t, r.Addr)
		}
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// relay takes TLS connections to target.
func (p pair) relay(t *testing.T, target string) string {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	join := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.Close()
		_ = from.Close()
	}
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				_ = near.Close()
				continue
			}
			all.Go(func() { join(far, near) })
			all.Go(func() { join(near, far) })
		}
	})
	return l.Addr().String()
}

// startSecure starts a proxy of which all masters and the upstream speak TLS.
func startSecure(t *testing.T, through func(*testing.T, *harness.Redis) string, ca string) *harness.Proxy {
	t.Helper()
	var addrs []string
	for _, r := range startMasters(t, 4) {
		addrs = append(addrs, "rediss://"+through(t, r))
	}
	return startProxy(t, addrs[:3], "--master-tls-ca", ca, "--upstream", addrs[3]+"/2", "--lock-keys", "lock:*")
}

func TestMastersAndTheUpstreamOverTLS(t *testing.T) {
	requireRedis(t)
	certs := newPair(t)
	for name, through := range map[string]func(*testing.T, *harness.Redis) string{
		"its own":   certs.secure,
		"a relay's": func(t *testing.T, r *harness.Redis) string { return certs.relay(t, r.Addr) },
	} {
		t.Run(name, func(t *testing.T) {
			proxy := startSecure(t, through, certs.cert)
			c := dial(t, proxy.Addr)
			expect(t, c, "+OK\r\n", "SET", "lock:1", "tok", "NX", "PX", "30000")
			expect(t, c, "$-1\r\n", "SET", "lock:1", "you", "NX", "PX", "30000")
			expect(t, c, ":1\r\n", "EVAL", compareAndDelete, "1", "lock:1", "tok")
			large := strings.Repeat("x", 1<<20) // more than a TLS record holds
			expect(t, c, "+OK\r\n", "SET", "data", large)
			expect(t, c, fmt.Sprintf("$%d\r\n%s\r\n", len(large), large), "GET", "data")
			expect(t, c, "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n", "SUBSCRIBE", "news")
			expect(t, dial(t, proxy.Addr), ":1\r\n", "PUBLISH", "news", "x")
			if message, err := c.Reply(); err != nil || string(message) != "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n" {
				t.Errorf("got %q, %v", message, err)
			}
		})
	}
}

func TestAnAuthorityThatIsNotTrustedIsNamed(t *testing.T) {
	certs, others := newPair(t), newPair(t)
	both := startMasters(t, 2)
	master, upstream := both[0].Addr, certs.secure(t, both[1])
	flags := []string{"--upstream", "rediss://" + upstream, "--lock-keys", "lock:*", "--master-tls-ca", others.cert}
	proxy, err := harness.LaunchProxy(proxyBinary, []string{master}, patient(flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Kill)
	c := dial(t, proxy.Addr)
	cause := "tls: failed to verify certificate: x509: certificate signed by unknown authority"
	eventually(t, gone, "the error", func() error {
		reply, err := c.Do("SET", "data", "1")
		if err == nil && !bytes.HasPrefix(reply, []byte("-LOADING upstream "+upstream+": "+cause)) {
			err = fmt.Errorf("%q", reply)
		}
		return err
	})
	eventually(t, gone, "a line in the log", func() error {
		out := proxy.Output()
		if !strings.Contains(out, `msg="the upstream cannot be used: its commands get an error, or wait; locks go on" upstream=`+upstream+` cause="`+cause) {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	code, out, err := harness.RunProxy(proxyBinary, append([]string{"check", "--masters", master}, flags...)...)
	want := "Upstream " + upstream + ", database 0: no: its certificate is from an authority that is not trusted here, name that in master_tls_ca.\n"
	if err != nil || code != 1 || !strings.HasSuffix(out, want) {
		t.Errorf("check: %d, %v\n%s\nwant %s", code, err, out, want)
	}
}
