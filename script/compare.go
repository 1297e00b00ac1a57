package script

// A condition is a question about an argument that the text does not answer.
type condition struct {
	source  source
	numeric bool    // the argument is compared as a number
	op      string  // "==", and if numeric also "<" and "<="
	text    string  // the argument is compared with text
	number  float64 // the same, if numeric
	holds   bool    // in the choice: whether the condition is true
}

// equal answers a == b. Values of different types are never equal in Lua, not even a string and a number.
func (r *run) equal(a, b symbol) bool {
	if a.typeName() != b.typeName() {
		return false
	}
	switch a.typeName() {
	case "nil":
		return true
	case "boolean":
		return a.truth == b.truth
	case "string":
		return r.equalStrings(a, b)
	case "number":
		return r.compareNumbers("==", a, b)
	}
	panic(notUnderstood) // tables are compared by identity
}

func (r *run) equalStrings(a, b symbol) bool {
	if rank(a) < rank(b) {
		a, b = b, a
	}
	switch {
	case a.kind == symHeld:
		r.path.bindToken(b)
		return a.mine
	case a.kind == symSource && b.kind == symSource:
		if a.source != b.source {
			panic(notUnderstood)
		}
		return true
	case a.kind == symSource:
		return r.decide(condition{source: a.source, op: "==", text: b.text})
	}
	return a.text == b.text
}

// rank orders strings: the less is known of a string, the higher its rank.
func rank(s symbol) int {
	switch s.kind {
	case symHeld:
		return 2
	case symSource:
		return 1
	}
	return 0
}

// ordered answers a < b and its like. Lua orders strings by the locale, which is not understood here.
func (r *run) ordered(op string, a, b symbol) bool {
	switch op {
	case ">":
		return r.compareNumbers("<", b, a)
	case ">=":
		return r.compareNumbers("<=", b, a)
	}
	return r.compareNumbers(op, a, b)
}

// compareNumbers answers a op b. op is == or < or <=, and at least one side must be known.
func (r *run) compareNumbers(op string, a, b symbol) bool {
	switch {
	case a.kind == symNumber && b.kind == symNumber:
		return compareFloats(op, a.number, b.number)
	case b.kind == symNumber:
		return r.compareUnknown(op, a, b.number)
	case a.kind == symNumber:
		// n < x is not (x <= n).
		flipped, negate := op, op != "=="
		switch op {
		case "<":
			flipped = "<="
		case "<=":
			flipped = "<"
		}
		return r.compareUnknown(flipped, b, a.number) != negate
	}
	panic(notUnderstood)
}

// compareUnknown answers x op n where x is an argument or the remaining TTL.
//
// The remaining TTL is at least 1 ms: at 0 the key would be gone one millisecond later, and the script could as well
// have run one millisecond earlier. In seconds the remaining TTL is at least 0, because TTL rounds. More is not known.
func (r *run) compareUnknown(op string, x symbol, n float64) bool {
	least := 0.0
	switch {
	case x.kind == symLinear && x.linear == (linear{added: true}):
		least = 1
	case x.kind == symSeconds:
	case x.kind == symLinear && x.linear == (linear{source: x.linear.source, scale: 1}):
		return r.decide(condition{source: x.linear.source, numeric: true, op: op, number: n})
	default:
		panic(notUnderstood)
	}
	if n >= least && (op != "<" || n != least) {
		panic(notUnderstood)
	}
	return false
}

func compareFloats(op string, a, b float64) bool {
	switch op {
	case "<":
		return a < b
	case "<=":
		return a <= b
	}
	return a == b
}

// met reports whether the arguments answer the condition's question as its choice supposes.
func (c condition) met(keys, args []string) bool {
	s := c.source.in(keys, args)
	if !c.numeric {
		return (s == c.text) == c.holds
	}
	n, err := parseNumber(s)
	return err == nil && compareFloats(c.op, n, c.number) == c.holds
}
