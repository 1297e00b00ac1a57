package resp

import (
	"container/list"
	"sync"
)

// Strangers are clients that have still to log in, or to complete the TLS handshake. Anybody who can reach the port can be a stranger. So
// strangers share a memory budget of their own, small and apart from the clients'. When the budget is spent, the stranger with memory for
// longest goes: a client about to log in has hardly any memory, and not for long. When there are max_clients, the stranger that connected
// first goes.
type strangers struct {
	budget budget

	mu      sync.Mutex // guards the fields from here on
	all     lineup     // in the order of connecting
	holding lineup     // strangers with memory, in the order in which they began to hold memory
}

// strangersShare is the divisor of Limits.Memory for the strangers' budget, which comes on top.
const strangersShare = 16

// A lineup is an ordered set of sessions.
type lineup struct {
	order  list.List
	places map[*session]*list.Element
}

func (l *lineup) add(s *session) {
	if l.places == nil {
		l.places = map[*session]*list.Element{}
	}
	if l.places[s] == nil {
		l.places[s] = l.order.PushBack(s)
	}
}

func (l *lineup) remove(s *session) {
	if place := l.places[s]; place != nil {
		l.order.Remove(place)
		delete(l.places, s)
	}
}

// first returns the session added first; nil if the set is empty.
func (l *lineup) first() *session {
	if front := l.order.Front(); front != nil {
		return front.Value.(*session)
	}
	return nil
}

// arrived makes a stranger of the session.
func (s *strangers) arrived(sess *session) {
	s.mu.Lock()
	s.all.add(sess)
	s.mu.Unlock()
	sess.memory.move(&s.budget)
}

// left notes that the session is no stranger any more. The session's account has another budget, or none.
func (s *strangers) left(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.remove(sess)
	s.holding.remove(sess)
}

func (s *strangers) noteHolding(sess *session, holds bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !holds {
		s.holding.remove(sess)
	} else {
		s.holding.add(sess)
	}
}

// eldest returns the stranger that connected first, eldestHolding the stranger with memory for longest; nil without strangers.
func (s *strangers) eldest() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.first()
}

func (s *strangers) eldestHolding() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holding.first()
}
