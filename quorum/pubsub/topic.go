package pubsub

import (
	"cmp"

	"lockproxy/quorum"
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
// bell is delivered, at once, with its master. The payload of a bell is the name of its release, if the release has one.
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

// ring tells subscribers that a bell of the link's master rang, or may have rung. name is the bell's, "" for none. mu is held.
func (t *topic) ring(l *link, name string) {
	for s := range t.subscribers {
		s.Deliver(Message{Topic: t.Topic, Master: l.index, Payload: name})
	}
}

// Receivers returns how many subscriptions a message on a channel of t's kind reaches: those of this proxy's clients,
// and one for each other proxy with subscriptions of its own. counts has each master's answer, -1 for a master that did
// not answer; our own links are among the counts. match says whether masters matched a pattern with the message; nil if
// masters were asked for the channel alone.
func (h *Hub) Receivers(t Topic, match func(pattern string) bool, counts []int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	here := int64(0)
	ours := make([]int64, len(h.links))
	count := func(tp *topic) {
		if tp.Kind == t.Kind || t.Kind == Channel { // to masters a sharded channel is an ordinary channel, and patterns match it
			here += int64(len(tp.subscribers))
		}
		for i, l := range h.links {
			if tp.asked&l.bit() != 0 {
				ours[i]++
			}
		}
	}
	if tp := h.topics[t]; tp != nil {
		count(tp)
	}
	for tp := range h.patterns {
		if match != nil && match(tp.Name) {
			count(tp)
		}
	}
	for tp := range h.leaving {
		if tp.Topic == t || match != nil && tp.Kind == Pattern && match(tp.Name) {
			count(tp) // the topic has no subscribers
		}
	}
	others := int64(0)
	for i, n := range counts {
		others = max(others, n-ours[i])
	}
	return here + others
}

// Topics returns the names of a kind to which this proxy's clients have subscribed.
func (h *Hub) Topics(kind Kind) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for t := range h.topics {
		if t.Kind == kind {
			names = append(names, t.Name)
		}
	}
	return names
}

// MasterChannel returns the channel's name on masters.
func MasterChannel(t Topic) string {
	switch t.Kind {
	case Shard:
		return quorum.ShardPrefix + t.Name
	case Bell:
		return quorum.BellPrefix + t.Name
	}
	return t.Name
}
