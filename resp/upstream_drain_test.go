package resp

import (
	"context"
	"strings"
	"testing"
)

// The error by which the upstream ends a wait may come in one piece with the reply before it, and in several.
func TestAWaitThatADrainEndsIsNotAnswered(t *testing.T) {
	const unblocked = "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"
	for name, answers := range map[string][]string{
		"at once":   {"$1\r\nx\r\n" + unblocked},
		"in pieces": {"$1\r\nx\r\n-", unblocked[1:5], unblocked[5:]},
	} {
		t.Run(name, func(t *testing.T) {
			u, r, c := newUpstreamRig(t)
			c.send(words("WAIT 1 0"))
			u.wantRequest(t, "CLIENT ID")
			u.wantRequest(t, "WAIT 1 0")
			u.answers <- ":0\r\n:1\r\n"
			c.want(":1\r\n")
			c.send(words("GET n") + words("WAIT 1 0"))
			u.wantRequest(t, "GET n")
			u.wantRequest(t, "WAIT 1 0")
			done := make(chan error, 1)
			go func() { done <- r.server.Shutdown(context.Background()) }()
			waitFor(t, "nothing is drained", r.isClosing)
			u.answers <- answers[0]
			c.want("$1\r\nx\r\n")
			for _, text := range answers[1:] {
				u.answers <- text
			}
			c.wantEnd()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if n := r.server.Stats().UpstreamErrors; n != 0 {
				t.Errorf("%d errors of the upstream's counted", n)
			}
		})
	}
}

// The upstream goes on with what is behind the wait, and may take elements from lists for it.
func TestWhatIsBehindAWaitThatADrainEndsIsAnswered(t *testing.T) {
	u, r, c := newUpstreamRig(t)
	c.send(words("WAIT 1 0") + words("PING") + words("GETDEL k"))
	u.wantRequest(t, "CLIENT ID")
	u.wantRequest(t, "WAIT 1 0")
	u.wantRequest(t, "GETDEL k")
	done := make(chan error, 1)
	go func() { done <- r.server.Shutdown(context.Background()) }()
	waitFor(t, "nothing is drained", r.isClosing)
	const both = "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n$1\r\nx\r\n"
	u.answers <- ":0\r\n" + both
	c.want(strings.Replace(both, "\n", "\n+PONG\r\n", 1))
	c.wantEnd()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
