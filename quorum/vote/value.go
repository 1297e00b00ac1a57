package vote

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// A Value is the reply of a script, in no particular protocol. The items of a list stay encoded: as values the items would take
// up to 40 times the memory, of each master's reply.
type Value struct {
	Kind  ValueKind
	Int   int64  // of an Array, a Set or a Map, the number of items; the keys and values of a Map are items in turn
	Text  string // of an Error with its code word; of a Double as C's %.17g; of a Verbatim after its three-letter format
	items string
}

// integers returns an Array.
func integers(all ...int64) Value {
	var items strings.Builder
	for _, n := range all {
		fmt.Fprintf(&items, ":%d;", n)
	}
	return Value{Kind: ArrayValue, Int: int64(len(all)), items: items.String()}
}

// Parts returns the items of a list, each followed by its own items if the item is a list, too.
func (v Value) Parts() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for rest := v.items; rest != ""; {
			var part Value
			part, rest, _ = cutHead(rest) // ParseValue has checked the part
			if !yield(part) {
				return
			}
		}
	}
}

// size returns how many items a value has.
func (v Value) size() int {
	switch v.Kind {
	case ArrayValue, SetValue, MapValue:
		return int(v.Int)
	}
	return 0
}

// A ValueKind is the type of a Value.
type ValueKind uint8

// The kinds of values. The kinds from True on are only in the replies of scripts that ask for these kinds, with
// redis.setresp(3) or by name.
const (
	NilValue ValueKind = iota
	IntValue
	BulkValue
	StatusValue
	ErrorValue
	ArrayValue
	TrueValue
	FalseValue
	DoubleValue
	BigNumberValue
	VerbatimValue
	MapValue
	SetValue
)

// The encoding of values, by which the wrapper sends them. Texts are preceded by their length, so that a text may have
// any bytes:
//
//	:1;   $2:OK   +2:OK   -5:ERR x   _   *2;…   t   f   ,1.5;   (2:12   =5:txtab   %1;…   ~1;…
//
// and at the outermost an error that was raised, with the line, 0 if unknown, and the guard's reason for
// stopping the script:
//
//	!1;5:ERR x   ?3:why
const (
	raisedValue  = '!'
	stoppedValue = '?'
)

var errEncoding = errors.New("the wrapper's reply is not as the wrapper encodes it")

var textKinds = map[byte]ValueKind{'$': BulkValue, '+': StatusValue, '-': ErrorValue, '(': BigNumberValue, '=': VerbatimValue}

var listKinds = map[byte]ValueKind{'*': ArrayValue, '%': MapValue, '~': SetValue}

// decodeValue reads an encoded reply of s.
func decodeValue(text string, s *Source) (Value, error) {
	var v Value
	var err error
	rest := ""
	switch {
	case text == "":
		return v, errEncoding
	case text[0] == raisedValue:
		line, after, _ := strings.Cut(text[1:], ";")
		v.Kind = ErrorValue
		v.Text, rest, err = cutText(after)
		v.Text = s.raised(cString(v.Text), line)
	case text[0] == stoppedValue:
		v.Kind = ErrorValue
		v.Text, rest, err = cutText(text[1:])
		v.Text = fmt.Sprintf("ERR script %s cannot be run by quorum: %s", s.SHA, v.Text)
	default:
		return ParseValue(text)
	}
	if err == nil && rest != "" {
		err = errEncoding
	}
	return v, err
}

// ParseValue reads an encoded value.
func ParseValue(text string) (Value, error) {
	v, rest, err := cutHead(text)
	v.items = rest
	for due := v.size(); err == nil && due > 0; due-- {
		var part Value
		part, rest, err = cutHead(rest)
		if due += part.size(); due > len(rest)+1 { // each takes a byte at least
			err = errEncoding
		}
	}
	if err != nil || rest != "" {
		return Value{}, errEncoding
	}
	return v, nil
}

// cutHead reads the value at the beginning of text, of a list without its items, and returns the rest of text.
func cutHead(text string) (v Value, rest string, err error) {
	if text == "" {
		return v, "", errEncoding
	}
	sign, text := text[0], text[1:]
	if kind, ok := textKinds[sign]; ok {
		v.Kind = kind
		v.Text, rest, err = cutText(text)
		if kind == StatusValue || kind == ErrorValue {
			v.Text = cString(v.Text)
		}
		return v, rest, err
	}
	switch sign {
	case '_':
		return v, text, nil
	case 't':
		return Value{Kind: TrueValue}, text, nil
	case 'f':
		return Value{Kind: FalseValue}, text, nil
	}
	number, rest, ok := strings.Cut(text, ";")
	kind := listKinds[sign]
	switch {
	case !ok:
		return v, "", errEncoding
	case sign == ':':
		return Value{Kind: IntValue, Int: parseInteger(number)}, rest, nil
	case sign == ',':
		return Value{Kind: DoubleValue, Text: number}, rest, nil
	case kind == NilValue:
		return v, "", errEncoding
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > len(rest) {
		return v, "", errEncoding
	}
	if kind == MapValue {
		n *= 2
	}
	return Value{Kind: kind, Int: int64(n)}, rest, nil
}

// parseInteger reads a number of Lua's as Redis replies with it: by C's conversion on the machines that Redis runs on.
func parseInteger(number string) int64 {
	x, err := strconv.ParseFloat(number, 64)
	if err == nil && x >= -(1<<63) && x < 1<<63 {
		return int64(x)
	}
	return math.MinInt64
}

// cString is text as C sees it: to Redis a status or an error ends before the first zero byte.
func cString(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	return text
}

// cutText reads a text with its length before it, and returns the rest.
func cutText(text string) (s, rest string, err error) {
	digits, text, ok := strings.Cut(text, ":")
	n, err := strconv.Atoi(digits)
	if err != nil || !ok || n < 0 || n > len(text) {
		return "", "", errEncoding
	}
	return text[:n], text[n:], nil
}

// A Source is a client's Lua text.
type Source struct {
	SHA  string // Redis's name of the text
	Text string
}

// luaLines ends lines as Lua counts them with one LF each: a CR, an LF, or both in either order end a line.
var luaLines = strings.NewReplacer("\r\n", "\n", "\n\r", "\n", "\r", "\n")

// Lines returns how many lines Lua counts in a text.
func Lines(text string) int { return 1 + strings.Count(luaLines.Replace(text), "\n") }

// raised returns an error that was raised on a line of the script, in Redis's words.
func (s *Source) raised(text, line string) string {
	if line == "0" {
		line = s.tailCallLine()
	}
	return text + " script: " + s.SHA + ", on @user_script:" + line + "."
}

var tailCall = regexp.MustCompile(`\breturn\s+[\w.]+\s*\(`)

// tailCallLine guesses the line of an error without a line. The error was raised in a call whose result is returned unchanged: by then
// Lua has forgotten the caller.
func (s *Source) tailCallLine() string {
	at := tailCall.FindStringIndex(s.Text)
	if at == nil {
		return "1"
	}
	return strconv.Itoa(Lines(s.Text[:at[1]]))
}
