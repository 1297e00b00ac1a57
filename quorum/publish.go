package quorum

// Published is the outcome of a Publish.
type Published struct {
	Err error // *NoQuorum, ErrClosed; the message may be delivered all the same
	// Receivers is, by master, how many subscriptions of connections to it the message met; -1 where that is not known.
	Receivers []int64
}

// Publish sends a message to the channel on every master. It is published when a quorum has it. Messages on one channel
// reach each master in the order of the calls.
func (e *Engine) Publish(channel, message string, done func(Published)) {
	e.poll(Key{Name: channel}, []any{"PUBLISH", channel, seal(e.labels.next(), 0, message)}, func(p Polled) {
		counts := make([]int64, len(p.Replies))
		for i, reply := range p.Replies {
			n, ok := reply.(int64)
			if !ok {
				n = -1
			}
			counts[i] = n
		}
		done(Published{p.Err, counts})
	})
}
