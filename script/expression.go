package script

// Lua's binary operators by how strongly they bind. The power operator and .. are not in the subset.
var precedence = map[string]int{
	"or": 1, "and": 2,
	"<": 3, ">": 3, "<=": 3, ">=": 3, "~=": 3, "==": 3,
	"+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}

const unaryPrecedence = 7

func (p *parser) expression() (expr, error) { return p.binary(0) }

func (p *parser) expressions() ([]expr, error) {
	var list []expr
	for {
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
		if !p.accept(",") {
			return list, nil
		}
	}
}

// binary reads operators that bind more strongly than limit. All of them associate to the left.
func (p *parser) binary(limit int) (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	left, err := p.unary()
	for err == nil {
		op := p.peek()
		level := precedence[op.text]
		if op.kind != tokSymbol && op.kind != tokKeyword || level <= limit {
			return left, nil
		}
		p.next()
		var right expr
		right, err = p.binary(level)
		left = binaryExpr{op: op.text, left: left, right: right}
	}
	return nil, err
}

func (p *parser) unary() (expr, error) {
	var wrap func(expr) expr
	switch {
	case p.accept("not"):
		wrap = func(e expr) expr { return notExpr{e} }
	case p.accept("-"):
		wrap = func(e expr) expr { return minusExpr{e} }
	case p.accept("#"):
		wrap = func(e expr) expr { return lengthExpr{e} }
	default:
		return p.simple()
	}
	operand, err := p.binary(unaryPrecedence)
	return wrap(operand), err
}

func (p *parser) simple() (expr, error) {
	switch t := p.peek(); {
	case t.kind == tokNumber:
		n, err := parseNumber(p.next().text)
		return numberExpr{n}, err
	case t.kind == tokString:
		return stringExpr{p.next().text}, nil
	case p.accept("nil"):
		return nilExpr{}, nil
	case p.accept("true"):
		return boolExpr{true}, nil
	case p.accept("false"):
		return boolExpr{false}, nil
	case p.accept("{"):
		return p.table()
	}
	return p.suffixed()
}

// suffixed reads a name or a parenthesis and what is indexed or called of it.
func (p *parser) suffixed() (expr, error) {
	e, err := p.primary()
	for err == nil {
		t := p.peek()
		switch {
		case p.accept("."):
			var name string
			name, err = p.name()
			e = indexExpr{e, stringExpr{name}}
		case p.accept("["):
			var key expr
			if key, err = p.expression(); err == nil {
				err = p.expect("]")
			}
			e = indexExpr{e, key}
		case p.accept("("):
			if p.ambiguous() {
				return nil, errNotUnderstood
			}
			var args []expr
			args, err = p.arguments()
			e = callExpr{function: e, args: args, line: t.line}
		default:
			return e, nil
		}
	}
	return nil, err
}

// ambiguous says that the parenthesis just read is on a new line: Lua 5.1 does not know then whether it calls what is
// before it, and refuses the text.
func (p *parser) ambiguous() bool { return p.tokens[p.at-1].line != p.tokens[p.at-2].line }

func (p *parser) primary() (expr, error) {
	if p.accept("(") {
		e, err := p.expression()
		if err == nil {
			err = p.expect(")")
		}
		return e, err
	}
	name, err := p.name()
	return nameExpr{name}, err
}

func (p *parser) arguments() ([]expr, error) {
	if p.accept(")") {
		return nil, nil
	}
	args, err := p.expressions()
	if err == nil {
		err = p.expect(")")
	}
	return args, err
}

// table reads {…}: items and named fields.
func (p *parser) table() (expr, error) {
	var t tableExpr
	for !p.accept("}") {
		if p.peek().kind == tokName && p.tokens[p.at+1].is("=") {
			name := p.next().text
			p.next()
			value, err := p.expression()
			if err != nil {
				return nil, err
			}
			t.fields = append(t.fields, field{name, value})
		} else {
			item, err := p.expression()
			if err != nil {
				return nil, err
			}
			t.items = append(t.items, item)
		}
		if !p.accept(",") && !p.accept(";") && !p.peek().is("}") {
			return nil, errNotUnderstood
		}
	}
	return t, nil
}
