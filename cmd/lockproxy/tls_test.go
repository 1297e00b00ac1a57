package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// Where there is a certificate, clients speak TLS; where there is an authority for theirs, they must show one.
func TestClientsOverTLS(t *testing.T) {
	cert, key, err := harness.Certificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	known := trusting(t, cert, key)
	stranger := known.Clone()
	stranger.Certificates = nil

	r := launch(t, "--listen", "127.0.0.1:0", "--admin", "off", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", cert)
	r.await("redis-cli -p") // of the banner: it says --tls
	ready := r.await("msg=listening")
	if said := strings.Join(r.past, "\n"); !strings.Contains(said, " --tls SET job:7") {
		t.Errorf("the banner does not say --tls:\n%s", said)
	}
	if probe, err := net.Dial("tcp", field(ready, "listen")); err == nil {
		_ = probe.Close() // a health check, of which the log says nothing
	}
	for name, c := range map[string]struct {
		config *tls.Config
		want   string // empty: the connection ends
	}{
		"a client that is known": {known, "+PONG\r\n"}, "a stranger": {stranger, ""}, "one without TLS": {nil, ""},
	} {
		if got := pingOver(t, field(ready, "listen"), c.config); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	r.signal(syscall.SIGTERM)
	code, out := r.exit()
	if code != exitOK {
		t.Errorf("exit code %d\n%s", code, out)
	}
	// The first of the two that did not succeed is told, and then none for a minute.
	if told := `msg="a client cannot speak TLS with us" client=`; strings.Count(out, told) != 1 || !strings.Contains(out, ` cause="tls: `) {
		t.Errorf("the log does not say once that a client cannot speak TLS:\n%s", out)
	}
}

// Certificates are renewed in place, and nobody restarts a proxy for that.
func TestARenewedCertificateIsShownWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	renew := func() *tls.Config { // returns who trusts, and shows, the new one alone
		t.Helper()
		cert, key, err := harness.Certificate(dir)
		if err != nil {
			t.Fatal(err)
		}
		return trusting(t, cert, key)
	}
	first := renew()
	first.ClientSessionCache = tls.NewLRUClientSessionCache(1) // a session that was begun with what is replaced must not be resumed
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	r := launch(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", cert)
	ready := r.await("msg=listening")
	addr, metrics := field(ready, "listen"), "http://"+field(ready, "admin")+"/metrics"
	if got := pingOver(t, addr, first); got != "+PONG\r\n" {
		t.Fatalf("the first certificate: got %q", got)
	}

	second := renew()
	eventually(t, "the renewed certificate is not shown", func() bool { return pingOver(t, addr, second) == "+PONG\r\n" })
	if line := r.await("files were renewed"); !strings.Contains(line, cert) {
		t.Errorf("the log does not say of which: %s", line)
	}
	if got := pingOver(t, addr, first); got != "" {
		t.Errorf("who trusts, and shows, only the former one got %q", got)
	}

	until := fmt.Sprintf("\nlockproxy_certificate_expiry_timestamp_seconds{setting=\"tls_cert\"} %g\n", float64(second.Certificates[0].Leaf.NotAfter.Unix()))
	if _, page := get(t, metrics); !strings.Contains(page, until) {
		t.Errorf("the metrics do not say%sbut\n%s", until, page)
	}
}

// trusting is a client that trusts a certificate, and shows it.
func trusting(t *testing.T, cert, key string) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	own, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{own}}
}

// pingOver sends PING, without TLS if config is nil, and returns the reply; none if the connection ends instead.
func pingOver(t *testing.T, addr string, config *tls.Config) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(waitMax))
	if config != nil {
		config = config.Clone()
		config.ServerName = "127.0.0.1"
		conn = tls.Client(conn, config)
	}
	_, _ = io.WriteString(conn, "PING\r\n") // if it fails, so does what follows
	reply, err := bufio.NewReader(conn).ReadString('\n')
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Fatalf("no answer, and no end: %v", err)
	}
	if err != nil {
		return ""
	}
	return reply
}
