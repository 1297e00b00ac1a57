package resp

import "sync"

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

// addSlots counts n bytes more of commands under way, less if n is negative.
func (a *account) addSlots(n int) { a.add(0, int64(n)) }

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
