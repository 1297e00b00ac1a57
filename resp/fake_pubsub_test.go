package resp

import (
	"strings"
	"sync"

	"lockproxy/quorum"
	"lockproxy/quorum/pubsub"
	"lockproxy/resp/wire"
)

// fakeMessages is the pub/sub of one Redis.
type fakeMessages struct {
	mu      sync.Mutex
	topics  map[pubsub.Topic]map[pubsub.Subscriber]bool
	failed  error         // of every subscription
	parked  []func(error) // subscriptions that wait, while parking
	parking bool
}

func (f *fakeMessages) Subscribe(s pubsub.Subscriber, topics []pubsub.Topic, done func(error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		done(f.failed)
		return
	}
	for _, t := range topics {
		if f.topics[t] == nil {
			f.topics[t] = map[pubsub.Subscriber]bool{}
		}
		f.topics[t][s] = true
	}
	if f.parking {
		f.parked = append(f.parked, done)
		return
	}
	done(nil)
}

func (f *fakeMessages) Confirmed(pubsub.Topic) uint64 { return ^uint64(0) }

func (f *fakeMessages) Unsubscribe(s pubsub.Subscriber, topics []pubsub.Topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range topics {
		delete(f.topics[t], s)
		if len(f.topics[t]) == 0 {
			delete(f.topics, t)
		}
	}
}

func (f *fakeMessages) Receivers(t pubsub.Topic, match func(string) bool, counts []int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.topics[t])
	for p, s := range f.topics {
		if match != nil && p.Kind == pubsub.Pattern && match(p.Name) {
			n += len(s)
		}
	}
	return int64(n)
}

func (f *fakeMessages) Topics(kind pubsub.Kind) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for t := range f.topics {
		if t.Kind == kind {
			names = append(names, t.Name)
		}
	}
	return names
}

// park makes subscriptions wait for unpark.
func (f *fakeMessages) park() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parking = true
}

func (f *fakeMessages) unpark(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, done := range f.parked {
		done(err)
	}
	f.parked, f.parking = nil, false
}

func (f *fakeMessages) publish(channel, message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind := pubsub.Channel
	if shard, sharded := strings.CutPrefix(channel, quorum.ShardPrefix); sharded {
		kind, channel = pubsub.Shard, shard
	}
	deliver := func(t pubsub.Topic) {
		for s := range f.topics[t] {
			s.Deliver(pubsub.Message{Topic: t, Channel: channel, Payload: message})
		}
	}
	deliver(pubsub.Topic{Kind: kind, Name: channel})
	for t := range f.topics {
		if kind == pubsub.Channel && t.Kind == pubsub.Pattern && wire.Match(t.Name, channel) {
			deliver(t)
		}
	}
}

func (e *fakeEngine) Publish(channel, message string, done func(quorum.Published)) {
	e.do("publish "+channel, func(map[quorum.Key]fakeEntry) func() {
		p := quorum.Published{Err: e.err, Receivers: []int64{0, 0, -1}}
		if p.Err == nil {
			e.publish(channel, message)
		}
		return func() { done(p) }
	})
}

func (e *fakeEngine) KillScripts(done func(error)) {
	e.do("kill scripts", func(map[quorum.Key]fakeEntry) func() { return func() { done(e.err) } })
}

func (e *fakeEngine) Poll(question []any, done func(quorum.Polled)) {
	e.do("poll", func(map[quorum.Key]fakeEntry) func() {
		return func() { done(quorum.Polled{Err: e.err, Replies: make([]any, 3)}) }
	})
}

func pubsubMessage(channel, payload string) pubsub.Message {
	return pubsub.Message{Topic: pubsub.Topic{Kind: pubsub.Channel, Name: channel}, Channel: channel, Payload: payload}
}

// ring rings the bells of all masters.
func (f *fakeMessages) ring(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := pubsub.Topic{Kind: pubsub.Bell, Name: key}
	for s := range f.topics[t] {
		for m := range 3 {
			s.Deliver(pubsub.Message{Topic: t, Master: m})
		}
	}
}
