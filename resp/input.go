package resp

import "sync/atomic"

// An input has the bytes from a client that the parser has not consumed. The input grows as bytes arrive, never by an announced length, and
// shrinks back when empty, so that an idle connection costs little.
type input struct {
	buf    []byte
	r, w   int // buf[r:w] is unconsumed
	memory *account
	// counted is the part of the client's memory for its input; other goroutines read the number.
	counted atomic.Int64
}

const (
	inputSize = 4 << 10 // of an idle connection
	inputKeep = 8 << 10 // larger buffers are given back when empty
)

// bytes returns the unconsumed bytes, valid until room or consume is called.
func (in *input) bytes() []byte { return in.buf[in.r:in.w] }

// len returns the number of unconsumed bytes.
func (in *input) len() int { return in.w - in.r }

// consume drops the first n bytes.
func (in *input) consume(n int) {
	in.r += n
	if in.r == in.w {
		in.r, in.w = 0, 0
		if len(in.buf) > inputKeep {
			in.release()
		}
	}
}

// room returns space to read into, and false if the memory budget is spent.
func (in *input) room() ([]byte, bool) {
	switch {
	case in.buf == nil:
		in.buf = make([]byte, inputSize)
	case in.w < len(in.buf):
	case in.r >= len(in.buf)/2:
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	default:
		size := 2 * len(in.buf)
		if !in.memory.take(size) {
			return nil, false
		}
		bigger := make([]byte, size)
		n := copy(bigger, in.bytes())
		in.release()
		in.buf, in.r, in.w = bigger, 0, n
		in.counted.Add(int64(size))
	}
	return in.buf[in.w:], true
}

// filled says that n bytes of room were read into.
func (in *input) filled(n int) { in.w += n }

// release gives the buffer back.
func (in *input) release() {
	if len(in.buf) > inputSize {
		in.memory.give(len(in.buf))
		in.counted.Add(-int64(len(in.buf)))
	}
	in.buf, in.r, in.w = nil, 0, 0
}
