package resp

import "sync/atomic"

// A backlog is the memory of one connection's slots: commands under way, and replies not read by the client. replies.mu guards the changes;
// the atomic counts may be read without.
type backlog struct {
	limits *Limits
	memory *account

	depth    atomic.Int64 // the queue's share of Limits.Pipeline
	inBytes  atomic.Int64 // bytes of the commands in the queue
	outBytes atomic.Int64 // bytes that wait for the client

	slots   int // bytes taken by the slots in the queue beside texts
	counted int // the part of slots counted by the memory budget
}

// Why a connection ends whose client does not read.
const (
	outputSpent = "output limit reached: the client does not read"
	memorySpent = "max_memory is spent: there is no room for what waits for the client"
)

// weighStep is the step in which the memory budget counts a queue: most commands touch no shared counter.
const weighStep = 8 << 10

func (b *backlog) add(sl *slot) {
	b.depth.Add(int64(sl.weight))
	b.inBytes.Add(int64(sl.size))
	b.weigh(sl.memory)
}

// output notes that n bytes more of a slot wait for the client, or returns the limit that forbids the bytes.
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

// weigh adds n bytes to slots, and has the budget count the sum.
func (b *backlog) weigh(n int) {
	b.slots += n
	if now := b.slots / weighStep * weighStep; now != b.counted {
		b.memory.add(0, int64(now-b.counted))
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

// crowded says whether another command must wait for memory. A client's only command never waits: it may be the release of a lock for which
// others wait.
func (b *backlog) crowded() bool { return b.depth.Load() > 0 && b.memory.scarce() }
