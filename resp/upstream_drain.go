package resp

import (
	"bytes"
	"context"
	"errors"
	"time"
)

// Draining while clients wait at the upstream, as queue workers always do: `BLPOP jobs 0` may wait for ever, and a proxy that waited as
// well would serve nobody meanwhile. So the upstream is asked to unblock such clients. Closing the connections would not do: an element
// that the upstream takes from a list at this very moment must still get to its client.
//
// An unblocked client sees its connection end, as when a Redis goes away; null would falsely tell the client that its timeout is over. But
// a client with more commands sent behind the blocked command gets the upstream's error: the upstream goes on with these commands, and
// elements taken from a list by them must not be lost either.

// unblockEvery is how often a draining server looks for clients that wait at the upstream: some begin to wait only during the drain.
const unblockEvery = 50 * time.Millisecond

var (
	errDrained = errors.New("unblocked to drain")
	unblocked  = []byte("-UNBLOCKED ")
)

// endWaitsThere unblocks clients that wait at the upstream, until ctx ends. If the upstream refuses, the clients wait on.
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

// waitsThere returns the link's id at the upstream, if the upstream owes the next reply and a command on the link may block; else 0.
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

// drained says whether the server drains and b begins with the error of an unblocked command. more says that b is too short to tell.
func (r *relay) drained(b []byte) (yes, more bool) {
	if b[0] != '-' || !r.session.server.stopping() {
		return false, false
	}
	if len(b) < len(unblocked) {
		return false, bytes.HasPrefix(unblocked, b)
	}
	return bytes.HasPrefix(b, unblocked), false
}
