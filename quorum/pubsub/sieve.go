package pubsub

import (
	"math/bits"
	"strings"
	"time"

	"lockproxy/quorum"
)

// An instant is a reading of the monotonic clock: the time since the hub was made.
type instant = time.Duration

// A sieve makes one message of the copies from N masters. The sieve reads no clock and does no I/O.
//
// A message is delivered with its q-th copy: then a quorum of masters has run the publishing command. So a client that
// is woken by the release of a lock finds the lock free. If too few copies come, because a link or a master was down,
// the message is delivered when the first copy has waited for patience. So:
//
//   - No message is lost if one copy of it is heard. A message is published when q masters have it. A copy is heard
//     unless the links to all of these masters were down.
//   - No message is delivered twice. Each copy carries its publication, and a known publication is delivered once. The
//     oldest publication is forgotten when its first copy is older than remembered, or when knownMax are known. Then
//     its publisher's floor rises to it, and copies at the floor or below are dropped. The price: a message is lost if
//     its first copy comes after a later message of the same publisher was forgotten.
//   - If all masters send two messages in the same order, their q-th copies come in that order, because each master's
//     copy of the first comes before its copy of the second.
type sieve struct {
	quorum   int
	patience time.Duration

	known      map[key]*message
	arrived    queue // all known messages, by first copy
	waiting    queue // undelivered messages, and some delivered ones, by first copy
	held       int   // bytes of messages not delivered
	publishers map[string]*publisher
}

// Bounds of a sieve.
const (
	remembered    = time.Minute
	knownMax      = 1 << 15
	heldMax       = 64 << 20 // bytes that wait for copies; beyond heldMax the oldest messages are delivered at once
	publishersMax = 1024     // beyond publishersMax, the publisher that was silent longest is forgotten, among those without a known message
)

// A publication is a publication that reached one of our subscriptions. The topic's name is the subscription's own
// string.
type publication struct {
	quorum.Publication
	topic Topic
}

// A key is a publication in a form that keeps no memory of a master's message alive.
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
	floor uint64  // messages up to the floor were heard and are forgotten, or come too late
	known int     // the number of its known messages
	last  instant // when its latest message was heard
}

func newSieve(quorum int, patience time.Duration) *sieve {
	return &sieve{quorum: quorum, patience: patience, known: map[key]*message{}, publishers: map[string]*publisher{}}
}

// add takes the copy of a master, and appends to out the messages to deliver now.
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

// due appends to out the messages that have waited for patience.
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

// forget drops the oldest messages, while they are too old or too many.
func (s *sieve) forget(now instant, out []Message) []Message {
	for m := s.arrived.first(); m != nil && (now-m.since > remembered || len(s.known) >= knownMax); m = s.arrived.first() {
		out = s.deliver(s.arrived.pop(), out)
		delete(s.known, m.key)
		m.by.known--
		m.by.floor = max(m.by.floor, m.order)
	}
	return out
}

// meet adds a new publisher. If there are too many, meet forgets a publisher without a known message.
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

// size is about the memory that the message takes.
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
