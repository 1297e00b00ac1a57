package resp

import (
	"strconv"
	"sync/atomic"

	"lockproxy/quorum"
)

// How a client is told of the loss of a held lock.

// lostChannel begins the names of the channels on which losses are published; the rest is the key. The message is the fence of the lost
// lock: by now a listener may hold the key, or a key of the same name in another database.
const lostChannel = reservedPrefix + "lost:"

// LostMessage is the log line for the loss of a held lock.
const LostMessage = "a held lock was lost: it could not be extended"

// losses are the keys of lost locks. The reply to the next command on such a key tells of the loss. holds.mu guards the fields; n may be
// read without.
type losses struct {
	keys map[quorum.Key]struct{}
	n    atomic.Int32 // len(keys)
}

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

// lose tells the client that a lock is lost: by a push over RESP3, and by an error in reply to the client's next command on the key. A
// published message tells everybody else. holds.mu is held.
func (hs *holds) lose(h *hold) {
	key, fence := h.req.Key, h.fence
	if hs.replies.closing.Load() {
		return
	}
	hs.lost.add(key)
	hs.server.counters.heldLost.Add(1) // counted after losses.add: a reader of the count finds the loss noted
	is := hs.client.client()
	hs.server.log.Warn(LostMessage, "key", clip(key.Name, echoMax), "db", key.DB,
		"client", is.Addr, "id", hs.client.id, "name", is.Name, "library", is.Library, "user", is.User)
	hs.client.tell(Event{What: Lost, Key: key, Token: h.req.Token, Fence: fence})
	//mutant: the loss of a held lock is not pushed
	if hs.client.identity.speaksRESP3() {
		sl := newSlot(hs.replies)
		sl.out.reply, sl.resp3 = Push{Bulk("lost"), Bulk(key.Name), Int(fence)}, true
		_ = hs.replies.deliver(sl, 0) // a size of 0 counts towards no limit
	}
	hs.server.running.Go(func() { // holds.mu is held, so the session has not released its holds: Shutdown still waits for the session
		hs.server.engine.Publish(lostChannel+key.Name, strconv.FormatInt(fence, 10), func(quorum.Published) {})
	})
}

// tellLost refuses a command on a key whose lock was lost, if the client has not been told yet. EXEC is refused if a queued command is on
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

// regain forgets the loss of a key, if the reply about to be written gives the client a lock of the key again.
func (hs *holds) regain(sl *slot) {
	//mutant: a loss is told to who has the lock again
	if !sl.out.taken || hs.lost.n.Load() == 0 {
		return
	}
	keys := sl.out.lock.AppendKeys(nil) // not all keys of the command: an EXEC may only read some
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, key := range keys {
		hs.lost.remove(key)
	}
}
