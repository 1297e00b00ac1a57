package pubsub

import (
	"cmp"

	"lockproxy/quorum/masters"
)

// A Topic is what can be subscribed to.
type Topic struct {
	Kind Kind
	Name string
}

// compare orders topics.
func (t Topic) compare(other Topic) int {
	return cmp.Or(cmp.Compare(t.Kind, other.Kind), cmp.Compare(t.Name, other.Name))
}

// A Kind tells channels from patterns and from sharded channels, which have names of their own.
type Kind uint8

// The kinds of topics.
const (
	Channel Kind = iota
	Pattern
	Shard
	Bell // the name is a key: masters ring when it is deleted, or is to expire sooner, and links that may have missed that
)

// A Message is what a subscriber of Topic gets. Channel is the topic's name, except of a pattern. Of a bell every copy is
// delivered, at once, and says only from which master it is.
type Message struct {
	Topic   Topic
	Channel string
	Payload string
	Master  int // of a bell
}

// A Subscriber takes messages. It is compared with ==.
type Subscriber interface {
	// Deliver is called with the hub's mu held: it must not block, and not call the hub.
	Deliver(m Message)
}

// A topic is one that somebody subscribed to.
type topic struct {
	Topic
	asked       uint64 // the links on which it may be subscribed
	later       uint64 // the links that are to ask for it later
	on          uint64 // the links that confirmed it
	failed      uint64 // the links that refused it
	refusal     string // what one of them said
	subscribers map[Subscriber]struct{}
	tickets     []*ticket // that wait for it
}

// command returns what asks masters for the topic, and the name that it has there.
func (t *topic) command(channel, pattern masters.Command) (masters.Command, string) {
	if t.Kind == Pattern {
		return pattern, t.Name
	}
	return channel, MasterChannel(t.Topic)
}

// ring tells subscribers that a bell of the link's master rang, or may have. mu is held.
func (t *topic) ring(l *link) {
	for s := range t.subscribers {
		s.Deliver(Message{Topic: t.Topic, Master: l.index})
	}
}
