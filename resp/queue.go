package resp

import (
	"slices"

	"lockproxy/quorum"
)

// The queue of a session: its slots in the order of their commands. Handlers claim a slot. All the rest is done with session.mu held,
// except that only the reader appends, so it may look at depth without.

// claim takes the command's place in the order of replies, for one operation of the engine on the key of that name. answer makes the
// reply of the outcome. If claim returns nil, the command has to wait: the handler, which must not have done anything yet, returns
// wait, and is called again.
func (c *call) claim(o overlap, name string, answer func(*outcome) Reply) *slot {
	return c.claimSlot(claim{overlap: o, name: name, keys: 1, outcomes: 1, engaged: 1, answer: answer})
}

// begin claims a slot, and begins the operation by calling run with it. The handler returns what begin returns.
func (c *call) begin(o overlap, name string, answer func(*outcome) Reply, run func(*slot)) Reply {
	return beginIn(c.claim(o, name, answer), run)
}

// beginKeyless is begin for an operation on no key.
func (c *call) beginKeyless(answer func(*outcome) Reply, run func(*slot)) Reply {
	return beginIn(c.claimTogether(overlapAny, nil, answer), run)
}

func beginIn(sl *slot, run func(*slot)) Reply {
	if sl == nil {
		return wait
	}
	run(sl)
	return later
}

// claimPieces is claim for an operation on several keys that the engine takes piece by piece. The names must all be different; the
// slot keeps them.
func (c *call) claimPieces(o overlap, names []string, outcomes int, answer func(*outcome) Reply) *slot {
	return c.claimSlot(claim{
		overlap: o, name: names[0], others: names[1:], keys: quorum.PieceWeight(len(names)),
		outcomes: outcomes, engaged: 1 + min(len(names), quorum.PieceKeys), answer: answer,
	})
}

// claimTogether is claim for one operation on several keys, or on none. The names must all be different; the slot keeps them.
func (c *call) claimTogether(o overlap, names []string, answer func(*outcome) Reply) *slot {
	cl := claim{overlap: o, others: names, keys: len(names), outcomes: 1, engaged: 1 + len(names), answer: answer}
	if len(names) > 0 {
		cl.name, cl.others = names[0], names[1:]
	}
	return c.claimSlot(cl)
}

// A claim is what claimSlot is asked for.
type claim struct {
	overlap  overlap
	name     string // of the first key, if there is one
	others   []string
	keys     int // how many masters are asked about at one time, as package admission counts
	outcomes int
	engaged  int // how many operations of the engine the memory budget counts
	answer   func(*outcome) Reply
}

