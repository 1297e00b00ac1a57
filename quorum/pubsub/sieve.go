package pubsub

import (
	"math/bits"
	"strings"
	"time"

	"lockproxy/quorum"
)

// An instant is a reading of the monotonic clock: the time since the hub was made.
type instant = time.Duration

// A sieve makes one message of the copies that N masters send of it. It reads no clock and does no I/O.
//
// A message is delivered with its q-th copy: then a quorum of masters has run what published it, so that somebody who is
// woken by the release of a lock finds it free. If so many copies do not come, because a link or a master was down, it
// is delivered when the first copy has waited for patience. So:
//
//   - No message is lost if one copy of it is heard. A message is published when q masters have it; it is heard unless the
//     links to all of these were down.
//   - No message is delivered twice. Each copy carries its publication. While a publication is known, so is whether it was
//     delivered. The oldest is forgotten when it was first heard longer ago than remembered, or when knownMax are known. Its
//     publisher's floor then rises to it, and copies at the floor or below are dropped. The price: a message is lost if no
//     copy of it is heard before a later message of the same publisher is forgotten.
//   - If all masters send two messages in the same order, their q-th copies come in that order, because each master's copy
//     of the first comes before its copy of the second.
type sieve struct {
	quorum   int
	patience time.Duration

	known      map[key]*message
	arrived    queue // all that are known, by first copy
	waiting    queue // those not delivered, and some that are, by first copy
	held       int   // bytes of messages not delivered
	publishers map[string]*publisher
}

// What a sieve holds on to.
const (
	remembered    = time.Minute
	knownMax      = 1 << 15
	heldMax       = 64 << 20 // bytes that wait for copies; beyond it the oldest are delivered at once
	publishersMax = 1024     // of those that have nothing known, the one that was silent longest is forgotten
)

// A publication is one that met a subscription of ours. Its topic's name is the subscription's own string.
type publication struct {
	quorum.Publication
	topic Topic
}

// A key is a publication in a form that keeps nothing alive of what a master sent.
type key struct {
	by    *publisher
	order uint64
	topic Topic
}

type message struct {
	key
	Message
	since     instant
	from      uint64 // masters
	delivered bool
}

type publisher struct {
	floor uint64  // messages up to this one were heard and are forgotten, or come too late
	known int     // its messages that are known
	last  instant // when one was last heard
}

func newSieve(quorum int, patience time.Duration) *sieve {
	return &sieve{quorum: quorum, patience: patience, known: map[key]*message{}, publishers: map[string]*publisher{}}
}

// add takes the copy of a master, and appends to out what is to be delivered now.
func (s *sieve) add(p publication, m Message, master int, now instant, out []Message) []Message {
	out = s.forget(now, out)
	by := s.publishers[p.Publisher]
	if by == nil {
		by = s.meet(p.Publisher)
	}
	k := key{by, p.Order, p.topic}
	known := s.known[k]
	if known == nil && p.Order <= by.floor {
		return out
	}
	by.last = now
	if known == nil {
		known = &message{key: k, Message: m, since: now}
		s.known[k] = known
		s.arrived.push(known)
		s.waiting.push(known)
		s.held += known.size()
		by.known++
	}
	known.from |= 1 << master
	if bits.OnesCount64(known.from) >= s.quorum {
		out = s.deliver(known, out)
	}
	for s.held > heldMax {
		out = s.deliver(s.waiting.pop(), out)
	}
	for m := s.waiting.first(); m != nil && m.delivered; m = s.waiting.first() {
		s.waiting.pop()
	}
	return out
}

// due appends to out what has waited for patience.
func (s *sieve) due(now instant, out []Message) []Message {
	for m := s.waiting.first(); m != nil && (m.delivered || now-m.since >= s.patience); m = s.waiting.first() {
		out = s.deliver(s.waiting.pop(), out)
	}
	return s.forget(now, out)
}

// next says when due is to be called, if anything waits.
func (s *sieve) next() (instant, bool) {
	m := s.waiting.first()
	if m == nil {
		return 0, false
	}
	return m.since + s.patience, true
}

func (s *sieve) deliver(m *message, out []Message) []Message {
	if m.delivered {
		return out
	}
	out = append(out, m.Message)
	s.held -= m.size()
	m.delivered, m.Message = true, Message{}
	return out
}

// forget drops the oldest, as far as they are too old or too many.
func (s *sieve) forget(now instant, out []Message) []Message {
	for m := s.arrived.first(); m != nil && (now-m.since > remembered || len(s.known) >= knownMax); m = s.arrived.first() {
		out = s.deliver(s.arrived.pop(), out)
		delete(s.known, m.key)
		m.by.known--
		m.by.floor = max(m.by.floor, m.order)
	}
	return out
}

// meet adds a publisher that has not been heard. If there are too many, it forgets one of which no message is known.
func (s *sieve) meet(name string) *publisher {
	if len(s.publishers) >= publishersMax {
		oldest := ""
		for n, p := range s.publishers {
			if p.known == 0 && (oldest == "" || p.last < s.publishers[oldest].last) {
				oldest = n
			}
		}
		if oldest != "" {
			delete(s.publishers, oldest)
		}
	}
	p := &publisher{}
	s.publishers[strings.Clone(name)] = p
	return p
}

// size is about the memory that the message holds on to.
func (m *message) size() int { return len(m.Payload) + len(m.Channel) }

// A queue is first in, first out.
type queue struct {
	items []*message
	head  int
}

func (q *queue) push(m *message) { q.items = append(q.items, m) }

// first returns nil if there is none.
func (q *queue) first() *message {
	if q.head == len(q.items) {
		return nil
	}
	return q.items[q.head]
}

func (q *queue) pop() *message {
	m := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	if q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return m
}
