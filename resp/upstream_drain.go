package resp

import (
	"bytes"
	"context"
	"errors"
	"time"
)

// Draining, where clients wait at the upstream, as queue workers always do: `BLPOP jobs 0` may wait for ever, and a proxy
// that waits with it keeps everybody away. The upstream is asked to unblock such clients; they are not just left: so an
// element that it takes from a list at this very moment still gets to its client. A client that is unblocked sees its
// connection end, as when a Redis goes away; a null would tell it that its timeout is over, which may not be so. A client
// that has sent more behind that command is told of the error: the upstream goes on with what it sent, and what that takes
// from a list must not be lost either.

// unblockEvery is how often a draining server looks for clients that wait at the upstream: some only now come to.
const unblockEvery = 50 * time.Millisecond

var (
	errDrained = errors.New("unblocked to drain")
	unblocked  = []byte("-UNBLOCKED ")
)

// endWaitsThere unblocks clients that wait at the upstream until ctx ends. If that refuses, they wait on.
func (s *Server) endWaitsThere(ctx context.Context) {
	if s.cfg.Upstream == nil {
		return
	}
	look := time.NewTicker(unblockEvery)
	defer look.Stop()
	for {
		for _, sess := range s.clients() {
			if id := sess.waitsThere(); id != 0 && s.cfg.Upstream.Unblock(ctx, id) != nil {
				break
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// waitsThere returns how the upstream knows the connection, if it owes the reply that is next, to a command that may wait.
func (s *session) waitsThere() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head == nil || !s.head.relayed || s.link == nil {
		return 0
	}
	return s.link.id
}

// drained says whether the reply that b begins with tells that the command was unblocked, of a server that drains.
// If b is too short to tell, more is needed.
func (r *relay) drained(b []byte) (yes, more bool) {
	if b[0] != '-' || !r.session.server.stopping() {
		return false, false
	}
	if len(b) < len(unblocked) {
		return false, bytes.HasPrefix(unblocked, b)
	}
	return bytes.HasPrefix(b, unblocked), false
}
