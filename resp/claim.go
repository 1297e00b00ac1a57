package resp

import (
	"time"

	"lockproxy/quorum"
)

// How a handler takes its command's place in the order of replies.

// claim takes the command's place in the order of replies, for one operation of the engine on the named key. answer makes the reply of the
// outcome. The reader waits here until earlier commands let the command begin. If claim returns nil, the connection is ending: the handler
// does nothing, and returns nil.
func (c *call) claim(o overlap, name string, answer func(*outcome) Reply) *slot {
	return c.claimSlot(claim{overlap: o, name: name, keys: 1, outcomes: 1, engaged: 1, answer: answer})
}

// begin claims a slot, and begins the operation by calling run with it. The handler returns nil, as begin does: the slot gets the reply.
func (c *call) begin(o overlap, name string, answer func(*outcome) Reply, run func(*slot)) Reply {
	if sl := c.claim(o, name, answer); sl != nil {
		run(sl)
	}
	return nil
}

// beginKeyless is begin for an operation on no key.
func (c *call) beginKeyless(answer func(*outcome) Reply, run func(*slot)) Reply {
	if sl := c.claimTogether(overlapAny, nil, answer); sl != nil {
		run(sl)
	}
	return nil
}

// claimPieces is claim for an operation on several keys, done piece by piece by the engine. The names must all be different; the slot keeps
// them.
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

// A claim is the argument of claimSlot.
type claim struct {
	overlap  overlap
	name     string // of the first key; "": no key
	others   []string
	keys     int // how many keys masters are asked about at once, as package admission counts
	outcomes int
	engaged  int  // how many operations of the engine the memory budget counts
	leads    bool // the reply confirms or takes back a subscription: messages go behind it, and CLIENT REPLY does not mute it
	answer   func(*outcome) Reply
}

// claimSlot does the work of claim, claimPieces and claimTogether, and of a subscription, which is no operation of the engine.
func (c *call) claimSlot(cl claim) *slot {
	s := c.session
	sl := c.newReply()
	sl.overlap, sl.key, sl.others, sl.answer = cl.overlap, c.key(cl.name), cl.others, cl.answer
	sl.left, sl.weight, sl.size = cl.outcomes, max(cl.outcomes, 1+len(cl.others)), s.reader.parser.Size
	sl.memory += cl.engaged * s.server.engagement
	if s.transaction.open() { // the command is EXEC, which runs the queue
		sl.memory += s.transaction.retained
	}
	sl.timing.begin(c)
	sl.reads = c.cmd != nil && c.cmd.flags&readOnly != 0
	if sl.leads = cl.leads; sl.leads {
		sl.mute = false
	}
	sl.reserve = s.reserve // before the writer may see the slot
	tries := 0
	begins := func() bool { // a request without keys is rare, or for the upstream
		tries++
		return (cl.keys == 0 || s.reader.mayBegin(cl.keys)) && s.replies.enter(sl)
	}
	if !s.reader.await(begins) {
		sl.recycle()
		return nil
	}
	s.reserve = 0
	if tries > 1 {
		sl.timing.began = time.Now()
	}
	return sl
}
