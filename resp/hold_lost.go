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

// losses are the keys of lost locks. The reply to the next command on one of them tells of its loss. session.mu guards them; any
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
// It tells everybody by a message. s.mu is held.
func (s *session) lose(key quorum.Key, fence int64) {
	if s.closing.Load() {
		return
	}
	s.lost.add(key)
	s.server.counters.heldLost.Add(1) // whoever sees it counted finds the client told
	s.server.log.Warn(LostMessage, "key", clip(key.Name, echoMax), "db", key.DB,
		"client", s.addr(), "id", s.id)
	//mutant: the loss of a held lock is not pushed
	if s.resp3 {
		sl := newSlot(s)
		sl.out.reply, sl.resp3 = Push{Bulk("lost"), Bulk(key.Name), Int(fence)}, true
		s.insert(sl)
		s.ready.Signal()
	}
	s.server.running.Go(func() { // since s.mu is held. The session is not gone, so Shutdown still waits for it
		s.server.engine.Publish(lostChannel+key.Name, strconv.FormatInt(fence, 10), func(quorum.Published) {})
	})
}

// tellLost refuses a command on a key whose lock was lost, if the client has not been told yet; and EXEC, if a queued command is on
// such a key. s.mu is not held.
func (c *call) tellLost(cmd *command) Reply {
	var names []string
	switch {
	case cmd.name == "exec":
		names = c.transaction.keys()
	case cmd.group != "pubsub": // there, keys are channels
		names = cmd.keys.of(c.args)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if c.lost.remove(c.key(name)) {
			return errLost(name)
		}
	}
	return nil
}

// regain forgets the loss of a key, if the reply about to be written says that the client has a lock of that key again.
func (s *session) regain(sl *slot) {
	//mutant: a loss is told to who has the lock again
	if !sl.out.taken || !s.lost.any() {
		return
	}
	keys := sl.out.lock.AppendKeys(nil) // not all keys of the command: an EXEC may only read some
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		s.lost.remove(key)
	}
}
