package script

import (
	"math"
	"strconv"
	"strings"
)

// eval returns the value of an expression.
func (r *run) eval(e expr) symbol {
	switch e := e.(type) {
	case nilExpr:
		return symbol{}
	case boolExpr:
		return boolean(e.value)
	case numberExpr:
		return linear{offset: e.value}.symbol()
	case stringExpr:
		return text(e.value)
	case nameExpr:
		value, ok := r.lookup(e.name)
		if !ok {
			panic(notUnderstood) // Redis refuses to read an unknown global
		}
		return value
	case indexExpr:
		return r.index(e)
	case callExpr:
		return r.call(e)
	case notExpr:
		return boolean(!r.eval(e.operand).truthy())
	case minusExpr:
		return r.calculate("*", r.eval(e.operand), number(-1))
	case lengthExpr:
		return r.length(e)
	case binaryExpr:
		return r.binary(e)
	case tableExpr:
		return r.table(e)
	}
	panic(notUnderstood)
}

func (r *run) binary(e binaryExpr) symbol {
	left := r.eval(e.left)
	if e.op == "and" && !left.truthy() || e.op == "or" && left.truthy() {
		return left
	}
	right := r.eval(e.right)
	switch e.op {
	case "and", "or":
		return right
	case "==":
		return boolean(r.equal(left, right))
	case "~=":
		return boolean(!r.equal(left, right))
	case "<", ">", "<=", ">=":
		return boolean(r.ordered(e.op, left, right))
	}
	return r.calculate(e.op, left, right)
}

func (r *run) calculate(op string, left, right symbol) symbol {
	for _, operand := range []symbol{left, right} {
		if operand.kind == symSource {
			r.path.mustBeNumber(operand.source)
		}
	}
	return arithmetic(op, left.asLinear(), right.asLinear())
}

// index answers KEYS[i], ARGV[i], redis.name and the fields of a reply.
func (r *run) index(e indexExpr) symbol {
	object, key := r.eval(e.object), r.eval(e.key)
	switch {
	case object.kind == symKeys, object.kind == symArgv:
		if key.kind != symNumber || key.number < 1 || key.number > argumentsMax || key.number != math.Trunc(key.number) {
			panic(notUnderstood)
		}
		from := fromKeys
		if object.kind == symArgv {
			from = fromArgs
		}
		return r.path.mention(from, int(key.number))
	case object.kind == symLibrary && key.kind == symString && libraryFunctions[key.text]:
		return function(key.text)
	case object.kind == symStatus && key.kind == symString:
		if key.text == "ok" {
			return text(object.text)
		}
		return symbol{}
	}
	panic(notUnderstood)
}

// argumentsMax is the highest index into KEYS and ARGV.
const argumentsMax = 64

// length answers 1 for #KEYS: the Meaning then holds for calls with one key only.
func (r *run) length(e lengthExpr) symbol {
	if r.eval(e.operand).kind != symKeys {
		panic(notUnderstood)
	}
	r.path.oneKey = true
	return number(1)
}

func (r *run) call(e callExpr) symbol {
	f := r.eval(e.function)
	if f.kind != symFunction {
		panic(notUnderstood)
	}
	args := make([]symbol, len(e.args))
	for i := range e.args {
		args[i] = r.eval(e.args[i])
	}
	switch f.text {
	case "call", "pcall":
		return r.command(args, place{line: e.line, caught: f.text == "pcall"})
	case "replicate_commands":
		return boolean(true)
	}
	if len(args) != 1 {
		panic(notUnderstood)
	}
	switch f.text {
	case "tonumber":
		return r.tonumber(args[0])
	case "tostring":
		return tostring(args[0])
	case "type":
		return text(args[0].typeName())
	case "status_reply":
		return replyTable("ok", args[0])
	case "error_reply":
		return errorReply(args[0])
	}
	panic(notUnderstood)
}

func (r *run) tonumber(s symbol) symbol {
	switch s.kind {
	case symNumber, symLinear, symSeconds:
		return s
	case symSource:
		r.path.mustBeNumber(s.source)
	}
	return s.asLinear().symbol()
}

func tostring(s symbol) symbol {
	switch s.kind {
	case symString, symSource, symHeld:
		return s
	case symNumber:
		return integerText(s.number)
	case symBool:
		return text(strconv.FormatBool(s.truth))
	case symNil:
		return text("nil")
	}
	panic(notUnderstood)
}

// integerText writes a number as Lua and Redis both do, if the number is an integer of moderate size.
func integerText(n float64) symbol {
	if n != math.Trunc(n) || math.Abs(n) >= 1e14 {
		panic(notUnderstood)
	}
	return text(strconv.FormatInt(int64(n), 10))
}

// table makes {ok = …}, {err = …} or a list of scalars.
func (r *run) table(e tableExpr) symbol {
	if len(e.fields) == 1 && len(e.items) == 0 {
		return replyTable(e.fields[0].name, r.eval(e.fields[0].value))
	}
	if len(e.fields) > 0 {
		panic(notUnderstood)
	}
	list := symbol{kind: symList}
	for _, item := range e.items {
		value := r.eval(item)
		if value.typeName() == "table" || value.kind == symFunction {
			panic(notUnderstood)
		}
		list.items = append(list.items, value)
	}
	return list
}

func replyTable(name string, value symbol) symbol {
	switch {
	case value.kind != symString || strings.ContainsAny(value.text, "\r\n"):
	case name == "ok":
		return symbol{kind: symStatus, text: value.text}
	case name == "err":
		return symbol{kind: symErrorText, text: value.text}
	}
	panic(notUnderstood)
}

// errorReply is redis.error_reply of Redis 7: a text of one word gets the code ERR.
func errorReply(value symbol) symbol {
	value.text = strings.TrimPrefix(value.text, "-")
	if !strings.Contains(value.text, " ") {
		value.text = "ERR " + value.text
	}
	return replyTable("err", value)
}
