package resp

import "sync/atomic"

// A budget bounds the memory that all clients together can make the server hold.
//
// Commands under way, and replies that wait for their turn, are counted by what each takes beside its text, except the first few
// of each client. They are never refused. But if little of the budget is left, a client is not read any further while one of its
// commands is under way: so each client can always have one.
//
// Texts, except the smallest, and what lasts until its client ends it are counted, too. They are refused if there is no room.
// Commands under way, as those on many keys, may take more than three quarters of the budget. Even then texts have the last
// quarter: one of them may be the script that releases a lock.
type budget struct {
	max   int64
	texts atomic.Int64 // and what lasts
	slots atomic.Int64 // what commands under way take beside texts

	refused atomic.Uint64 // how often there was no room
}

// What is counted, in bytes; each as measured, or more.
const (
	countedFrom = 256     // the smallest text that is counted: what takes less is within slotMemory
	slotMemory  = 1 << 10 // a slot with a small command and a small reply
	perMaster   = 768     // an operation of the engine, for each master; and a lock that it has granted
	queuedSize  = 192     // a command queued by MULTI, beside its text and spanSize for each argument
)

// take reserves n bytes, or returns false.
func (b *budget) take(n int) bool {
	return n < countedFrom || b.within(n, b.max-min(b.slots.Load(), b.plenty()))
}

// give returns what one take reserved.
func (b *budget) give(n int) {
	if n >= countedFrom {
		b.drop(n)
	}
}

// keep is take for what lasts until its client ends it. It counts the smallest amounts, too, and leaves room for others.
func (b *budget) keep(n int) bool { return b.within(n, b.plenty()-b.slots.Load()) }

func (b *budget) within(n int, most int64) bool {
	if b.texts.Add(int64(n)) > most {
		b.drop(n)
		b.refused.Add(1)
		return false
	}
	return true
}

// drop returns what any number of keeps reserved.
func (b *budget) drop(n int) { b.texts.Add(-int64(n)) }

// addSlots counts n bytes more of commands under way, less if n is negative, whether there is room or not.
func (b *budget) addSlots(n int) { b.slots.Add(int64(n)) }

func (b *budget) used() int64 { return b.texts.Load() + b.slots.Load() }

// scarce says whether little is left.
func (b *budget) scarce() bool { return b.used() > b.plenty() }

func (b *budget) plenty() int64 { return b.max / 4 * 3 }
