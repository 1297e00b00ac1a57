package masters

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

// A Trial is a command that is run only to test the user's permission. A Trial must change nothing.
type Trial struct {
	Name string // as ACL rules name the command, in upper case
	Args []any
}

// Further names in Info.Missing: the user may run a command, but not on every key or channel.
const (
	OurKeys     = "commands on all keys of its own (~lockproxy:*)"
	AllKeys     = "commands on all keys (~*)"
	AllChannels = "commands on all channels (&*)"
)

// Probe connects, asks a master about itself, makes the trials, and disconnects.
func (m *Redis) Probe(ctx context.Context, trials ...Trial) (info Info, err error) {
	err = With(ctx, m, func(conn Conn) error {
		info, err = probe(conn, trials)
		return err
	})
	return info, err
}

func probe(conn Conn, trials []Trial) (Info, error) {
	took, ahead, err := askTime(conn)
	if err != nil {
		return Info{}, err
	}
	inquiry := &Inquiry{}
	calls := inquiry.Calls()
	told := len(calls)
	for _, t := range trials {
		calls = append(calls, &Call{Args: t.Args})
	}
	if err := conn.Exec(calls); err != nil {
		return Info{}, err
	}
	info := inquiry.Info()
	section := &Call{Args: []any{"INFO", "lockproxy"}} // only a lockproxy has this section
	_ = conn.Exec([]*Call{section})                    // a server that hangs up is no lockproxy
	if text(section.Reply) != "" {
		info.Server, info.Version = "lockproxy", ""
	}
	info.RoundTrip, info.ClockOffset = took, ahead
	for i, t := range trials {
		info.note(t.Name, calls[told+i].Err)
	}
	return info, nil
}

// askTime asks for the time as often as an engine does before it counts the clock as known. askTime returns the
// shortest round trip, and how far the master's clock was ahead of ours in that round trip.
func askTime(conn Conn) (took, ahead time.Duration, err error) {
	for tries := range 4 {
		clock := &Call{Args: []any{"TIME"}}
		began := time.Now()
		if err := conn.Exec([]*Call{clock}); err != nil {
			return 0, 0, err
		}
		if d := time.Since(began); tries == 0 || d < took {
			took, ahead = d, 0
			if t, ok := ParseTime(clock.Reply); ok {
				ahead = t.Sub(began.Add(d / 2))
			}
		}
	}
	return took, ahead, nil
}

// SpeaksOtherwise says that the server speaks TLS where the URL has redis://, or no TLS where the URL has rediss://.
// Call SpeaksOtherwise when Probe has failed with err. Nothing is sent that needs a login.
func (m *Redis) SpeaksOtherwise(ctx context.Context, err error) bool {
	var stranger x509.UnknownAuthorityError
	if isReply(err) || errors.As(err, &stranger) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, m.opt.DialTimeout)
	defer cancel()
	raw, err := m.dialer.DialContext(ctx, m.opt.Network, m.opt.Addr)
	if err != nil {
		return false
	}
	defer func() { _ = raw.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	if !m.TLS() {
		conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // nothing is sent over it
		err := conn.HandshakeContext(ctx)
		var refused tls.AlertError
		return err == nil || errors.As(err, &refused)
	}
	if _, err := raw.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	first := make([]byte, 1)
	_, err = io.ReadFull(raw, first)
	return err == nil && (first[0] == '+' || first[0] == '-')
}

// TryListening opens a connection for subscriptions, and adds to info the subscriptions that the user may not make.
func (m *Redis) TryListening(ctx context.Context, channel string, info *Info) error {
	l, err := m.Listen(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for c, name := range []string{Subscribe: "SUBSCRIBE", Unsubscribe: "UNSUBSCRIBE", PSubscribe: "PSUBSCRIBE", PUnsubscribe: "PUNSUBSCRIBE"} {
		if err := l.Send(Command(c), channel); err != nil {
			return err
		}
		heard, err := l.Next()
		if err != nil {
			return err
		}
		info.note(name, heard.Err)
	}
	return nil
}

// note adds a refusal by err: of writes from any client, or of a command, key or channel to our user. All versions
// refuse our user with NOPERM, each in its own words.
func (i *Info) note(name string, err error) {
	if refusesWrites(err) {
		i.Refusal = err.Error()
	}
	if !isNoPerm(err) && !isTakenAway(name, err) {
		return
	}
	if _, what, ok := strings.Cut(err.Error(), " to access "); ok {
		switch {
		case strings.Contains(what, "channel"):
			name = AllChannels
		case name != AllKeys: // all other trials are on keys of ours
			name = OurKeys
		}
	} else if name == AllKeys { // the command is not permitted on any
		return
	}
	if !slices.Contains(i.Missing, name) {
		i.Missing = append(i.Missing, name)
	}
}

// isTakenAway recognises a missing command that every version has. The server's configuration renames the command
// (rename-command), as hosted servers may.
func isTakenAway(name string, err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "ERR unknown command") && name != "PEXPIRETIME" && name != "SPUBLISH"
}

// refusesWrites recognises the error of a master that takes no writes from any client: too few replicas, a disk that
// cannot be written, or a full memory.
func refusesWrites(err error) bool {
	if err == nil || !isReply(err) {
		return false
	}
	code, _, _ := strings.Cut(err.Error(), " ")
	return slices.Contains([]string{"NOREPLICAS", "MISCONF", "OOM"}, code)
}
