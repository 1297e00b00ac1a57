package pubsub

import "lockproxy/quorum"

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
