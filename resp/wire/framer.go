package wire

import (
	"bytes"
	"errors"
	"math"
	"strings"
)

// ErrFraming says that a server's bytes are no RESP.
var ErrFraming = errors.New("what it sent is no RESP")

// A Framer finds where replies end, in bytes that arrive in any pieces. A Framer keeps no bytes: a reply of any size passes
// by. A Framer needs no stack either: a reply ends when as many values have come as all headers announced. A message within a
// reply does not count as a value. Before Redis 7.2, a client that publishes in a transaction to a channel of its own gets the
// message amid the reply of EXEC.
type Framer struct {
	left   int64 // values still to come of the frame under way; 0: between frames
	inside bool  // the first header of the frame under way has come
	skip   int64 // bytes still to come of a string, with the line end
	kind   byte  // of the line under way; 0: none
	number int64 // of the line under way, as far as read
	minus  bool  // the number has a minus sign
	begun  bool  // some of the number was read
}

// countMax is the largest number of bytes or values that a header may announce.
const countMax = 1 << 40

// Between says whether no frame is under way.
func (f *Framer) Between() bool { return f.left == 0 }

// Next returns how many bytes of b belong to the frame under way, or else to a new frame, and whether the frame ends there.
func (f *Framer) Next(b []byte) (n int, ends bool, err error) {
	if f.left == 0 {
		f.left, f.inside = 1, false
	}
	for {
		switch {
		case f.skip > 0:
			k := int(min(f.skip, int64(len(b)-n)))
			n += k
			if f.skip -= int64(k); f.skip > 0 {
				return n, false, nil
			}
			f.left--
		case n == len(b):
			return n, false, nil
		case f.kind == 0:
			if strings.IndexByte("+-:_#,($=!*~>%|", b[n]) < 0 {
				return n, false, ErrFraming
			}
			f.kind, f.number, f.minus, f.begun = b[n], 0, false, false
			n++
			continue
		default:
			k, ended, ok := f.line(b[n:])
			n += k
			if !ok {
				return n, false, ErrFraming
			}
			if !ended {
				return n, false, nil
			}
		}
		if f.left == 0 {
			return n, true, nil
		}
	}
}

// line reads on in a line, and counts the line when complete.
func (f *Framer) line(b []byte) (n int, ended, ok bool) {
	end := bytes.IndexByte(b, '\n')
	n = end + 1
	if end < 0 {
		n, end = len(b), len(b)
	} else {
		ended = true
	}
	perValue := int64(1) // values that come for each item in the line's count
	switch f.kind {
	case '+', '-', ':', '_', '#', ',', '(':
		if ended {
			f.kind = 0
			f.left--
		}
		return n, ended, true
	case '%', '|':
		perValue = 2
	}
	if !f.digits(b[:end]) {
		return n, false, false
	}
	if !ended {
		return n, false, true
	}
	kind, inside := f.kind, f.inside
	f.kind, f.inside = 0, true
	switch {
	case f.minus: // null
		f.left--
	case kind == '$' || kind == '=' || kind == '!':
		f.skip = f.number + 2
	case kind == '|', kind == '>' && inside: // attributes precede a value, and are not counted as the value; for messages see Framer
		f.left += f.number * perValue
	default:
		f.left += f.number*perValue - 1
	}
	return n, true, f.left < math.MaxInt64/4
}

// digits reads on in the number of a line.
func (f *Framer) digits(b []byte) bool {
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9' && f.number <= countMax:
			f.number = f.number*10 + int64(c-'0')
			f.begun = true
		case c == '-' && !f.begun:
			f.minus, f.begun = true, true
		case c != '\r':
			return false
		}
	}
	return f.number <= countMax
}

// firstWordMax is as far as FirstWord looks: further than the first word of any message.
const firstWordMax = 64

// FirstWord returns the first element of an array or push at the beginning of b, or nil if the element is no string. more
// says that b is too short to tell.
func FirstWord(b []byte) (word []byte, more bool) {
	short := len(b) < firstWordMax
	_, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(rest) == 0 {
		return nil, short
	}
	if rest[0] != '$' {
		return nil, false
	}
	_, rest, ok = bytes.Cut(rest, []byte("\r\n"))
	if !ok {
		return nil, short
	}
	if word, _, ok = bytes.Cut(rest, []byte("\r\n")); !ok {
		return nil, short
	}
	return word, false
}
