package quorum

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Value is the reply of a script, in no particular protocol.
type Value struct {
	Kind  ValueKind
	Int   int64
	Text  string  // of an Error with its code word; of a Double as C's %.17g; of a Verbatim after its three-letter format
	Items []Value // of an Array or a Set; of a Map, keys and values in turn
}

// A ValueKind is the type of a Value.
type ValueKind uint8

// The kinds of values. Those from True on are only in the replies of scripts that ask for them, with
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

// The encoding of values, by which the wrapper sends them. Texts are preceded by their length, so that anything may be
// in them:
//
//	:1;   $2:OK   +2:OK   -5:ERR x   _   *2;…   t   f   ,1.5;   (2:12   =5:txtab   %1;…   ~1;…
//
// and at the outermost an error that was raised, with the line, 0 if that is not known, and the guard's reason for
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
func decodeValue(text string, s *Script) (Value, error) {
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
		v.Text = s.raised(v.Text, line)
	case text[0] == stoppedValue:
		v.Kind = ErrorValue
		v.Text, rest, err = cutText(text[1:])
		v.Text = fmt.Sprintf("ERR script %s cannot be run by quorum: %s", s.sha, v.Text)
	default:
		v, rest, err = cutValue(text, 0)
	}
	if err == nil && rest != "" {
		err = errEncoding
	}
	return v, err
}

const (
	valueDepthMax = 128  // more than the wrapper's own bound
	itemsFirst    = 1024 // for so many items there is memory before they come, in each list of lists
)

// cutValue reads the value at the beginning of text and returns what follows it.
func cutValue(text string, depth int) (v Value, rest string, err error) {
	if text == "" || depth > valueDepthMax {
		return v, "", errEncoding
	}
	sign, text := text[0], text[1:]
	if kind, ok := textKinds[sign]; ok {
		v.Kind = kind
		v.Text, rest, err = cutText(text)
		return v, rest, err
	}
	if kind, ok := listKinds[sign]; ok {
		v.Kind = kind
		v.Items, rest, err = cutItems(kind, text, depth)
		return v, rest, err
	}
	switch sign {
	case '_':
		return v, text, nil
	case 't':
		return Value{Kind: TrueValue}, text, nil
	case 'f':
		return Value{Kind: FalseValue}, text, nil
	case ':', ',':
		number, rest, ok := strings.Cut(text, ";")
		if sign == ',' {
			return Value{Kind: DoubleValue, Text: number}, rest, nil
		}
		x, err := strconv.ParseFloat(strings.TrimPrefix(number, "-nan"), 64)
		if err != nil {
			x = math.NaN()
		}
		if !ok {
			return v, "", errEncoding
		}
		return Value{Kind: IntValue, Int: toInteger(x)}, rest, nil
	}
	return v, "", errEncoding
}

// toInteger is C's conversion on the machines that Redis runs on.
func toInteger(x float64) int64 {
	if x >= -(1<<63) && x < 1<<63 {
		return int64(x)
	}
	return math.MinInt64
}

func cutText(text string) (s, rest string, err error) {
	digits, text, ok := strings.Cut(text, ":")
	n, err := strconv.Atoi(digits)
	if err != nil || !ok || n < 0 || n > len(text) {
		return "", "", errEncoding
	}
	return text[:n], text[n:], nil
}

func cutItems(kind ValueKind, text string, depth int) ([]Value, string, error) {
	digits, text, ok := strings.Cut(text, ";")
	n, err := strconv.Atoi(digits)
	if err != nil || !ok || n < 0 || n > len(text) { // each item takes a byte at least
		return nil, "", errEncoding
	}
	if kind == MapValue {
		n *= 2
	}
	items := make([]Value, 0, min(n, itemsFirst))
	for range n {
		var v Value
		if v, text, err = cutValue(text, depth+1); err != nil {
			return nil, "", err
		}
		items = append(items, v)
	}
	return items, text, nil
}
