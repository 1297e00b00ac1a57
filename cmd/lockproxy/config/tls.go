package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// files are the settings that name a file. Each file is read once before the start, so that its fault shows beside all
// other problems.
var files = []relation{
	{[]string{"master_password_file", "master_password"}, func(c *Config) string {
		if c.MasterPasswordFile == "" {
			return ""
		}
		var wrong string
		c.MasterPassword, wrong = readSecret(c.MasterPasswordFile)
		return wrong
	}},
	{[]string{"upstream_password_file", "upstream"}, func(c *Config) string {
		if c.UpstreamPasswordFile == "" {
			return ""
		}
		var wrong string
		c.Upstream.Password, wrong = readSecret(c.UpstreamPasswordFile)
		return wrong
	}},
	{[]string{"tls_cert", "tls_key"}, func(c *Config) string { return pairFault(c.TLSCert, c.TLSKey) }},
	{[]string{"tls_client_ca"}, func(c *Config) string { return poolFault(c.TLSClientCA) }},
	{[]string{"master_tls_cert", "master_tls_key"}, func(c *Config) string {
		return pairFault(c.MasterTLSCert, c.MasterTLSKey)
	}},
	{[]string{"master_tls_ca"}, func(c *Config) string { return poolFault(c.MasterTLSCA) }},
}

// ListenTLS returns the TLS configuration for clients, or nil if clients come without TLS.
func (c *Config) ListenTLS() (*tls.Config, error) {
	if c.TLSCert == "" {
		return nil, nil //nolint:nilnil // no TLS is no error
	}
	cert, err := loadPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("tls_cert: %w", err)
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
	if c.TLSClientCA == "" {
		return t, nil
	}
	t.ClientAuth = tls.RequireAndVerifyClientCert
	if t.ClientCAs, err = pool(c.TLSClientCA); err != nil {
		return nil, fmt.Errorf("tls_client_ca: %w", err)
	}
	return t, nil
}

// MasterTLS returns the TLS configuration for rediss:// masters.
func (c *Config) MasterTLS() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if c.MasterTLSCA != "" {
		if t.RootCAs, err = pool(c.MasterTLSCA); err != nil {
			return nil, fmt.Errorf("master_tls_ca: %w", err)
		}
	}
	if c.MasterTLSCert != "" {
		cert, err := loadPair(c.MasterTLSCert, c.MasterTLSKey)
		if err != nil {
			return nil, fmt.Errorf("master_tls_cert: %w", err)
		}
		t.Certificates = []tls.Certificate{cert}
	}
	return t, nil
}

func loadPair(certPath, keyPath string) (tls.Certificate, error) {
	cert, err := ReadFile(certPath)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ReadFile(keyPath)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

func pool(path string) (*x509.CertPool, error) {
	text, err := ReadFile(path)
	if err != nil {
		return nil, errors.New("cannot be read: " + cause(err))
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(text) {
		return nil, errors.New(path + " holds no PEM certificate")
	}
	return p, nil
}

func poolFault(path string) string {
	if path == "" {
		return ""
	}
	if _, err := pool(path); err != nil {
		return err.Error() + "; name a PEM file with certificates"
	}
	return ""
}

// outOfDate says that a certificate that we show is not valid at the time now. An unreadable certificate is a problem,
// and no warning.
func outOfDate(setting, cert, key string, now time.Time) string {
	pair, err := loadPair(cert, key)
	if err != nil || !now.Before(pair.Leaf.NotBefore) && !now.After(pair.Leaf.NotAfter) {
		return ""
	}
	const minute = "2006-01-02 15:04 MST"
	return fmt.Sprintf("%s: the certificate is valid only from %s to %s, and whoever looks ends the connection; renew it",
		setting, pair.Leaf.NotBefore.UTC().Format(minute), pair.Leaf.NotAfter.UTC().Format(minute))
}

func pairFault(cert, key string) string {
	if cert == "" || key == "" {
		return ""
	}
	if _, err := loadPair(cert, key); err != nil {
		return "cannot be used: " + cause(err) + "; name a PEM certificate and the key that belongs to it"
	}
	return ""
}
