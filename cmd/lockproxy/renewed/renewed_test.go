package renewed

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/integration/harness"
)

// A renewable is a source whose certificate a test renews. It looks at its files each time.
type renewable struct {
	Certificates
	t         *testing.T
	cert, key string
	log       bytes.Buffer
}

func newRenewable(t *testing.T) *renewable {
	t.Helper()
	dir := t.TempDir()
	r := &renewable{t: t, cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	r.renew()
	load := func() (*tls.Config, error) {
		pair, err := tls.LoadX509KeyPair(r.cert, r.key)
		return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}, err
	}
	var err error
	if r.Certificates, err = NewCertificates(slog.New(slog.NewTextHandler(&r.log, nil)), load, r.cert, r.key, ""); err != nil {
		t.Fatal(err)
	}
	r.every = 0
	return r
}

func (r *renewable) renew() {
	r.t.Helper()
	if _, _, err := harness.Certificate(filepath.Dir(r.cert)); err != nil {
		r.t.Fatal(err)
	}
}

// isShown says whether the certificate in the file is the one in use.
func (r *renewable) isShown() bool {
	r.t.Helper()
	pair, err := tls.LoadX509KeyPair(r.cert, r.key)
	if err != nil {
		r.t.Fatal(err)
	}
	return bytes.Equal(r.Now().Certificates[0].Certificate[0], pair.Certificate[0]) && r.Until().Equal(pair.Leaf.NotAfter)
}

func (r *renewable) write(path string, text []byte) {
	r.t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func TestARenewedCertificateIsTheNextOneShown(t *testing.T) {
	r := newRenewable(t)
	before := r.Now()
	if !r.isShown() || r.Now() != before {
		t.Error("files that nobody touches are another configuration")
	}
	if r.log.Len() > 0 {
		t.Errorf("the log says %s", r.log.String())
	}
	r.renew()
	if !r.isShown() {
		t.Error("the renewed certificate is not shown")
	}
	if told := r.log.String(); strings.Count(told, "files were renewed") != 1 || !strings.Contains(told, r.cert) {
		t.Errorf("the log says %s", told)
	}
}

// A certificate and its key are two files, which are not renewed in one moment.
func TestABrokenFileLeavesTheFormerCertificate(t *testing.T) {
	for name, spoil := range map[string]func(r *renewable){
		"half written":              func(r *renewable) { r.write(r.cert, []byte("-----BEGIN CERT")) },
		"gone":                      func(r *renewable) { _ = os.Remove(r.cert) },
		"a key that is not its own": func(r *renewable) { former, _ := os.ReadFile(r.cert); r.renew(); r.write(r.cert, former) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRenewable(t)
			before := r.Now()
			spoil(r)
			for range 3 {
				if r.Now() != before {
					t.Fatal("the former certificate is not shown")
				}
			}
			if told := r.log.String(); strings.Count(told, "renewed files cannot be used") != 1 || strings.Count(told, "\n") != 1 {
				t.Errorf("the log does not say it once, but\n%s", told)
			}
			r.renew()
			if !r.isShown() {
				t.Error("when it is mended, it is not shown")
			}
		})
	}
}

// What was there before is the zero value where there was nothing to read.
func TestAPasswordIsThatOfItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	s, err := New(slog.New(slog.DiscardHandler), "passwords", func() (config.Secret, error) { return config.ReadSecret(file) }, file)
	if err == nil {
		t.Error("no error though there is no file")
	}
	s.every = 0
	for _, step := range []struct{ write, want string }{{"", ""}, {"first\n", "first"}, {"second", "second"}, {"\n", "second"}, {"third", "third"}} {
		if err := os.WriteFile(file, []byte(step.write), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.Now().Reveal(); got != step.want {
			t.Errorf("with %q in the file it is %q, want %q", step.write, got, step.want)
		}
	}
}

// However many clients come, files are read seldom.
func TestFilesAreLookedAtOnceInAWhile(t *testing.T) {
	r := newRenewable(t)
	r.every = time.Hour
	r.renew()
	if r.isShown() {
		t.Error("they were read before it was time")
	}
	r.looked = r.looked.Add(-time.Hour)
	if !r.isShown() {
		t.Error("they were not read when it was time")
	}
}

// A handshake must not wait for a disk because another one does.
func TestNobodyWaitsForWhoReadsTheFiles(t *testing.T) {
	r := newRenewable(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isShown() {
		t.Error("there is no certificate while the files are read")
	}
}

func TestWithoutACertificateNoneExpires(t *testing.T) {
	s, err := NewCertificates(slog.New(slog.DiscardHandler), func() (*tls.Config, error) { return &tls.Config{MinVersion: tls.VersionTLS12}, nil }, "", "")
	if err != nil || !s.Until().IsZero() {
		t.Errorf("%v, %v", s.Until(), err)
	}
}

func TestWhatCannotBeUsedAtTheStartIsAnError(t *testing.T) {
	broken := errors.New("broken")
	if _, err := NewCertificates(slog.New(slog.DiscardHandler), func() (*tls.Config, error) { return nil, broken }, "nowhere"); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
