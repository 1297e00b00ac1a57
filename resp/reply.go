package resp

import (
	"strings"

	"github.com/tidwall/redcon"

	"lockproxy/resp/upstream"
)

// A Reply is what a handler answers. Each knows how it looks on the wire:
//
//	Reply      RESP2             RESP3
//	Status     +…                +…
//	Error      -…                -…
//	Int        :n                :n
//	Bulk       $n …              $n …
//	Verbatim   $n …              =n txt:…
//	Double     $n …              ,…
//	BigNumber  $n …              (…
//	Bool       :1 or :0          #t or #f
//	Null       $-1               _
//	NullArray  *-1               _
//	Array      *n …              *n …
//	Set        *n …              ~n …
//	Map        *2n …             %n …
//	Push       *n …              >n …
//	Raw        its bytes
//	Sequence   its items, one after the other
type Reply interface {
	// appendTo appends the reply in the client's protocol.
	appendTo(b []byte, resp3 bool) []byte
	// size is about how much memory the reply holds on to.
	size() int
}

type (
	// Status is a short text such as OK.
	Status string
	// Error is an error with its code word. Line ends in it become spaces.
	Error string
	// Int is an integer.
	Int int64
	// Bulk is a string of any bytes.
	Bulk string
	// Verbatim is a text meant to be read by people, behind three letters that name its format, such as txt.
	Verbatim string
	// Double is a number as C's %.17g writes it.
	Double string
	// BigNumber is an integer of any size, in decimal digits.
	BigNumber string
	// Bool is a truth value.
	Bool bool
	// Null says that there is nothing.
	Null struct{}
	// NullArray is Null where Redis 2 would have answered an array.
	NullArray struct{}
	// Array is a sequence.
	Array []Reply
	// Set is a sequence in which order means nothing.
	Set []Reply
	// Map holds keys and values in turn.
	Map []Reply
	// Push is a message that answers no command.
	Push []Reply
	// Sequence is several replies to one command.
	Sequence []Reply
	// Raw is a reply in the client's protocol, as the upstream gave it.
	Raw []byte
)

var okReply Reply = Status("OK")

func (r Status) appendTo(b []byte, _ bool) []byte { return redcon.AppendString(b, string(r)) }
func (r Error) appendTo(b []byte, _ bool) []byte  { return redcon.AppendError(b, string(r)) }
func (r Int) appendTo(b []byte, _ bool) []byte    { return redcon.AppendInt(b, int64(r)) }
func (r Bulk) appendTo(b []byte, _ bool) []byte   { return redcon.AppendBulkString(b, string(r)) }

func (r Verbatim) appendTo(b []byte, resp3 bool) []byte {
	format, text := string(r[:3]), string(r[3:])
	if !resp3 {
		return redcon.AppendBulkString(b, text)
	}
	b = upstream.AppendHeader(b, '=', len(r)+len(":"))
	b = append(append(b, format...), ':')
	return append(append(b, text...), '\r', '\n')
}

func (r Double) appendTo(b []byte, resp3 bool) []byte { return appendNumber(b, ',', string(r), resp3) }

func (r BigNumber) appendTo(b []byte, resp3 bool) []byte {
	return appendNumber(b, '(', string(r), resp3)
}

func appendNumber(b []byte, kind byte, digits string, resp3 bool) []byte {
	digits = strings.NewReplacer("\r", " ", "\n", " ").Replace(digits)
	if !resp3 {
		return redcon.AppendBulkString(b, digits)
	}
	return append(append(append(b, kind), digits...), '\r', '\n')
}

func (r Bool) appendTo(b []byte, resp3 bool) []byte {
	switch {
	case !resp3:
		return Int(count(bool(r))).appendTo(b, resp3)
	case bool(r):
		return append(b, "#t\r\n"...)
	}
	return append(b, "#f\r\n"...)
}

func (Null) appendTo(b []byte, resp3 bool) []byte {
	if resp3 {
		return append(b, '_', '\r', '\n')
	}
	return redcon.AppendNull(b)
}

func (NullArray) appendTo(b []byte, resp3 bool) []byte {
	if resp3 {
		return Null{}.appendTo(b, resp3)
	}
	return redcon.AppendArray(b, -1)
}

func (r Array) appendTo(b []byte, resp3 bool) []byte {
	return appendAll(redcon.AppendArray(b, len(r)), r, resp3)
}

func (r Set) appendTo(b []byte, resp3 bool) []byte  { return appendList(b, '~', len(r), r, resp3) }
func (r Map) appendTo(b []byte, resp3 bool) []byte  { return appendList(b, '%', len(r)/2, r, resp3) }
func (r Push) appendTo(b []byte, resp3 bool) []byte { return appendList(b, '>', len(r), r, resp3) }

// appendList appends what is a list of this kind, and that long, in RESP3 only.
func appendList(b []byte, kind byte, n int, items []Reply, resp3 bool) []byte {
	if !resp3 {
		return Array(items).appendTo(b, resp3)
	}
	return appendAll(upstream.AppendHeader(b, kind, n), items, resp3)
}

func (r Raw) appendTo(b []byte, _ bool) []byte { return append(b, r...) }

func (r Sequence) appendTo(b []byte, resp3 bool) []byte { return appendAll(b, r, resp3) }

func appendAll(b []byte, items []Reply, resp3 bool) []byte {
	for _, r := range items {
		b = r.appendTo(b, resp3)
	}
	return b
}

func (r Status) size() int    { return len(r) }
func (r Error) size() int     { return len(r) }
func (Int) size() int         { return 0 }
func (r Bulk) size() int      { return len(r) }
func (r Verbatim) size() int  { return len(r) }
func (r Double) size() int    { return len(r) }
func (r BigNumber) size() int { return len(r) }
func (Bool) size() int        { return 0 }
func (Null) size() int        { return 0 }
func (NullArray) size() int   { return 0 }
func (r Array) size() int     { return sizeOf(r) }
func (r Set) size() int       { return sizeOf(r) }
func (r Map) size() int       { return sizeOf(r) }
func (r Push) size() int      { return sizeOf(r) }
func (r Sequence) size() int  { return sizeOf(r) }
func (r Raw) size() int       { return len(r) }

func sizeOf(items []Reply) int {
	n := 0
	for _, r := range items {
		n += 16 + r.size()
	}
	return n
}

// Two replies are never written.
type (
	laterReply struct{ Null } // the slot that the handler claimed gets the reply
	waitReply  struct{ Null } // the handler must be called again when an earlier command is done
)

var (
	later Reply = laterReply{}
	wait  Reply = waitReply{}
)
