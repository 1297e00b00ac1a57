package masters

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// A secured connection is one over TLS.
type secured struct {
	*tls.Conn
	doubt error // why, if the master ends the connection now; nil if it asked for no certificate. Only the handshake writes it
}

// What it means if a master that asked for a certificate ends the connection before it has said anything.
var (
	errUnshown = errors.New("asks for a certificate, and ends the connection without one: set master_tls_cert and master_tls_key")
	errUntaken = errors.New("asks for a certificate, and ends the connection when it is shown master_tls_cert: it has expired, or is not trusted there")
)

// secure makes the handshake of TLS, and keeps config. If it fails, conn is closed.
func secure(ctx context.Context, conn net.Conn, config *tls.Config) (net.Conn, error) {
	s, ours := &secured{}, config.Certificates
	config.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if s.doubt = errUnshown; len(ours) > 0 {
			s.doubt = errUntaken
			if asked.SupportsCertificate(&ours[0]) == nil {
				return &ours[0], nil
			}
		}
		return &tls.Certificate{}, nil // there are masters that ask, and do not insist
	}
	s.Conn = tls.Client(conn, config)
	if err := s.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, whyEnded(ctx, s, steady(err))
	}
	return s, nil
}

// whyEnded returns why conn ended before the master had said anything: err, or that it asks for a certificate, and was shown
// none that it takes. What a master says of that is often lost, because it closes the connection at once.
func whyEnded(ctx context.Context, conn net.Conn, err error) error {
	if s, ok := conn.(*secured); ok && s.doubt != nil && !isReply(err) && ctx.Err() == nil {
		return s.doubt
	}
	return err
}
