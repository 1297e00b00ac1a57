package pubsub

import (
	"math/bits"

	"lockproxy/quorum"
)

// A ticket is an unconfirmed subscription.
type ticket struct {
	subscriber Subscriber
	added      []Topic // the topics to leave again after a failure
	waits      []*topic
	left       int // of waits, how many are not confirmed
	due        instant
	done       func(error) // nil: done was called
}

// judge ends the tickets of the topic if the masters' answers decide whether a quorum confirms the topic. mu is held.
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

// Refused is the error of a subscription that too many masters refuse, for example without a permission. Another try
// does not help.
type Refused struct{ *quorum.NoQuorum }

// Unwrap returns the causes.
func (r *Refused) Unwrap() error { return r.NoQuorum }

// fail ends all tickets of the topic. mu is held.
func (h *Hub) fail(tp *topic, err error) {
	tickets := tp.tickets
	tp.tickets = nil
	for _, t := range tickets {
		h.end(t, err)
	}
}

// confirmed notes the confirmation in all tickets of the topic. mu is held.
func (h *Hub) confirmed(tp *topic) {
	tickets := tp.tickets
	tp.tickets = nil
	for _, t := range tickets {
		if t.left--; t.left == 0 {
			h.end(t, nil)
		}
	}
}

// end calls the ticket's done, once, and takes a failed subscription back. mu is held.
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

// failure says why no quorum confirmed the topic. silence is the cause for masters that have not answered; "" while an
// answer may still come. mu is held.
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