// claimSlot does the work of claim, claimPieces and claimTogether, and of a subscription, which is no operation of the engine.
func (c *call) claimSlot(cl claim) *slot {
	s := c.session
	if cl.keys > 0 && !s.mayBegin(cl.keys) { // what has no key is asked seldom, or of the upstream
		return nil
	}
	sl := s.newReply()
	sl.overlap, sl.key, sl.others, sl.answer = cl.overlap, c.key(cl.name), cl.others, cl.answer
	sl.left, sl.weight, sl.size = cl.outcomes, max(cl.outcomes, 1+len(cl.others)), s.parser.Size
	sl.memory += cl.engaged * s.server.engagement
	if s.transaction.open() { // it is EXEC, which runs what is queued
		sl.memory += s.transaction.retained
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sl.reads = c.cmd != nil && c.cmd.flags&readOnly != 0
	if s.waitFor = s.conflict(sl); s.waitFor == nil && sl.reads && s.greedy() {
		s.waitFor = s.oldestRead()
	}
	if s.waitFor != nil || !s.push(sl) {
		sl.recycle()
		return nil
	}
	s.reading += count(sl.reads)
	if cl.overlap == overlapNone {
		s.alone++
	}
	sl.reserve, s.reserve = s.reserve, 0
	return sl
}

// push appends a slot. It returns false if the session is ending and answers nothing more.
func (s *session) push(sl *slot) bool {
	if s.closing.Load() {
		return false
	}
	if s.tail == nil {
		s.head = sl
	} else {
		//mutant: replies overtake each other
		s.tail.next = sl
	}
	s.tail = sl
	s.depth.Add(int64(sl.weight))
	s.inBytes.Add(int64(sl.size))
	s.weigh(sl.memory)
	return true
}

// conflict returns the youngest command in flight that sl must wait for, or nil:
//   - any that went upstream: a client that writes data and gives the lock back in one go relies on their order;
//   - on the same key, one that nothing may overlap;
//   - on the same key any, if sl may overlap nothing sent before it. Then sl waits even for an attempt that is over, if it took a lock
//     and its reply is not written: until that is, the lock may be undone.
func (s *session) conflict(sl *slot) *slot {
	if sl.overlap == overlapAny && s.alone == 0 && (s.link == nil || len(s.link.expected) == 0) {
		return nil // the common case costs nothing
	}
	var found *slot
	others := indexed(sl.others)
	shared := func(name string) bool { return name == sl.key.Name || others.index(name) >= 0 }
	for _, first := range [...]*slot{s.batch, s.head} {
		for other := first; other != nil; other = other.next {
			excludes := sl.overlap != overlapAny && (other.left > 0 || other.takes) || other.overlap == overlapNone && other.left > 0
			if other.owedThere() ||
				excludes && other.key.DB == sl.key.DB && (shared(other.key.Name) || slices.ContainsFunc(other.others, shared)) {
				//mutant: commands overtake each other
				found = other
			}
		}
	}
	return found
}

// greedyBytes is how much masters may be asked for at once by one client that reads large values: while they send that, all others wait.
const greedyBytes = 1 << 20

// firstReadSize is taken for the length of what a client reads that has read nothing yet.
const firstReadSize = 64 << 10

// noteRead notes how long the reply to a read was. A long one counts for some time: half as long with each that follows. Errors tell
// nothing: one may be due to what was too long. s.mu is held.
func (s *session) noteRead(size int, err error) {
	s.reading--
	if err == nil {
		s.readSize = max(size, s.readSize/2)
	}
}

// greedy says whether what the client's reads under way bring may come to more than greedyBytes. s.mu is held.
func (s *session) greedy() bool { return s.reading*s.readSize > greedyBytes }

// oldestRead returns the first read under way. s.mu is held.
func (s *session) oldestRead() *slot {
	for sl := s.head; sl != nil; sl = sl.next {
		if sl.reads && sl.left > 0 {
			return sl
		}
	}
	return nil
}

func (sl *slot) touches(key quorum.Key) bool {
	return sl.key == key || sl.key.DB == key.DB && slices.Contains(sl.others, key.Name)
}

// owedThere says whether replies to the slot's commands are still to come from the upstream.
func (sl *slot) owedThere() bool { return sl.from != proxy && sl.left > 0 }

// repliesDone says whether the upstream owes the client no reply. If it owes some, the reader waits for them.
func (s *session) repliesDone() bool { return s.done((*slot).owedThere) }

// locksDone says whether no command waits for the engine: a command that goes upstream must not overtake one. If some do, the
// reader waits for them.
func (s *session) locksDone() bool {
	return s.done(func(sl *slot) bool { return sl.left > 0 && !sl.owedThere() })
}

// done says whether no slot in the queue is pending. If some are, the reader waits for the youngest of them.
func (s *session) done(pending func(*slot) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waitFor = nil
	for sl := s.head; sl != nil; sl = sl.next {
		if pending(sl) {
			s.waitFor = sl
		}
	}
	return s.waitFor == nil
}

// take removes the slots that can be written now: those at the head that are ready. Once the client is gone, a lock
// must not be handed out any more, so take stops before the first slot that has one.
func (s *session) take() *slot {
	if s.relaying {
		return nil
	}
	first := s.head
	var end *slot
	for sl := first; sl != nil && sl.left == 0; sl = sl.next {
		if s.gone && sl.out.lock != nil {
			break
		}
		if s.latest == sl {
			s.latest = nil
		}
		if s.untold == sl {
			s.untold = nil
		}
		end = sl
	}
	if end == nil {
		return nil
	}
	s.head = end.next
	if s.head == nil {
		s.tail = nil
	}
	end.next = nil
	return first
}

// Why a session ends whose client does not read what waits for it.
const (
	outputSpent = "output limit reached: the client does not read"
	memorySpent = "max_memory is spent: there is no room for what waits for the client"
)

// countOutput notes that n bytes more of a slot wait for the client, or returns which limit does not let them.
func (s *session) countOutput(sl *slot, n int) (spent string) {
	memory, all := &s.memory, sl.output+n
	switch {
	case s.outBytes.Load()+int64(n) > int64(s.server.cfg.Limits.Output):
		return outputSpent
	case !memory.take(all):
		return memorySpent
	}
	memory.give(sl.output)
	s.outBytes.Add(int64(n))
	sl.output = all
	return ""
}

// weighStep is the step in which the memory budget counts a queue, so that the common command touches no shared counter.
const weighStep = 8 << 10

// weigh adds n bytes to what the slots in the queue take, and has the budget count that. s.mu is held.
func (s *session) weigh(n int) {
	s.slotBytes += n
	if now := s.slotBytes / weighStep * weighStep; now != s.counted {
		s.memory.addSlots(now - s.counted)
		s.counted = now
	}
}

// uncount takes a written or dropped slot out of all counts. The caller calls weigh(0) behind the last.
func (s *session) uncount(sl *slot) {
	s.depth.Add(-int64(sl.weight))
	s.inBytes.Add(-int64(sl.size))
	s.outBytes.Add(-int64(sl.output))
	s.slotBytes -= sl.memory
	s.memory.give(sl.reserve)
	s.memory.give(sl.output)
}

// throttle makes the writer kick the reader when the queue has drained. It returns false if the queue has drained meanwhile.
func (s *session) throttle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.throttled = s.full()
	return s.throttled
}

// unthrottle lets a throttled reader go on, once enough of its queue has drained and it need not wait for memory.
func (s *session) unthrottle() {
	l := &s.server.cfg.Limits
	if s.throttled && s.depth.Load() <= int64(l.Pipeline)*3/4 && s.inBytes.Load() <= int64(l.Input)*3/4 && !s.crowded() {
		s.throttled = false
		s.kickReader()
	}
}

// full says whether another command must wait for earlier replies to be written. Only the reader asks.
func (s *session) full() bool {
	l := &s.server.cfg.Limits
	depth := l.Pipeline
	if !s.parser.Authed {
		depth = min(depth, depthBeforeAuth)
	}
	return s.depth.Load() >= int64(depth) || s.inBytes.Load() >= int64(l.Input) || s.crowded()
}

// crowded says whether another command must wait for memory. The command of a client that has no other under way never does: it
// may be the release that others wait for.
func (s *session) crowded() bool { return s.depth.Load() > 0 && s.memory.scarce() }
