package resp

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"lockproxy/quorum"
)

// holds are the locks held by one connection. The client's own commands change holds, timers extend them, and the writer begins them.
type holds struct {
	server  *Server
	memory  *account
	replies *replies
	client  *session // the holder

	mu     sync.Mutex // guards the fields from here on, and the fields of each hold named in its type
	kept   map[quorum.Key]*hold
	coming []*hold // holds of LOCKs under way: later commands of the client may change or end them
	lost   losses
}

// holdsMax bounds the locks held by a connection: each is extended three times in a TTL.
const holdsMax = 1024

func (hs *holds) full() bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return len(hs.kept)+len(hs.coming) >= holdsMax
}

// expect makes the hold of a LOCK under way. Key and token are copied, so as not to keep the whole command alive. expect returns nil if
// there is no memory for the hold.
func (hs *holds) expect(req quorum.AcquireRequest) *hold {
	size := slotMemory + hs.server.engagement + len(req.Key.Name) + len(req.Token)
	if !hs.memory.keep(size) {
		return nil
	}
	req.Key.Name, req.Token = strings.Clone(req.Key.Name), strings.Clone(req.Token)
	h := &hold{of: hs, req: req, size: size}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.coming = append(hs.coming, h)
	return h
}

// begin starts the extensions for a slot with a hold, whose reply is about to be written, if the lock was granted. If the write fails, the
// session ends, and releases the lock.
func (hs *holds) begin(sl *slot) {
	h := sl.hold
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h.arrived()
	if sl.out.done == 0 || h.over { // the lock was refused, or given back meanwhile
		h.free()
		return
	}
	if hs.kept == nil {
		hs.kept = map[quorum.Key]*hold{}
	}
	if old := hs.kept[h.req.Key]; old != nil {
		old.stop() // the old lock has been lost: else the new lock was not free
	}
	hs.kept[h.req.Key] = h
	hs.server.counters.held.Add(1)
	h.valid = sl.out.lock
	h.cutShort()
	//mutant: a held lock is not extended
	h.timer = time.AfterFunc(h.nextIn(), h.extend)
}

// hurryOverdue extends at once each lock that is not valid any more, as after a sleep of this machine, which timers do not count.
func (hs *holds) hurryOverdue() {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, h := range hs.kept {
		if h.left() == 0 {
			h.timer.Reset(0)
		}
	}
}

// hurry extends the lock of the key at once, if held here: the loss of a lock taken away by force is found.
func (hs *holds) hurry(key quorum.Key) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h := hs.kept[key]; h != nil {
		h.timer.Reset(0)
	}
}

// keys returns the keys of the held locks.
func (hs *holds) keys() []quorum.Key {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return slices.Collect(maps.Keys(hs.kept))
}

// isEmpty says whether no lock is held.
func (hs *holds) isEmpty() bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return len(hs.kept) == 0
}

// isComing says whether a LOCK … HOLD is under way.
func (hs *holds) isComing() bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return len(hs.coming) > 0
}

// release releases all locks of the session. Shutdown waits for the release.
func (hs *holds) release() {
	hs.mu.Lock()
	var all []*hold
	for _, h := range hs.kept {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *hold) int { return cmp.Compare(a.fence, b.fence) }) // in the order of the grants
	for _, h := range all {
		h.stop()
	}
	for _, h := range hs.coming { // their replies will not be written
		h.free()
	}
	hs.lost.clear()
	hs.mu.Unlock()
	hs.giveBack(all)
}

// releaseComing releases the locks granted to LOCKs whose replies are not written yet. No LOCK waits for the engine.
func (hs *holds) releaseComing() {
	hs.mu.Lock()
	var all []*hold
	for _, h := range hs.coming {
		if !h.over {
			h.stop()
			all = append(all, h)
		}
	}
	hs.mu.Unlock()
	hs.giveBack(all)
}

func (hs *holds) giveBack(all []*hold) {
	for _, h := range all {
		hs.server.running.Add(1)
		e := Event{Key: h.req.Key, Token: h.req.Token, Fence: h.fence, Cause: "the connection of LOCK … HOLD ended"}
		hs.server.release(h.req.Key, h.req.Token, hs.client.tellReleased(e, func(quorum.Released) { hs.server.running.Done() }))
	}
}
