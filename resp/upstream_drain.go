package resp

import (
	"bytes"
	"context"
	"errors"
	"time"
)

// Draining while clients wait at the upstream, as queue workers always do: `BLPOP jobs 0` may wait for ever, and a proxy that
// waited for it would serve nobody meanwhile. The upstream is asked to unblock such clients. Their connections are not just closed:
// an element that the upstream takes from a list at this very moment still gets to its client. An unblocked client sees its
// connection end, as when a Redis goes away; null would tell it that its timeout is over, which may not be so. But a client that
// has sent more commands behind that one gets the upstream's error: the upstream goes on with these commands, and what they take
// from a list must not be lost either.

// unblockEvery is how often a draining server looks for clients that wait at the upstream: some begin to wait only now.
const unblockEvery = 50 * time.Millisecond

var (
	errDrained = errors.New("unblocked to drain")
	unblocked  = []byte("-UNBLOCKED ")
)

// endWaitsThere unblocks clients that wait at the upstream, until ctx ends. If the upstream refuses, they wait on.
func (s *Server) endWaitsThere(ctx context.Context) {
	if s.cfg.Upstream == nil {
		return
	}
	look := time.NewTicker(unblockEvery)
	defer look.Stop()
	for {
		for _, sess := range s.sessions.all() {
			if id := sess.uplink.waitsThere(); id != 0 && s.cfg.Upstream.Unblock(ctx, id) != nil {
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

// waitsThere returns the id of the link at the upstream, if the upstream owes the next reply and some command on the link may have
// to wait; else 0.
func (u *uplink) waitsThere() int64 {
	if !u.session.replies.isOwedThere() {
		return 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.link == nil {
		return 0
	}
	return u.link.id
}

// drained says whether the server drains and b begins with the error of a command that was unblocked. more says that b is too
// short to tell.
func (r *relay) drained(b []byte) (yes, more bool) {
	if b[0] != '-' || !r.session.server.stopping() {
		return false, false
	}
	if len(b) < len(unblocked) {
		return false, bytes.HasPrefix(unblocked, b)
	}
	return bytes.HasPrefix(b, unblocked), false
}
