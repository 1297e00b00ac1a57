package masters

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Describe puts an error of a connection into few words without local addresses: why a master has no vote, or is not
// heard.
func Describe(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "is silent"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "connection lost"
	case errors.As(err, &op):
		return op.Op + " failed: " + op.Err.Error()
	}
	text := err.Error()
	if len(text) > describedMax {
		text = text[:describedMax] + "…"
	}
	return text
}

// describedMax is longer than any error of a Redis. A longer error is no Redis's: a lockproxy that is given as its own
// master repeats in its error the words that it heard from itself.
const describedMax = 500

// steady replaces an error with a changing text by an error whose text stays the same while the cause does. A text
// changes if it has the port of a question to the name server, or the time of day.
func steady(err error) error {
	var name *net.DNSError
	var expired x509.CertificateInvalidError
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return errors.New("no such host: no name server knows its name")
	case errors.As(err, &name):
		return errors.New("its name cannot be looked up: the name server does not answer, or fails")
	case errors.As(err, &expired) && expired.Reason == x509.Expired:
		return fmt.Errorf("its certificate is valid only from %s to %s", day(expired.Cert.NotBefore), day(expired.Cert.NotAfter))
	}
	return err
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }
