package masters

import "sync/atomic"

// A Room bounds the memory of the masters' replies while they are read, over all connections that share the Room. A
// short command of a client may ask each master for many large values. Without a Room (nil) there is no bound.
type Room struct {
	size int64
	used atomic.Int64
}

// NewRoom returns a Room of size bytes.
func NewRoom(size int) *Room { return &Room{size: int64(size)} }

func (r *Room) take(n int64) bool {
	if r == nil {
		return true
	}
	if r.used.Add(n) > r.size {
		r.used.Add(-n)
		return false
	}
	return true
}

func (r *Room) give(n int64) {
	if r != nil && n > 0 {
		r.used.Add(-n)
	}
}

// A hoard is one exchange's part of the room. The first smallReply bytes of each reply need no room. So the answers to
// most commands, and to our own questions, can always be held.
type hoard struct {
	room  *Room
	taken int64 // in this exchange
	kept  int64 // of the reply being read, with its first smallReply bytes
	full  bool  // there was no room for the rest of the reply
}

const (
	smallReply = 16 << 10
	itemSize   = 32 // of an array, beside its text
)

// begin is called before a reply is read.
func (h *hoard) begin() { h.kept, h.full = 0, false }

// keep says whether n more bytes of the reply may be held.
func (h *hoard) keep(n int) bool {
	if h.full {
		return false
	}
	free := max(h.kept, smallReply)
	h.kept += int64(n)
	if more := h.kept - free; more > 0 {
		if !h.room.take(more) {
			h.full = true
			return false
		}
		h.taken += more
	}
	return true
}

// end is called after the exchange.
func (h *hoard) end() {
	h.room.give(h.taken)
	h.taken = 0
}
