package resp

import "sync/atomic"

// A budget bounds the memory that many clients together can make the server hold. Clients that have still to log in have one of their
// own (strangers.go). A client takes from a budget by its account (account.go).
//
// Commands under way, and replies that wait for their turn, are counted by what each takes beside its text, except the first few
// of each client. They are never refused. But if little of the budget is left, a client is not read any further while one of its
// commands is under way: so each client can always have one.
//
// Texts, except the smallest, and what lasts until its client ends it are counted, too. If there is no room for them, clients that hold
// much which they do not read are ended (relief.go). If there are none, the texts are refused.
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
	queuedSize  = 192     // a command queued by MULTI, beside its text and a SpanSize of package wire for each argument
)

// A share says how much texts may take of a budget.
type share func(*budget) int64

// brief is for what lasts no longer than a command.
func brief(b *budget) int64 { return b.max - min(b.slots.Load(), b.plenty()) }

// lasting is for what lasts until its client ends it. It leaves room for others.
func lasting(b *budget) int64 { return b.plenty() - b.slots.Load() }

// reserve counts n bytes of texts, or returns false if they are more than the share.
func (b *budget) reserve(n int, most share) bool {
	if b.texts.Add(int64(n)) > most(b) {
		b.texts.Add(-int64(n))
		return false
	}
	return true
}

// lacks is how much must be given back so that n bytes more can be reserved; none if it is not positive.
func (b *budget) lacks(n int, most share) int64 { return b.texts.Load() + int64(n) - most(b) }

// add counts texts and commands under way, less if they are negative, whether there is room or not.
func (b *budget) add(texts, slots int64) {
	b.texts.Add(texts)
	b.slots.Add(slots)
}

func (b *budget) used() int64 { return b.texts.Load() + b.slots.Load() }

// scarce says whether little is left.
func (b *budget) scarce() bool { return b.used() > b.plenty() }

func (b *budget) plenty() int64 { return b.max / 4 * 3 }
