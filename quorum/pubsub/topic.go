package pubsub

import (
	"cmp"

	"lockproxy/quorum/masters"
)

// A Topic is a name to which clients subscribe.
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
	Bell // the name is a key: masters ring when the key is deleted, or is to expire sooner; links ring when a bell may have been missed
)

// A Message is a message to a subscriber of Topic. Channel is the topic's name, except for a pattern. Every copy of a
// bell is delivered, at once, and names only its master.
type Message struct {
	Topic   Topic
	Channel string
	Payload string
	Master  int // of a bell
}

// A Subscriber takes messages. Subscribers are compared with ==.
type Subscriber interface {
	// Deliver is called with the hub's mu held. Deliver must not block, and must not call the hub.
	Deliver(m Message)
}

// A topic is a Topic with subscribers.
type topic struct {
	Topic
	asked       uint64 // links on which the topic may be subscribed
	later       uint64 // links that are to subscribe later
	on          uint64 // links that confirmed the topic
	failed      uint64 // links that refused the topic
	refusal     string // the error of a master that refused
	subscribers map[Subscriber]struct{}
	tickets     []*ticket // tickets that wait for the topic
}

// command returns the command for the topic's kind, and the topic's name on masters.
func (t *topic) command(channel, pattern masters.Command) (masters.Command, string) {
	if t.Kind == Pattern {
		return pattern, t.Name
	}
	return channel, MasterChannel(t.Topic)
}

// ring tells subscribers that a bell of the link's master rang, or may have rung. mu is held.
func (t *topic) ring(l *link) {
	for s := range t.subscribers {
		s.Deliver(Message{Topic: t.Topic, Master: l.index})
	}
}
