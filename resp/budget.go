package resp

import "sync/atomic"

// A budget bounds the memory that all clients together can make the server hold. Amounts too small to matter are not
// counted, so that the common command touches no shared counter.
type budget struct {
	max  int64
	used atomic.Int64
}

// countedFrom is the smallest amount a budget counts: twice what a lock command usually takes. How many smaller ones
// there can be is bounded by Limits.Pipeline.
const countedFrom = 256

// take reserves n bytes, or nothing and says so.
func (b *budget) take(n int) bool { return n < countedFrom || b.add(n) }

// give returns what one take reserved.
func (b *budget) give(n int) {
	if n >= countedFrom {
		b.sub(n)
	}
}

// add is take for what adds up: it counts the smallest amounts, too.
func (b *budget) add(n int) bool {
	if b.used.Add(int64(n)) > b.max {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

// sub returns what any number of adds reserved.
func (b *budget) sub(n int) { b.used.Add(-int64(n)) }
