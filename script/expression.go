package script

// Lua's binary operators by how strongly they bind. The power operator and .. are not in the subset.
var precedence = map[string]int{
	"or": 1, "and": 2,
	"<": 3, ">": 3, "<=": 3, ">=": 3, "~=": 3, "==": 3,
	"+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}

const unaryPrecedence = 7

func (p *parser) expression() expr { return p.binary(0) }

func (p *parser) expressions() []expr {
	list := []expr{p.expression()}
	for p.accept(",") {
		list = append(list, p.expression())
	}
	return list
}

// binary reads operators that bind more strongly than limit. All of these operators associate to the left.
func (p *parser) binary(limit int) expr {
	p.enter()
	defer p.leave()
	left := p.unary()
	for {
		op := p.peek()
		level := precedence[op.text]
		if op.kind != tokSymbol && op.kind != tokKeyword || level <= limit {
			return left
		}
		p.next()
		left = binaryExpr{op: op.text, left: left, right: p.binary(level)}
	}
}

func (p *parser) unary() expr {
	switch {
	case p.accept("not"):
		return notExpr{p.binary(unaryPrecedence)}
	case p.accept("-"):
		return minusExpr{p.binary(unaryPrecedence)}
	case p.accept("#"):
		return lengthExpr{p.binary(unaryPrecedence)}
	}
	return p.simple()
}

func (p *parser) simple() expr {
	switch t := p.peek(); {
	case t.kind == tokNumber:
		n, _ := parseNumber(p.next().text) // no error: the lexer has tried
		return numberExpr{n}
	case t.kind == tokString:
		return stringExpr{p.next().text}
	case p.accept("nil"):
		return nilExpr{}
	case p.accept("true"):
		return boolExpr{true}
	case p.accept("false"):
		return boolExpr{false}
	case p.accept("{"):
		return p.table()
	}
	return p.suffixed()
}

// suffixed reads a name or a parenthesis, and its indexes and calls.
func (p *parser) suffixed() expr {
	e := p.primary()
	for {
		t := p.peek()
		switch {
		case p.accept("."):
			e = indexExpr{e, stringExpr{p.name()}}
		case p.accept("["):
			e = indexExpr{e, p.expression()}
			p.expect("]")
		case p.accept("("):
			if p.ambiguous() {
				p.fail()
			}
			e = callExpr{function: e, args: p.arguments(), line: t.line}
		default:
			return e
		}
	}
}

// ambiguous says that the parenthesis just read is on a new line. Lua 5.1 cannot tell then whether the parenthesis
// calls the expression before it, and refuses the text.
func (p *parser) ambiguous() bool { return p.tokens[p.at-1].line != p.tokens[p.at-2].line }

func (p *parser) primary() expr {
	if !p.accept("(") {
		return nameExpr{p.name()}
	}
	e := p.expression()
	p.expect(")")
	return e
}

func (p *parser) arguments() []expr {
	if p.accept(")") {
		return nil
	}
	args := p.expressions()
	p.expect(")")
	return args
}

// table reads {…}: items and named fields.
func (p *parser) table() expr {
	var t tableExpr
	for !p.failed && !p.accept("}") {
		if p.peek().kind == tokName && p.tokens[p.at+1].is("=") {
			name := p.next().text
			p.next()
			t.fields = append(t.fields, field{name, p.expression()})
		} else {
			t.items = append(t.items, p.expression())
		}
		if !p.accept(",") && !p.accept(";") && !p.peek().is("}") {
			p.fail()
		}
	}
	return t
}
