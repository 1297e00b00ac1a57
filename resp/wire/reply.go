package wire

import (
	"strconv"
	"strings"

	"github.com/tidwall/redcon"
)

// A Reply is a handler's answer. Each Reply knows its own bytes:
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
	// AppendTo appends the reply in the client's protocol.
	AppendTo(b []byte, resp3 bool) []byte
	// Size is about the memory held by the reply.
	Size() int
}

type (
	// Status is a short text such as OK.
	Status string
	// Error is an error with a code word. Line ends in the text become spaces.
	Error string
	// Int is an integer.
	Int int64
	// Bulk is a string of any bytes.
	Bulk string
	// Verbatim is a text for people, behind three letters for the format, for example txt.
	Verbatim string
	// Double is a number as C's %.17g writes it.
	Double string
	// BigNumber is an integer of any size, in decimal digits.
	BigNumber string
	// Bool is a truth value.
	Bool bool
	// Null is no value.
	Null struct{}
	// NullArray is Null in place of an array; RESP2 has a Null of its own for arrays.
	NullArray struct{}
	// Array is a sequence.
	Array []Reply
	// Set is a sequence without order.
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

// OK is the reply of most commands with nothing to tell.
var OK Reply = Status("OK")

func (r Status) AppendTo(b []byte, _ bool) []byte { return redcon.AppendString(b, string(r)) }
func (r Error) AppendTo(b []byte, _ bool) []byte  { return redcon.AppendError(b, string(r)) }
func (r Int) AppendTo(b []byte, _ bool) []byte    { return redcon.AppendInt(b, int64(r)) }
func (r Bulk) AppendTo(b []byte, _ bool) []byte   { return redcon.AppendBulkString(b, string(r)) }

func (r Verbatim) AppendTo(b []byte, resp3 bool) []byte {
	format, text := string(r[:3]), string(r[3:])
	if !resp3 {
		return redcon.AppendBulkString(b, text)
	}
	b = AppendHeader(b, '=', len(r)+len(":"))
	b = append(append(b, format...), ':')
	return append(append(b, text...), '\r', '\n')
}

func (r Double) AppendTo(b []byte, resp3 bool) []byte { return appendNumber(b, ',', string(r), resp3) }

func (r BigNumber) AppendTo(b []byte, resp3 bool) []byte {
	return appendNumber(b, '(', string(r), resp3)
}

func appendNumber(b []byte, kind byte, digits string, resp3 bool) []byte {
	digits = strings.NewReplacer("\r", " ", "\n", " ").Replace(digits)
	if !resp3 {
		return redcon.AppendBulkString(b, digits)
	}
	return append(append(append(b, kind), digits...), '\r', '\n')
}

func (r Bool) AppendTo(b []byte, resp3 bool) []byte {
	switch {
	case resp3 && bool(r):
		return append(b, "#t\r\n"...)
	case resp3:
		return append(b, "#f\r\n"...)
	case bool(r):
		return redcon.AppendInt(b, 1)
	}
	return redcon.AppendInt(b, 0)
}

func (Null) AppendTo(b []byte, resp3 bool) []byte {
	if resp3 {
		return append(b, '_', '\r', '\n')
	}
	return redcon.AppendNull(b)
}

func (NullArray) AppendTo(b []byte, resp3 bool) []byte {
	if resp3 {
		return Null{}.AppendTo(b, resp3)
	}
	return redcon.AppendArray(b, -1)
}

func (r Array) AppendTo(b []byte, resp3 bool) []byte {
	return appendAll(redcon.AppendArray(b, len(r)), r, resp3)
}

func (r Set) AppendTo(b []byte, resp3 bool) []byte  { return appendList(b, '~', len(r), r, resp3) }
func (r Map) AppendTo(b []byte, resp3 bool) []byte  { return appendList(b, '%', len(r)/2, r, resp3) }
func (r Push) AppendTo(b []byte, resp3 bool) []byte { return appendList(b, '>', len(r), r, resp3) }

// appendList appends a list with a header of kind and n in RESP3, and an Array in RESP2.
func appendList(b []byte, kind byte, n int, items []Reply, resp3 bool) []byte {
	if !resp3 {
		return Array(items).AppendTo(b, resp3)
	}
	return appendAll(AppendHeader(b, kind, n), items, resp3)
}

func (r Raw) AppendTo(b []byte, _ bool) []byte { return append(b, r...) }

func (r Sequence) AppendTo(b []byte, resp3 bool) []byte { return appendAll(b, r, resp3) }

func appendAll(b []byte, items []Reply, resp3 bool) []byte {
	for _, r := range items {
		b = r.AppendTo(b, resp3)
	}
	return b
}

func (r Status) Size() int    { return len(r) }
func (r Error) Size() int     { return len(r) }
func (Int) Size() int         { return 0 }
func (r Bulk) Size() int      { return len(r) }
func (r Verbatim) Size() int  { return len(r) }
func (r Double) Size() int    { return len(r) }
func (r BigNumber) Size() int { return len(r) }
func (Bool) Size() int        { return 0 }
func (Null) Size() int        { return 0 }
func (NullArray) Size() int   { return 0 }
func (r Array) Size() int     { return sizeOf(r) }
func (r Set) Size() int       { return sizeOf(r) }
func (r Map) Size() int       { return sizeOf(r) }
func (r Push) Size() int      { return sizeOf(r) }
func (r Sequence) Size() int  { return sizeOf(r) }
func (r Raw) Size() int       { return len(r) }

func sizeOf(items []Reply) int {
	n := 0
	for _, r := range items {
		n += 16 + r.Size()
	}
	return n
}

// AppendCommand appends a request to b.
func AppendCommand(b []byte, args ...string) []byte {
	b = AppendHeader(b, '*', len(args))
	for _, arg := range args {
		b = AppendHeader(b, '$', len(arg))
		b = append(b, arg...)
		b = append(b, '\r', '\n')
	}
	return b
}

// AppendHeader appends the line with the number of the arguments (*) or bytes ($) that follow.
func AppendHeader(b []byte, kind byte, n int) []byte {
	b = strconv.AppendInt(append(b, kind), int64(n), 10)
	return append(b, '\r', '\n')
}
