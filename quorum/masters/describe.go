package masters

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
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

// Told has the causes of a missing connection that the log was told. The log is told each cause once until there is a
// connection again, because a master that is dialled several times a second may refuse in two ways in turn. The log is
// also told each cause once in toldEvery, because a master may take connections and break them every second. A cause
// left out for the latter reason is told when it still holds after toldEvery.
type Told struct {
	causes []cause
	all    uint64 // losses
	lost   bool   // there is no connection
	said   bool   // the log was told so
}

type cause struct {
	text  string
	at    time.Time // when the log was told
	ended bool      // there was a connection since
}

// ToldMax is how many different causes the log is told of.
const ToldMax = 8

const toldEvery = time.Minute

// Lost notes why there is no connection. Lost returns whether to tell the log, and how many connections were lost so
// far.
func (t *Told) Lost(text string, now time.Time) (tell bool, all uint64) {
	if !t.lost {
		t.lost = true
		t.all++
	}
	t.causes = slices.DeleteFunc(t.causes, func(c cause) bool { return c.ended && now.Sub(c.at) >= toldEvery })
	if len(t.causes) == ToldMax || slices.ContainsFunc(t.causes, func(c cause) bool { return c.text == text }) {
		return false, t.all
	}
	t.causes = append(t.causes, cause{text, now, false})
	t.said = true
	return true, t.all
}

// Found notes that there is a connection. Found returns whether to tell the log: only if the log was told of the loss.
func (t *Told) Found() (tell bool) {
	tell = t.said
	t.lost, t.said = false, false
	for i := range t.causes {
		t.causes[i].ended = true
	}
	return tell
}

// A master may turn a connection away, because it has maxclients of them, or is in protected mode. Then the master says
// why and hangs up. Its words are read as the answer to HELLO, which servers may refuse. Or the words are not read at
// all, because the next command cannot be written any more.

// A heard connection keeps the first bytes, and takes no more bytes than a master's greeting has.
type heard struct {
	net.Conn
	first   []byte
	bytes   int
	greeted bool // the first words were said
}

// greetingMost is more than the answers to the first words have. A server that sends more is no Redis, and go-redis
// would keep all of the bytes as one line.
const greetingMost = 64 << 10

// firstMost is how many of the first bytes are kept. The first sentence of a refusal is no longer; protected mode adds
// 1 KB of advice.
const firstMost = 256

func (h *heard) Read(b []byte) (int, error) {
	if !h.greeted && h.bytes > greetingMost {
		return 0, errWire
	}
	n, err := h.Conn.Read(b)
	h.bytes += n
	if len(h.first) < firstMost {
		h.first = append(h.first, b[:min(n, firstMost-len(h.first))]...)
	}
	return n, err
}

// lastMoment is how long to wait for the words of a master that has hung up: the words are there, or will never come.
const lastMoment = 10 * time.Millisecond

// turnedAway returns the master's own reason for ending the connection, if the master gave one; else err. Call
// turnedAway when nothing else is read any more.
func (h *heard) turnedAway(err error) error {
	if isReply(err) || Describe(err) != "connection lost" {
		return err
	}
	if len(h.first) == 0 {
		_ = h.SetReadDeadline(time.Now().Add(lastMoment))
		_, _ = h.Read(make([]byte, firstMost))
	}
	line, _, whole := bytes.Cut(h.first, []byte("\r\n"))
	line, _, more := bytes.Cut(line, []byte(". "))
	text, refusal := bytes.CutPrefix(line, []byte("-"))
	if !refusal || !whole && !more {
		return err
	}
	return replyError(text)
}

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
