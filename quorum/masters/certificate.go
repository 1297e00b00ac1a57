package masters

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// A secured connection is a connection over TLS.
type secured struct {
	*tls.Conn
	doubt error // why the master ends the connection, if it ends now; nil if the master asked for no certificate. Only the handshake writes doubt
}

// The causes if a master that asked for a certificate ends the connection before its first word.
var (
	errUnshown = errors.New("asks for a certificate, and ends the connection without one: set master_tls_cert and master_tls_key")
	errUntaken = errors.New("asks for a certificate, and ends the connection when it is shown master_tls_cert: it has expired, or is not trusted there")
)

// secure makes the TLS handshake, and keeps config. After an error, conn is closed.
func secure(ctx context.Context, conn net.Conn, config *tls.Config) (net.Conn, error) {
	s, ours := &secured{}, config.Certificates
	config.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if s.doubt = errUnshown; len(ours) > 0 {
			s.doubt = errUntaken
			if asked.SupportsCertificate(&ours[0]) == nil {
				return &ours[0], nil
			}
		}
		return &tls.Certificate{}, nil // some masters ask for a certificate, and do not insist
	}
	s.Conn = tls.Client(conn, config)
	if err := s.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, whyEnded(ctx, s, steady(err))
	}
	return s, nil
}

// whyEnded returns why conn ended before the master's first word. The cause is err, or a missing or unfit certificate
// if the master asked for one. The master's own words are often lost, because the master closes the connection at once.
func whyEnded(ctx context.Context, conn net.Conn, err error) error {
	if s, ok := conn.(*secured); ok && s.doubt != nil && !isReply(err) && ctx.Err() == nil {
		return s.doubt
	}
	return err
}
