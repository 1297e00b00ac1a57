package resp

import (
	"sync"
	"sync/atomic"
)

// A budget bounds the server's memory for many clients together. Strangers, who have still to log in, have a budget of their own
// (strangers.go). A client takes from a budget by its account.
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

// An account is one client's share of a memory budget: of the strangers' until the client has logged in, then of the clients'. When the
// client is ended to make room for others, the account is closed: the client counts no more at once, though its goroutines end a moment
// later.
//
// doc.go has the lock order.
type account struct {
	session *session
	relief  *relief

	mu     sync.Mutex // guards the fields from here on
	budget *budget    // nil: closed
	texts  int64
	slots  int64
}

// take reserves n bytes for no longer than a command, or returns false.
func (a *account) take(n int) bool { return n < countedFrom || a.reserve(n, brief) }

// give returns the bytes of one take.
func (a *account) give(n int) {
	if n >= countedFrom {
		a.drop(n)
	}
}

// keep is take for memory held until its client gives the memory up. Unlike take, keep counts the smallest amounts, too.
func (a *account) keep(n int) bool { return a.reserve(n, lasting) }

// drop returns the bytes of any number of keeps.
func (a *account) drop(n int) { a.add(-int64(n), 0) }

// scarce says whether little is left of the budget.
func (a *account) scarce() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.budget != nil && a.budget.scarce()
}

// reserve may end other clients to have room.
func (a *account) reserve(n int, most share) bool {
	for !a.try(n, most) {
		if !a.relief.relieve(a, n, most) {
			return false
		}
	}
	return true
}

func (a *account) try(n int, most share) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.budget == nil || !a.budget.reserve(n, most) {
		return false
	}
	a.texts += int64(n)
	a.note()
	return true
}

// add counts texts and commands under way, whether there is room or not; negative numbers count less.
func (a *account) add(texts, slots int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.budget == nil {
		return
	}
	a.budget.add(texts, slots)
	a.texts += texts
	a.slots += slots
	a.note()
}

// note tells the strangers whether this stranger holds memory. a.mu is held.
func (a *account) note() {
	if s := &a.relief.strangers; a.budget == &s.budget {
		s.noteHolding(a.session, a.texts+a.slots > 0)
	}
}

// move has another budget count the client's memory. A move to nil closes the account.
func (a *account) move(to *budget) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.budget == nil {
		return
	}
	a.budget.add(-a.texts, -a.slots)
	a.budget = to
	if to != nil {
		to.add(a.texts, a.slots)
		a.note()
	}
}

// of returns the client's budget; nil if the account is closed.
func (a *account) of() *budget {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.budget
}

// totalOf is the client's memory in the budget; 0 if another budget counts the client.
func (a *account) totalOf(b *budget) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.budget != b {
		return 0
	}
	return a.texts + a.slots
}
