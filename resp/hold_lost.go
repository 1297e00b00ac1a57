package resp

import (
	"strconv"
	"sync/atomic"

	"lockproxy/quorum"
)

// How a client is told that a lock that it held is lost.

// lostChannel begins the names of the channels on which losses are published; the rest is the key. The message is the fence
// of the lost lock: a listener may hold the key by now, or a key of that name in another database.
const lostChannel = reservedPrefix + "lost:"

// LostMessage is the line of the log that tells of a lock that a connection held, and has lost.
const LostMessage = "a held lock was lost: it could not be extended"

// losses are the keys of lost locks. The reply to the next command on one of them tells of its loss. holds.mu guards them; any
// needs no lock.
type losses struct {
	keys map[quorum.Key]struct{}
	n    atomic.Int32 // len(keys)
}

func (l *losses) any() bool { return l.n.Load() > 0 }

func (l *losses) add(key quorum.Key) {
	if l.keys == nil {
		l.keys = map[quorum.Key]struct{}{}
	}
	if len(l.keys) < holdsMax {
		l.keys[key] = struct{}{}
	}
	l.n.Store(int32(len(l.keys)))
}

// remove says whether the key was there.
func (l *losses) remove(key quorum.Key) bool {
	_, lost := l.keys[key]
	delete(l.keys, key)
	l.n.Store(int32(len(l.keys)))
	return lost
}

func (l *losses) clear() {
	clear(l.keys)
	l.n.Store(0)
}

// lose tells the client that a lock is lost: by a push if it speaks RESP3, and by an error in reply to its next command on the key.
// It tells everybody by a message. holds.mu is held.
func (hs *holds) lose(h *hold) {
	key, fence := h.req.Key, h.fence
	if hs.replies.closing.Load() {
		return
	}
	hs.lost.add(key)
	hs.server.counters.heldLost.Add(1) // whoever sees it counted finds the client told
	is := hs.client.client()
	hs.server.log.Warn(LostMessage, "key", clip(key.Name, echoMax), "db", key.DB,
		"client", is.Addr, "id", hs.client.id, "name", is.Name, "library", is.Library, "user", is.User)
	hs.client.audit(Event{What: Lost, Key: key, Token: h.req.Token, Fence: fence})
	//mutant: the loss of a held lock is not pushed
	if hs.client.identity.speaksRESP3() {
		sl := newSlot(hs.replies)
		sl.out.reply, sl.resp3 = Push{Bulk("lost"), Bulk(key.Name), Int(fence)}, true
		_ = hs.replies.deliver(sl, 0) // nothing counts towards a limit
	}
	hs.server.running.Go(func() { // holds.mu is held, and so the session has not released its holds, and Shutdown still waits for it
		hs.server.engine.Publish(lostChannel+key.Name, strconv.FormatInt(fence, 10), func(quorum.Published) {})
	})
}

// tellLost refuses a command on a key whose lock was lost, if the client has not been told yet; and EXEC, if a queued command is on
// such a key. holds.mu is not held.
func tellLost(c *call) Reply {
	var names []string
	switch {
	case c.cmd.name == "exec":
		names = c.session.transaction.keys()
	case c.cmd.group != "pubsub": // there, keys are channels
		names = c.cmd.keys.of(c.args)
	}
	c.session.holds.mu.Lock()
	defer c.session.holds.mu.Unlock()
	for _, name := range names {
		if c.session.holds.lost.remove(c.key(name)) {
			return errLost(name)
		}
	}
	return nil
}

// regain forgets the loss of a key, if the reply about to be written says that the client has a lock of that key again.
func (hs *holds) regain(sl *slot) {
	//mutant: a loss is told to who has the lock again
	if !sl.out.taken || !hs.lost.any() {
		return
	}
	keys := sl.out.lock.AppendKeys(nil) // not all keys of the command: an EXEC may only read some
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, key := range keys {
		hs.lost.remove(key)
	}
}
