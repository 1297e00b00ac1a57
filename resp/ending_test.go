package resp

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// At the level debug the log says once of each connection why it has ended, and nothing of what was sent over it.
func TestTheLogSaysWhyAConnectionHasEnded(t *testing.T) {
	reset := func(c *client) { _ = c.Conn.(*net.TCPConn).SetLinger(0); _ = c.Close() }
	for name, test := range map[string]struct {
		limits Limits
		users  []User
		send   string
		then   func(*client)
		want   string
	}{
		"it closes":      {then: func(c *client) { _ = c.Close() }, want: `cause="the client sends nothing more"`},
		"it resets":      {then: reset, want: "connection reset by peer"},
		"QUIT":           {send: words("QUIT"), want: "cause=QUIT"},
		"a broken frame": {send: "*1\r\n$-1\r\n", want: `cause="ERR Protocol error: invalid bulk length"`},
		"HTTP":           {send: "POST / HTTP/1.1\r\n", want: `cause="an HTTP request"`},
		"it is idle":     {limits: Limits{Idle: 20 * time.Millisecond}, want: "cause=idle_timeout"},
		"no login": {limits: Limits{Auth: 20 * time.Millisecond}, users: []User{{Name: "default", Password: password("pw")}},
			want: "cause=auth_timeout"},
		"CLIENT KILL": {send: words("CLIENT KILL TYPE normal SKIPME no"), want: `cause="CLIENT KILL"`},
	} {
		t.Run(name, func(t *testing.T) {
			var log logged
			logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			r := newRig(t, Config{Limits: test.limits, Users: test.users, Logger: logger})
			c := r.dial()
			if test.users == nil && test.limits.Idle == 0 {
				c.ask("SET", "k", "t0ken", "NX", "PX", "1000")
			}
			c.send(test.send)
			if test.then != nil {
				test.then(c)
			} else {
				_, _ = io.ReadAll(c.r)
				_ = c.Close()
			}
			r.awaitGone()
			if got := log.String(); strings.Count(got, "connection ended") != 1 || !strings.Contains(got, test.want) || strings.Contains(got, "t0ken") {
				t.Errorf("want %s once, got %s", test.want, got)
			}
		})
	}
}

func TestTheLogSaysWhyConnectionsEndAtShutdown(t *testing.T) {
	t.Parallel()
	var log logged
	r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	r.dial().ask("PING")
	ctx, cancel := context.WithTimeout(t.Context(), patienceMax)
	defer cancel()
	if err := r.server.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); strings.Count(got, "cause=shutdown") != 1 {
		t.Errorf("got %s", got)
	}
}

// A network that breaks may end thousands of clients at once.
func TestTheLogHasALineAMinuteOfClientsThatWereKilledForOneCause(t *testing.T) {
	t.Parallel()
	var log logged
	r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	r.server.clock.Store(1)
	kill := func(cause string) {
		for range 10 {
			r.dial().ask("PING")
		}
		for _, sess := range r.server.sessions.all() {
			sess.kill(cause)
		}
		r.awaitGone()
	}
	told := func(level string) int { return strings.Count(log.String(), "level="+level+` msg="connection ended"`) }
	kill("one")
	kill("another")
	if told("INFO") != 2 || told("DEBUG") != 18 {
		t.Errorf("want a line of each:\n%s", log.String())
	}
	r.tellAgain("one")
	kill("one")
	if told("INFO") != 3 || !strings.Contains(log.String(), "cause=one all_so_far=11\n") {
		t.Errorf("want one more after a minute:\n%s", log.String())
	}
}

// What the proxy ends is told at info, and by the same key.
func TestTheLogSaysThatAClientWasKilled(t *testing.T) {
	t.Parallel()
	var log logged
	r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c := r.dial()
	c.ask("PING")
	r.dial().ask("CLIENT", "KILL", "TYPE", "normal")
	_, _ = io.ReadAll(c.r)
	if got := log.String(); strings.Count(got, `msg="connection ended"`) != 1 || !strings.Contains(got, ` cause="CLIENT KILL"`) {
		t.Errorf("got %s", got)
	}
}
