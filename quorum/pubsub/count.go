package pubsub

import "lockproxy/quorum"

// Receivers returns how many subscriptions a message on a channel of that kind meets: those of the clients of this proxy,
// and one for each other proxy that listens for its own. counts are what masters said, -1 where one did not; our own
// links are among them. match tells the patterns that masters matched with it; nil: they were asked for the channel alone.
func (h *Hub) Receivers(t Topic, match func(pattern string) bool, counts []int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	here := int64(0)
	ours := make([]int64, len(h.links))
	count := func(tp *topic) {
		if tp.Kind == t.Kind || t.Kind == Channel { // to masters a sharded channel is one that patterns match
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
			count(tp) // it has no subscribers
		}
	}
	others := int64(0)
	for i, n := range counts {
		others = max(others, n-ours[i])
	}
	return here + others
}

// Topics returns the names of that kind that clients of this proxy have subscribed to.
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

// MasterChannel returns the name that the channel has on masters.
func MasterChannel(t Topic) string {
	switch t.Kind {
	case Shard:
		return quorum.ShardPrefix + t.Name
	case Bell:
		return quorum.BellPrefix + t.Name
	}
	return t.Name
}
