package script

import (
	"slices"
	"time"
)

// Kind is the type of a reply.
type Kind uint8

// The kinds of replies a script can have.
const (
	Nil    Kind = iota
	Int         // Value.Int
	Status      // Value.Text
	Bulk        // Value.Text
	Error       // Value.Text, with its code word and without the leading dash
	Array       // Value.Items

	// Only in the answers of a Meaning; Answer replaces these kinds.
	heldValue        // Bulk: the key's value
	remainingMillis  // Int: the key's TTL as PTTL counts
	remainingSeconds // Int: the key's TTL as TTL counts
)

// A Value is a reply, independent of the protocol. Lua's true has already become 1 and its false Nil, as Redis does for
// RESP2 and RESP3 alike.
type Value struct {
	Kind  Kind
	Int   int64
	Text  string
	Items []Value
}

func (v Value) equal(w Value) bool {
	return v.Kind == w.Kind && v.Int == w.Int && v.Text == w.Text && slices.EqualFunc(v.Items, w.Items, Value.equal)
}

// constant reports whether v says the same whatever the key holds.
func (v Value) constant() bool {
	for _, item := range v.Items {
		if !item.constant() {
			return false
		}
	}
	return v.Kind < heldValue
}

// affirmative reports whether v is a way to say yes.
func (v Value) affirmative() bool {
	switch v.Kind {
	case Int:
		return v.Int == 1
	case Status, Bulk:
		return v.Text == "OK"
	}
	return false
}

// fill replaces the placeholders for the key's value and TTL.
func (v Value) fill(held string, ttl time.Duration) Value {
	switch v.Kind {
	case heldValue:
		return Value{Kind: Bulk, Text: held}
	case remainingMillis:
		return Value{Kind: Int, Int: ttl.Milliseconds()}
	case remainingSeconds:
		// TTL rounds to the nearest second.
		return Value{Kind: Int, Int: (ttl.Milliseconds() + 500) / 1000}
	case Array:
		items := make([]Value, len(v.Items))
		for i, item := range v.Items {
			items[i] = item.fill(held, ttl)
		}
		return Value{Kind: Array, Items: items}
	}
	return v
}
