package script

import "math"

// symbolKind is the kind of a value during a symbolic run.
type symbolKind uint8

const (
	symNil symbolKind = iota
	symBool
	symNumber    // a known number
	symString    // a known string
	symSource    // the string of KEYS or ARGV
	symHeld      // the key's value
	symLinear    // a number made of an argument and the remaining TTL
	symSeconds   // the remaining TTL in seconds, rounded
	symStatus    // a table {ok = text}
	symErrorText // a table {err = text}
	symList      // any other table, without named fields
	symFunction  // a library function, by its name in text
	symKeys      // the table KEYS
	symArgv      // the table ARGV
	symLibrary   // the table redis
)

// A symbol is a Lua value, of which only a part is known.
type symbol struct {
	kind   symbolKind
	truth  bool     // symBool
	number float64  // symNumber
	text   string   // symString, symStatus, symErrorText, symFunction
	source source   // symSource
	mine   bool     // symHeld: the value is the token
	linear linear   // symLinear
	items  []symbol // symList
}

// A linear is scale × the number in source + offset, + the remaining milliseconds if added is set.
type linear struct {
	source source // nowhere: only the rest counts
	scale  float64
	offset float64
	added  bool
}

// exactMax bounds the numbers in calculations: below exactMax, every integer is exact.
const exactMax = 1 << 53

func number(n float64) symbol { return symbol{kind: symNumber, number: n} }

func text(s string) symbol { return symbol{kind: symString, text: s} }

func boolean(b bool) symbol { return symbol{kind: symBool, truth: b} }

// truthy follows Lua: only nil and false are not. Zero is true.
func (s symbol) truthy() bool { return s.kind != symNil && (s.kind != symBool || s.truth) }

// typeName is the result of Lua's type.
func (s symbol) typeName() string {
	switch s.kind {
	case symNil:
		return "nil"
	case symBool:
		return "boolean"
	case symNumber, symLinear, symSeconds:
		return "number"
	case symString, symSource, symHeld:
		return "string"
	case symFunction:
		return "function"
	}
	return "table"
}

// asLinear returns a number as a linear. Strings count as their numbers, as in Lua's arithmetic.
func (s symbol) asLinear() linear {
	switch s.kind {
	case symNumber:
		return linear{offset: s.number}
	case symLinear:
		return s.linear
	case symSource:
		return linear{source: s.source, scale: 1}
	case symString:
		if n, err := parseNumber(s.text); err == nil {
			return linear{offset: n}
		}
	}
	panic(notUnderstood)
}

func (l linear) constant() bool { return l.source.from == nowhere && !l.added }

// symbol returns l as a number; a known number if l is constant.
func (l linear) symbol() symbol {
	if math.Abs(l.scale) >= exactMax || math.Abs(l.offset) >= exactMax || l.scale != l.scale || l.offset != l.offset {
		panic(notUnderstood)
	}
	if l.constant() {
		return number(l.offset)
	}
	return symbol{kind: symLinear, linear: l}
}

// arithmetic calculates as far as the result is linear.
func arithmetic(op string, a, b linear) symbol {
	if op == "*" && a.constant() {
		a, b = b, a
	}
	switch {
	case op == "+":
		return a.plus(b)
	case op == "-" && b.constant():
		a.offset -= b.offset
		return a.symbol()
	case op == "*" && b.constant() && !a.added:
		a.scale *= b.offset
		a.offset *= b.offset
		return a.symbol()
	case op == "/" && a.constant() && b.constant() && b.offset != 0:
		return linear{offset: a.offset / b.offset}.symbol()
	}
	panic(notUnderstood)
}

// plus adds, as long as the sum has one argument and one remaining TTL at most.
func (l linear) plus(m linear) symbol {
	if l.source.from != nowhere && m.source.from != nowhere || l.added && m.added {
		panic(notUnderstood)
	}
	if l.source.from == nowhere {
		l.source, l.scale = m.source, m.scale
	}
	l.offset += m.offset
	l.added = l.added || m.added
	return l.symbol()
}

// reply converts a script's return value, as Redis does.
func (s symbol) reply() Value {
	switch s.kind {
	case symNil:
		return Value{}
	case symBool:
		if s.truth {
			return Value{Kind: Int, Int: 1}
		}
		return Value{}
	case symNumber:
		return Value{Kind: Int, Int: int64(s.number)} // truncated
	case symString:
		return Value{Kind: Bulk, Text: s.text}
	case symHeld:
		return Value{Kind: heldValue}
	case symLinear:
		if s.linear == (linear{added: true}) {
			return Value{Kind: remainingMillis}
		}
	case symSeconds:
		return Value{Kind: remainingSeconds}
	case symStatus:
		return Value{Kind: Status, Text: s.text}
	case symErrorText:
		return Value{Kind: Error, Text: s.text}
	case symList:
		return s.listReply()
	}
	panic(notUnderstood)
}

// listReply ends the array at the first nil, as Redis does; false is a null in the array.
func (s symbol) listReply() Value {
	v := Value{Kind: Array, Items: []Value{}}
	for _, item := range s.items {
		if item.kind == symNil {
			break
		}
		v.Items = append(v.Items, item.reply())
	}
	return v
}
