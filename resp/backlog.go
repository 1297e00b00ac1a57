package resp

import "sync/atomic"

// A backlog is what the slots of one connection take: commands under way, and replies that the client has not read. replies.mu guards
// the changes; the atomic counts may be read without.
type backlog struct {
	limits *Limits
	memory *account

	depth    atomic.Int64 // what the queue counts towards Limits.Pipeline
	inBytes  atomic.Int64 // bytes of the commands in the queue
	outBytes atomic.Int64 // bytes that wait for the client

	slots   int // bytes that the slots in the queue take beside texts
	counted int // of slots, bytes that the memory budget has counted
}

// Why a connection ends whose client does not read what waits for it.
const (
	outputSpent = "output limit reached: the client does not read"
	memorySpent = "max_memory is spent: there is no room for what waits for the client"
)

// weighStep is the step in which the memory budget counts a queue, so that the common command touches no shared counter.
const weighStep = 8 << 10

func (b *backlog) add(sl *slot) {
	b.depth.Add(int64(sl.weight))
	b.inBytes.Add(int64(sl.size))
	b.weigh(sl.memory)
}

// output notes that n bytes more of a slot wait for the client, or returns which limit does not let them.
func (b *backlog) output(sl *slot, n int) (spent string) {
	all := sl.output + n
	switch {
	case b.outBytes.Load()+int64(n) > int64(b.limits.Output):
		return outputSpent
	case !b.memory.take(all):
		return memorySpent
	}
	b.memory.give(sl.output)
	b.outBytes.Add(int64(n))
	sl.output = all
	return ""
}

// weigh adds n bytes to what the slots take, and has the budget count the sum.
func (b *backlog) weigh(n int) {
	b.slots += n
	if now := b.slots / weighStep * weighStep; now != b.counted {
		b.memory.addSlots(now - b.counted)
		b.counted = now
	}
}

// remove takes a written or dropped slot out of all counts. The caller calls weigh(0) behind the last slot.
func (b *backlog) remove(sl *slot) {
	b.depth.Add(-int64(sl.weight))
	b.inBytes.Add(-int64(sl.size))
	b.outBytes.Add(-int64(sl.output))
	b.slots -= sl.memory
	b.memory.give(sl.reserve)
	b.memory.give(sl.output)
}

// full says whether another command must wait for earlier replies to be written, if so many commands may be under way. Only the reader
// asks.
func (b *backlog) full(most int) bool {
	return b.depth.Load() >= int64(most) || b.inBytes.Load() >= int64(b.limits.Input) || b.crowded()
}

// drained says whether enough replies are written for a full backlog to take more.
func (b *backlog) drained() bool {
	return b.depth.Load() <= int64(b.limits.Pipeline)*3/4 && b.inBytes.Load() <= int64(b.limits.Input)*3/4 && !b.crowded()
}

// crowded says whether another command must wait for memory. The command of a client that has no other under way never does: the command
// may be the release that others wait for.
func (b *backlog) crowded() bool { return b.depth.Load() > 0 && b.memory.scarce() }
