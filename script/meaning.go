package script

import (
	"strconv"
	"time"
)

// Op is the effect of a recognised script on its key.
type Op uint8

// The operations. Mine means that the key holds the token, other that the key holds something else.
//
//	Op                 absent    mine       other     outcomes
//	Release            nothing   deleted    nothing   Done, NotMine, Absent
//	Extend             nothing   new TTL    nothing   Done, NotMine, Absent
//	Acquire            taken     nothing    nothing   Done, NotMine
//	AcquireOrExtend    taken     new TTL    nothing   Done, Extended, NotMine
//	Query              nothing   nothing    nothing   Done (mine), NotMine, Absent
const (
	Release Op = iota + 1
	Extend
	Acquire
	AcquireOrExtend
	Query
)

var opNames = [...]string{Release: "release", Extend: "extend", Acquire: "acquire",
	AcquireOrExtend: "acquire or extend", Query: "query"}

func (op Op) String() string { return opNames[op] }

// Result is how an operation ended.
type Result uint8

// The results.
const (
	Done     Result = iota // released, extended, acquired; for Query: the token holds the key
	Extended               // AcquireOrExtend only: the token held the key already
	NotMine                // somebody else holds the key; for Acquire: anybody
	Absent                 // nobody holds the key
	results
)

// An Outcome is the end of an operation, from which a Meaning makes the reply for the library.
type Outcome struct {
	Result Result
	Value  string        // the key's value; for Query, if Result is not Absent
	TTL    time.Duration // how long the key is still held; for Query, if Result is not Absent
}

// A Meaning is a script's effect, for all keys and arguments, and its answers. A Meaning is immutable.
type Meaning struct {
	cases   []choice // exactly one applies to any arguments
	answers [results]answer
	keys    int      // how many KEYS the text mentions
	args    int      // how many ARGV the text mentions
	numbers []source // arguments that must be numbers
	oneKey  bool     // the text uses all KEYS: understood for one key only
	sha     string
}

// An answer is known if some choice has this result.
type answer struct {
	value Value
	known bool
}

// Answer returns the reply for an outcome of a Call of m.
//
// A result that the operation cannot have by the table of operations is answered like its nearest relation: Extended
// like Done, Absent like NotMine. (A quorum may find a key absent after a refusal a moment ago.)
func (m *Meaning) Answer(o Outcome) Value {
	a := m.answers[o.Result]
	if !a.known {
		switch o.Result {
		case Extended:
			a = m.answers[Done]
		case Absent:
			a = m.answers[NotMine]
		}
	}
	return a.value.fill(o.Value, o.TTL)
}

// A choice is a script's effect under some conditions on its arguments.
type choice struct {
	when  []condition // all hold
	op    Op
	key   source
	token source // for Query: empty if the script does not compare
	ttl   lifetime
	ttls  []lifetime // the TTLs of all commands in all worlds: Redis checks a TTL even if it has no effect
	alien Value      // the reply where the key holds no string
	// reread: the key is used again after it was given a TTL, so that a TTL of zero would show.
	reread bool
}

// Where a string comes from.
type origin uint8

const (
	nowhere origin = iota
	fromKeys
	fromArgs
	fromText
)

// A source says where a Call takes a key, a token or a TTL from.
type source struct {
	from  origin
	index int    // from 1: KEYS[index] or ARGV[index]
	text  string // fromText: a literal of the script
}

func (s source) String() string {
	switch s.from {
	case fromKeys:
		return "KEYS[" + strconv.Itoa(s.index) + "]"
	case fromArgs:
		return "ARGV[" + strconv.Itoa(s.index) + "]"
	case fromText:
		return strconv.Quote(s.text)
	}
	return "nothing"
}

func (s source) in(keys, args []string) string {
	switch s.from {
	case fromKeys:
		return keys[s.index-1]
	case fromArgs:
		return args[s.index-1]
	}
	return s.text
}
