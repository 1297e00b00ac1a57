package script

// depthMax bounds how deep blocks and expressions may nest. Lua's own limit is 200; lock scripts need five. localsMax bounds
// how many variables a text declares, of which Lua takes 200 at once.
const (
	depthMax  = 40
	localsMax = 100
)

// A parser reads the subset of Lua that lock scripts use. Loops exist in one form only, over KEYS.
type parser struct {
	tokens []token
	at     int
	depth  int
	locals int
}

// parse returns the statements of a text.
func parse(text string) ([]stmt, error) {
	tokens, err := tokenize(text)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	body, err := p.block()
	if err == nil && p.peek().kind != tokEOF {
		err = errNotUnderstood
	}
	return body, err
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokEOF {
		p.at++
	}
	return t
}

// accept moves over a keyword or symbol if it is next.
func (p *parser) accept(text string) bool {
	if p.peek().is(text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(text string) error {
	if !p.accept(text) {
		return errNotUnderstood
	}
	return nil
}

func (p *parser) name() (string, error) {
	if t := p.next(); t.kind == tokName {
		return t.text, nil
	}
	return "", errNotUnderstood
}

// enter counts one more level of nesting; leave ends it.
func (p *parser) enter() error {
	if p.depth++; p.depth > depthMax {
		return errNotUnderstood
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// block reads statements up to what cannot begin one. A return ends it.
func (p *parser) block() ([]stmt, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var body []stmt
	for {
		t := p.peek()
		if t.kind == tokEOF || t.is("end") || t.is("else") || t.is("elseif") {
			return body, nil
		}
		s, err := p.statement()
		if err != nil {
			return nil, err
		}
		body = append(body, s)
		p.accept(";")
		if _, last := s.(returnStmt); last {
			return body, nil
		}
	}
}

func (p *parser) statement() (stmt, error) {
	switch {
	case p.accept("local"):
		return p.local()
	case p.accept("if"):
		return p.branches()
	case p.accept("for"):
		return p.loop()
	case p.accept("do"):
		body, err := p.block()
		if err == nil {
			err = p.expect("end")
		}
		return doStmt{body}, err
	case p.accept("return"):
		return p.result()
	}
	return p.assignOrCall()
}

func (p *parser) local() (stmt, error) {
	var s localStmt
	for {
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		s.names = append(s.names, name)
		if p.locals++; p.locals > localsMax {
			return nil, errNotUnderstood
		}
		if !p.accept(",") {
			break
		}
	}
	if !p.accept("=") {
		return s, nil
	}
	var err error
	s.values, err = p.expressions()
	return s, err
}

func (p *parser) branches() (stmt, error) {
	var s ifStmt
	for {
		condition, err := p.expression()
		if err == nil {
			err = p.expect("then")
		}
		if err != nil {
			return nil, err
		}
		body, err := p.block()
		if err != nil {
			return nil, err
		}
		s.conditions, s.blocks = append(s.conditions, condition), append(s.blocks, body)
		if !p.accept("elseif") {
			break
		}
	}
	if p.accept("else") {
		var err error
		if s.otherwise, err = p.block(); err != nil {
			return nil, err
		}
	}
	return s, p.expect("end")
}

// loop reads the only loop there is: for i, key in ipairs(KEYS) do … end.
func (p *parser) loop() (stmt, error) {
	index, err := p.name()
	if err == nil {
		err = p.expect(",")
	}
	if err != nil {
		return nil, err
	}
	key, err := p.name()
	if err == nil {
		err = p.expect("in")
	}
	if err != nil {
		return nil, err
	}
	for _, want := range []token{{kind: tokName, text: "ipairs"}, {kind: tokSymbol, text: "("},
		{kind: tokName, text: "KEYS"}, {kind: tokSymbol, text: ")"}, {kind: tokKeyword, text: "do"}} {
		if t := p.next(); t.kind != want.kind || t.text != want.text || t.is("(") && p.ambiguous() {
			return nil, errNotUnderstood
		}
	}
	body, err := p.block()
	if err == nil {
		err = p.expect("end")
	}
	return keysLoop{index: index, key: key, body: body}, err
}

func (p *parser) result() (stmt, error) {
	if t := p.peek(); t.kind == tokEOF || t.is("end") || t.is("else") || t.is("elseif") || t.is(";") {
		return returnStmt{}, nil
	}
	value, err := p.expression()
	return returnStmt{value}, err
}

func (p *parser) assignOrCall() (stmt, error) {
	if p.peek().kind != tokName {
		return nil, errNotUnderstood
	}
	e, err := p.suffixed()
	if err != nil {
		return nil, err
	}
	switch e := e.(type) {
	case callExpr:
		return callStmt{e}, nil
	case nameExpr:
		if err := p.expect("="); err != nil {
			return nil, err
		}
		value, err := p.expression()
		return assignStmt{e.name, value}, err
	}
	return nil, errNotUnderstood
}
