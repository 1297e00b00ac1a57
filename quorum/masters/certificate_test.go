package masters

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// startTLS starts a server that asks for certificates as auth says, of no authority that is known, and answers what a
// connection begins with.
func startTLS(t *testing.T, auth tls.ClientAuthType, version uint16) (addr string, trusts *tls.Config) {
	t.Helper()
	model := httptest.NewTLSServer(nil)
	cert, roots := model.TLS.Certificates[0], x509.NewCertPool()
	roots.AddCert(model.Certificate())
	model.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: version, MaxVersion: version, ClientAuth: auth, ClientCAs: x509.NewCertPool(), Certificates: []tls.Certificate{cert},
	})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = c.Close() }()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					switch strings.ToLower(lines.Text()) {
					case "hello":
						_, _ = c.Write([]byte("-ERR unknown command 'HELLO'\r\n"))
					case "ping":
						_, _ = c.Write([]byte("+PONG\r\n"))
					}
				}
			})
		}
	})
	return l.Addr().String(), &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{cert}}
}

// A master that demands a certificate ends the connection of who has none, or none that it takes, and what it says of that
// may come or not. The cause is the same each time, and says what to do.
func TestAMasterThatDemandsACertificateIsNamedEachTime(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for name, c := range map[string]struct {
			auth  tls.ClientAuthType
			shown int // how many certificates we have
			want  error
		}{
			"none is shown":            {tls.RequireAnyClientCert, 0, errUnshown},
			"a stranger's is shown":    {tls.RequireAndVerifyClientCert, 1, errUntaken},
			"anybody's is good":        {tls.RequireAnyClientCert, 1, nil},
			"it is asked for, no more": {tls.RequestClientCert, 0, nil},
		} {
			t.Run(tls.VersionName(version)+", "+name, func(t *testing.T) {
				addr, ours := startTLS(t, c.auth, version)
				ours.Certificates = ours.Certificates[:c.shown]
				if c.want == nil {
					_ = dial(t, "rediss://"+addr, RedisOptions{TLS: func() *tls.Config { return ours }})
					return
				}
				m, err := NewRedis("rediss://"+addr, RedisOptions{TLS: func() *tls.Config { return ours }})
				if err != nil {
					t.Fatal(err)
				}
				for range 20 {
					_, err := m.Dial(t.Context(), 0)
					if err == nil || Describe(err) != c.want.Error() {
						t.Errorf("a connection: %v", err)
					}
					if _, err = m.Listen(t.Context()); err == nil || Describe(err) != c.want.Error() {
						t.Errorf("a connection for messages: %v", err)
					}
				}
			})
		}
	}
}

// Certificates are renewed while lanes come and go.
func TestEachConnectionToAMasterShowsTheCertificateOfThatTime(t *testing.T) {
	addr, ours := startTLS(t, tls.RequireAnyClientCert, tls.VersionTLS13)
	unknown := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: ours.RootCAs}
	now := unknown
	m, err := NewRedis("rediss://"+addr, RedisOptions{TLS: func() *tls.Config { return now }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Dial(t.Context(), 0); err == nil || Describe(err) != errUnshown.Error() {
		t.Errorf("without a certificate: %v", err)
	}
	now = ours
	conn, err := m.Dial(t.Context(), 0)
	if err != nil {
		t.Fatalf("with the one that there is now: %v", err)
	}
	_ = conn.Close()
	if unknown.ServerName+ours.ServerName != "" || ours.GetClientCertificate != nil {
		t.Error("a configuration that is shared was changed")
	}
}
