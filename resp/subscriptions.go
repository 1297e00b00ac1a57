package resp

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"lockproxy/quorum/pubsub"
)

// subscriptions are the topics of one connection. Messages come from the hub, and go into the connection's replies.
type subscriptions struct {
	messages Messages
	memory   *account
	replies  *replies
	identity *identity

	mu     sync.Mutex // guards the fields from here on
	topics map[pubsub.Topic]struct{}
	counts [pubsub.Shard + 1]int // by kind

	total atomic.Int32 // changed with mu held
}

// The size of a subscription in the memory budget, beside its name, and of a message in the output limit, beside its text.
const (
	subscriptionOverhead = 1 << 10
	messageOverhead      = countedFrom
)

// any says whether there is a subscription.
func (s *subscriptions) any() bool { return s.total.Load() > 0 }

// perKind returns the number of subscriptions of each kind.
func (s *subscriptions) perKind() [pubsub.Shard + 1]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// missing returns the topics without a subscription, each once.
func (s *subscriptions) missing(topics []pubsub.Topic) []pubsub.Topic {
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

// add adds topics, and returns the confirmations to the client, which begin with word.
func (s *subscriptions) add(word string, topics []pubsub.Topic) Sequence {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := make(Sequence, 0, len(topics))
	for _, t := range topics {
		if _, has := s.topics[t]; !has {
			if s.topics == nil {
				s.topics = map[pubsub.Topic]struct{}{}
			}
			s.topics[t] = struct{}{}
			s.counts[t.Kind]++
			s.total.Add(1)
		}
		told = append(told, Push{Bulk(word), Bulk(t.Name), Int(s.countOf(t.Kind))})
	}
	return told
}

// remove removes topics of the kind, if subscribed to, and returns the confirmations to the client, which begin with word.
func (s *subscriptions) remove(word string, kind pubsub.Kind, topics []pubsub.Topic) Sequence {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(topics) == 0 {
		return Sequence{Push{Bulk(word), Null{}, Int(s.countOf(kind))}}
	}
	told := make(Sequence, 0, len(topics))
	for _, t := range topics {
		s.forget(t)
		told = append(told, Push{Bulk(word), Bulk(t.Name), Int(s.countOf(t.Kind))})
	}
	return told
}

// forget removes a topic, if subscribed to. mu is held.
func (s *subscriptions) forget(t pubsub.Topic) {
	if _, has := s.topics[t]; has {
		delete(s.topics, t)
		s.counts[t.Kind]--
		s.total.Add(-1)
		s.memory.drop(subscriptionOverhead + len(t.Name))
	}
}

func (s *subscriptions) forgetAll(topics []pubsub.Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range topics {
		s.forget(t)
	}
}

// countOf is Redis's count in confirmations: of channels and patterns together, or of sharded channels. mu is held.
func (s *subscriptions) countOf(kind pubsub.Kind) int {
	if kind == pubsub.Shard {
		return s.counts[kind]
	}
	return s.counts[pubsub.Channel] + s.counts[pubsub.Pattern]
}

// all returns the topics, in no order.
func (s *subscriptions) all() []pubsub.Topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.topics))
}

// names returns the names of the topics of the kind, sorted.
func (s *subscriptions) names(kind pubsub.Kind) []string {
	var found []string
	for _, t := range s.all() {
		if t.Kind == kind {
			found = append(found, t.Name)
		}
	}
	slices.Sort(found)
	return found
}

// end takes all subscriptions back without a word to the client.
func (s *subscriptions) end() {
	if all := s.all(); len(all) > 0 {
		s.forgetAll(all)
		s.messages.Unsubscribe(s, all)
	}
}

// messageReplies are the first words of messages, by kind of topic.
var messageReplies = [...]Bulk{pubsub.Channel: "message", pubsub.Pattern: "pmessage", pubsub.Shard: "smessage"}

// Deliver queues a message for the client. A client that does not read is cut off.
func (s *subscriptions) Deliver(m pubsub.Message) {
	push := Push{messageReplies[m.Topic.Kind], Bulk(m.Channel), Bulk(m.Payload)}
	if m.Topic.Kind == pubsub.Pattern {
		push = slices.Insert(push, 1, Reply(Bulk(m.Topic.Name)))
	}
	sl := newSlot(s.replies)
	sl.out.reply, sl.resp3 = push, s.identity.speaksRESP3()
	if spent := s.replies.deliver(sl, messageOverhead+push.Size()); spent != "" {
		s.replies.kill(spent)
	}
}

var _ pubsub.Subscriber = (*subscriptions)(nil)
