package resp

import (
	"maps"
	"slices"
	"sync/atomic"

	"lockproxy/quorum/pubsub"
)

// subscriptions are what a session has subscribed to. session.mu guards them, except total.
type subscriptions struct {
	topics map[pubsub.Topic]struct{}
	counts [pubsub.Shard + 1]int // by kind
	total  atomic.Int32
	// latest is the youngest slot in the queue that is a message, confirms or takes back a subscription, or changes the protocol.
	// The next message goes right behind it, before commands that wait for their outcomes.
	latest *slot
	// untold is the youngest slot in the queue that confirms a subscription which the upstream has confirmed.
	untold *slot
}

// What the memory budget counts for a subscription beside its name, and the output limit for a message beside its text.
const (
	subscriptionOverhead = 1 << 10
	messageOverhead      = countedFrom
)

// missing returns those of the topics that the session does not have, each once.
func (s *session) missing(topics []pubsub.Topic) []pubsub.Topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(map[pubsub.Topic]bool, len(topics))
	var found []pubsub.Topic
	for _, t := range topics {
		if _, has := s.topics[t]; !has && !seen[t] {
			seen[t] = true
			found = append(found, t)
		}
	}
	return found
}

// remember adds a topic and returns the count that the client is told. s.mu is held.
func (s *session) remember(t pubsub.Topic) int {
	if _, has := s.topics[t]; !has {
		if s.topics == nil {
			s.topics = map[pubsub.Topic]struct{}{}
		}
		s.topics[t] = struct{}{}
		s.counts[t.Kind]++
		s.total.Add(1)
	}
	return s.countOf(t.Kind)
}

// forget removes a topic, if the session has it, and returns the count that the client is told. s.mu is held.
func (s *session) forget(t pubsub.Topic) int {
	if _, has := s.topics[t]; has {
		delete(s.topics, t)
		s.counts[t.Kind]--
		s.total.Add(-1)
		s.memory.drop(subscriptionOverhead + len(t.Name))
	}
	return s.countOf(t.Kind)
}

func (s *session) forgetAll(topics []pubsub.Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range topics {
		s.forget(t)
	}
}

// countOf is what Redis counts together: channels and patterns, or sharded channels.
func (s *session) countOf(kind pubsub.Kind) int {
	if kind == pubsub.Shard {
		return s.counts[kind]
	}
	return s.counts[pubsub.Channel] + s.counts[pubsub.Pattern]
}

// names returns the session's topics of the kind, sorted.
func (s *session) names(kind pubsub.Kind) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for t := range s.topics {
		if t.Kind == kind {
			all = append(all, t.Name)
		}
	}
	slices.Sort(all)
	return all
}

// unsubscribeAll takes all subscriptions back without a word to the client.
func (s *session) unsubscribeAll() {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.topics))
	s.mu.Unlock()
	s.forgetAll(all)
	if len(all) > 0 {
		s.server.messages.Unsubscribe(s, all)
	}
}

// messageReplies are the first words of messages, by kind of topic.
var messageReplies = [...]Bulk{pubsub.Channel: "message", pubsub.Pattern: "pmessage", pubsub.Shard: "smessage"}

// Deliver queues a message for the client. A client that does not read is cut off.
func (s *session) Deliver(m pubsub.Message) {
	push := Push{messageReplies[m.Topic.Kind], Bulk(m.Channel), Bulk(m.Payload)}
	if m.Topic.Kind == pubsub.Pattern {
		push = slices.Insert(push, 1, Reply(Bulk(m.Topic.Name)))
	}
	sl := newSlot(s)
	sl.out.reply = push
	s.mu.Lock()
	if s.closing.Load() {
		s.mu.Unlock()
		sl.recycle()
		return
	}
	sl.resp3 = s.resp3
	s.insert(sl)
	spent := s.countOutput(sl, messageOverhead+push.Size())
	if s.head.left == 0 {
		s.ready.Signal()
	}
	s.mu.Unlock()
	if spent != "" {
		s.kill(spent)
	}
}

// insert puts a message into the queue. s.mu is held.
func (s *session) insert(sl *slot) {
	s.weigh(sl.memory)
	after := s.latest
	if after == nil {
		after = s.relayedBy // a part of its replies is written
	}
	if after == nil {
		sl.next, s.head = s.head, sl
	} else {
		sl.next, after.next = after.next, sl
	}
	if sl.next == nil {
		s.tail = sl
	}
	s.latest = sl
}

var _ pubsub.Subscriber = (*session)(nil)
