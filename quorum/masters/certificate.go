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
	unshown bool // the master asked for a certificate, and there is none of ours; written in the handshake alone
}

// secure makes the handshake of TLS. If it fails, conn is closed.
func secure(ctx context.Context, conn net.Conn, config *tls.Config) (net.Conn, error) {
	s := &secured{}
	if len(config.Certificates) == 0 {
		config = config.Clone()
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			s.unshown = true
			return &tls.Certificate{}, nil // there are masters that ask, and do not insist
		}
	}
	s.Conn = tls.Client(conn, config)
	if err := s.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, whyEnded(ctx, s, steady(err))
	}
	return s, nil
}

var errUnshown = errors.New("asks for a certificate, and ends the connection without one: set master_tls_cert and master_tls_key")

// whyEnded returns why conn ended before the master had said anything: err, or that it asks for a certificate and was shown
// none. The master's own words about that are often lost, because it closes the connection at once.
func whyEnded(ctx context.Context, conn net.Conn, err error) error {
	if s, ok := conn.(*secured); ok && s.unshown && !isReply(err) && ctx.Err() == nil {
		return errUnshown
	}
	return err
}
