package resp

import "sync/atomic"

// A budget bounds the server's memory for many clients together. Strangers, who have still to log in, have a budget of their own
// (strangers.go). A client takes from a budget by its account (account.go).
//
// Commands under way, and replies waiting for their turn, are counted without their texts, except the first few of each client. They are
// never refused. But if little of the budget is left, a client is not read any further while one of its commands is under way: so each
// client can always have one command.
//
// Texts, except the smallest, and memory held until its client gives the memory up are counted, too. If there is no room for a text,
// clients that hold much unread are ended (relief.go). If there are no such clients, the text is refused. Commands under way, as on many
// keys, may take more than three quarters of the budget. Even then texts have the last quarter: a text may be the script that releases a
// lock.
type budget struct {
	max   int64
	texts atomic.Int64 // and memory held until its client gives the memory up
	slots atomic.Int64 // commands under way, beside their texts

	refused atomic.Uint64 // how often there was no room
}

// The counted sizes, in bytes; each as measured, or more.
const (
	countedFrom = 256     // the smallest text counted: smaller texts are within slotMemory
	slotMemory  = 1 << 10 // a slot with a small command and a small reply
	perMaster   = 768     // an operation of the engine, for each master; and a granted lock
	queuedSize  = 192     // a command queued by MULTI, beside its text and a SpanSize of package wire for each argument
)

// A share is how much of a budget texts may take.
type share func(*budget) int64

// brief is the share of memory that lasts no longer than a command.
func brief(b *budget) int64 { return b.max - min(b.slots.Load(), b.plenty()) }

// lasting is the share of memory held until its client gives the memory up. It leaves room for others.
func lasting(b *budget) int64 { return b.plenty() - b.slots.Load() }

// reserve counts n bytes of texts, or returns false if the share would be exceeded.
func (b *budget) reserve(n int, most share) bool {
	if b.texts.Add(int64(n)) > most(b) {
		b.texts.Add(-int64(n))
		return false
	}
	return true
}

// lacks is how much must be given back before n bytes more can be reserved; none if not positive.
func (b *budget) lacks(n int, most share) int64 { return b.texts.Load() + int64(n) - most(b) }

// add counts texts and commands under way, whether there is room or not; negative numbers count less.
func (b *budget) add(texts, slots int64) {
	b.texts.Add(texts)
	b.slots.Add(slots)
}

func (b *budget) used() int64 { return b.texts.Load() + b.slots.Load() }

// scarce says whether little is left.
func (b *budget) scarce() bool { return b.used() > b.plenty() }

func (b *budget) plenty() int64 { return b.max / 4 * 3 }
