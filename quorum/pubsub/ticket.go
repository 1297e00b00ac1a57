package pubsub

import (
	"math/bits"

	"lockproxy/quorum"
)

// A ticket is a subscription that is not confirmed yet.
type ticket struct {
	subscriber Subscriber
	added      []Topic // what is taken back if it fails
	waits      []*topic
	left       int // of waits, how many are not confirmed
	due        instant
	done       func(error) // nil: it was called
}

// judge ends the tickets that wait for the topic if it is decided whether a quorum confirms it. mu is held.
func (h *Hub) judge(tp *topic) {
	if len(tp.tickets) == 0 {
		return
	}
	if bits.OnesCount64(tp.on) >= h.quorum {
		h.confirmed(tp)
		return
	}
	possible := 0
	for _, l := range h.links {
		if l.cause == "" && tp.failed&l.bit() == 0 || l.connecting() {
			possible++
		}
	}
	switch {
	case len(h.links)-bits.OnesCount64(tp.failed) < h.quorum:
		h.fail(tp, &Refused{h.failure(tp, "")})
	case possible < h.quorum:
		h.fail(tp, h.failure(tp, ""))
	}
}

// Refused is the error of a subscription that too many masters refuse, as they do without permission for it. To subscribe
// again does not help.
type Refused struct{ *quorum.NoQuorum }

// Unwrap returns the causes.
func (r *Refused) Unwrap() error { return r.NoQuorum }

// fail ends all tickets that wait for the topic. mu is held.
func (h *Hub) fail(tp *topic, err error) {
	tickets := tp.tickets
	tp.tickets = nil
	for _, t := range tickets {
		h.end(t, err)
	}
}

// confirmed tells those that wait for the topic. mu is held.
func (h *Hub) confirmed(tp *topic) {
	tickets := tp.tickets
	tp.tickets = nil
	for _, t := range tickets {
		if t.left--; t.left == 0 {
			h.end(t, nil)
		}
	}
}

// end calls the ticket's done, once, and takes a failed one back. mu is held.
func (h *Hub) end(t *ticket, err error) {
	if t.done == nil {
		return
	}
	done := t.done
	t.done = nil
	if err != nil {
		h.leave(t.subscriber, t.added)
	}
	done(err)
}

// failure says why no quorum confirmed the topic. silence is the cause of masters that have not answered, "" while they still
// may. mu is held.
func (h *Hub) failure(tp *topic, silence string) *quorum.NoQuorum {
	err := &quorum.NoQuorum{Masters: len(h.links), Answered: len(h.links)}
	for _, l := range h.links {
		cause := silence
		switch {
		case tp.on&l.bit() != 0:
			continue
		case l.cause != "":
			cause = l.cause
		case tp.failed&l.bit() != 0:
			cause = "answered " + tp.refusal
		}
		if cause != "" {
			err.Causes = append(err.Causes, quorum.Cause{Addr: l.source.Addr(), Text: cause})
		}
	}
	err.Answered -= len(err.Causes)
	return err
}
