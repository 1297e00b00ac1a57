package script

import (
	"math"
	"strconv"
	"strings"
)

// eval returns the value of an expression.
func (r *run) eval(e expr) (symbol, error) {
	switch e := e.(type) {
	case nilExpr:
		return symbol{}, nil
	case boolExpr:
		return boolean(e.value), nil
	case numberExpr:
		return linear{offset: e.value}.symbol()
	case stringExpr:
		return text(e.value), nil
	case nameExpr:
		value, ok := r.lookup(e.name)
		if !ok {
			return symbol{}, errNotUnderstood // Redis refuses to read an unknown global
		}
		return value, nil
	case indexExpr:
		return r.index(e)
	case callExpr:
		return r.call(e)
	case notExpr:
		operand, err := r.eval(e.operand)
		return boolean(!operand.truthy()), err
	case minusExpr:
		operand, err := r.eval(e.operand)
		if err != nil {
			return symbol{}, err
		}
		return r.calculate("*", operand, number(-1))
	case lengthExpr:
		return r.length(e)
	case binaryExpr:
		return r.binary(e)
	case tableExpr:
		return r.table(e)
	}
	return symbol{}, errNotUnderstood
}

func (r *run) binary(e binaryExpr) (symbol, error) {
	left, err := r.eval(e.left)
	if err != nil {
		return symbol{}, err
	}
	if e.op == "and" && !left.truthy() || e.op == "or" && left.truthy() {
		return left, nil
	}
	right, err := r.eval(e.right)
	if err != nil {
		return symbol{}, err
	}
	var holds bool
	switch e.op {
	case "and", "or":
		return right, nil
	case "==":
		holds, err = r.equal(left, right)
	case "~=":
		holds, err = r.equal(left, right)
		holds = !holds
	case "<", ">", "<=", ">=":
		holds, err = r.ordered(e.op, left, right)
	default:
		return r.calculate(e.op, left, right)
	}
	return boolean(holds), err
}

func (r *run) calculate(op string, left, right symbol) (symbol, error) {
	for _, operand := range []symbol{left, right} {
		if operand.kind == symSource {
			r.path.mustBeNumber(operand.source)
		}
	}
	return arithmetic(op, left, right)
}

// index answers KEYS[i], ARGV[i], redis.name and the fields of a reply.
func (r *run) index(e indexExpr) (symbol, error) {
	object, err := r.eval(e.object)
	if err != nil {
		return symbol{}, err
	}
	key, err := r.eval(e.key)
	if err != nil {
		return symbol{}, err
	}
	switch {
	case object.kind == symKeys, object.kind == symArgv:
		if key.kind != symNumber || key.number < 1 || key.number > argumentsMax || key.number != math.Trunc(key.number) {
			return symbol{}, errNotUnderstood
		}
		from := fromKeys
		if object.kind == symArgv {
			from = fromArgs
		}
		return r.path.mention(from, int(key.number)), nil
	case object.kind == symLibrary && key.kind == symString && libraryFunctions[key.text]:
		return function(key.text), nil
	case object.kind == symStatus && key.kind == symString:
		if key.text == "ok" {
			return text(object.text), nil
		}
		return symbol{}, nil
	}
	return symbol{}, errNotUnderstood
}

// argumentsMax is the highest index into KEYS and ARGV.
const argumentsMax = 64

// length answers #KEYS, with 1: what is found then holds for calls with one key only.
func (r *run) length(e lengthExpr) (symbol, error) {
	object, err := r.eval(e.operand)
	if err != nil || object.kind != symKeys {
		return symbol{}, errNotUnderstood
	}
	r.path.oneKey = true
	return number(1), nil
}

func (r *run) call(e callExpr) (symbol, error) {
	f, err := r.eval(e.function)
	if err != nil {
		return symbol{}, err
	}
	if f.kind != symFunction {
		return symbol{}, errNotUnderstood
	}
	args := make([]symbol, len(e.args))
	for i := range e.args {
		if args[i], err = r.eval(e.args[i]); err != nil {
			return symbol{}, err
		}
	}
	switch f.text {
	case "call", "pcall":
		return r.command(args, place{line: e.line, caught: f.text == "pcall"})
	case "replicate_commands":
		return boolean(true), nil
	}
	if len(args) != 1 {
		return symbol{}, errNotUnderstood
	}
	switch f.text {
	case "tonumber":
		return r.tonumber(args[0])
	case "tostring":
		return tostring(args[0])
	case "type":
		return text(args[0].typeName()), nil
	case "status_reply":
		return replyTable("ok", args[0])
	case "error_reply":
		return errorReply(args[0])
	}
	return symbol{}, errNotUnderstood
}

func (r *run) tonumber(s symbol) (symbol, error) {
	switch s.kind {
	case symNumber, symLinear, symSeconds:
		return s, nil
	case symSource:
		r.path.mustBeNumber(s.source)
	case symString:
	default:
		return symbol{}, errNotUnderstood
	}
	l, err := s.asLinear()
	if err != nil {
		return symbol{}, err
	}
	return l.symbol()
}

func tostring(s symbol) (symbol, error) {
	switch s.kind {
	case symString, symSource, symHeld:
		return s, nil
	case symNumber:
		return integerText(s.number)
	case symBool:
		return text(strconv.FormatBool(s.truth)), nil
	case symNil:
		return text("nil"), nil
	}
	return symbol{}, errNotUnderstood
}

// integerText writes a number as Lua and Redis both do if it is an integer of moderate size.
func integerText(n float64) (symbol, error) {
	if n != math.Trunc(n) || math.Abs(n) >= 1e14 {
		return symbol{}, errNotUnderstood
	}
	return text(strconv.FormatInt(int64(n), 10)), nil
}

// table makes {ok = …}, {err = …} or a list of scalars.
func (r *run) table(e tableExpr) (symbol, error) {
	if len(e.fields) == 1 && len(e.items) == 0 {
		value, err := r.eval(e.fields[0].value)
		if err != nil {
			return symbol{}, err
		}
		return replyTable(e.fields[0].name, value)
	}
	if len(e.fields) > 0 {
		return symbol{}, errNotUnderstood
	}
	list := symbol{kind: symList}
	for _, item := range e.items {
		value, err := r.eval(item)
		if err != nil {
			return symbol{}, err
		}
		if value.typeName() == "table" || value.kind == symFunction {
			return symbol{}, errNotUnderstood
		}
		list.items = append(list.items, value)
	}
	return list, nil
}

func replyTable(name string, value symbol) (symbol, error) {
	if value.kind != symString || strings.ContainsAny(value.text, "\r\n") {
		return symbol{}, errNotUnderstood
	}
	switch name {
	case "ok":
		return symbol{kind: symStatus, text: value.text}, nil
	case "err":
		return symbol{kind: symErrorText, text: value.text}, nil
	}
	return symbol{}, errNotUnderstood
}

// errorReply is redis.error_reply of Redis 7: a text of one word gets the code ERR.
func errorReply(value symbol) (symbol, error) {
	if value.kind != symString {
		return symbol{}, errNotUnderstood
	}
	value.text = strings.TrimPrefix(value.text, "-")
	if !strings.Contains(value.text, " ") {
		value.text = "ERR " + value.text
	}
	return replyTable("err", value)
}
