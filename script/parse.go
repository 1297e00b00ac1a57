package script

// depthMax bounds how deep blocks and expressions may nest. Lua's own limit is 200; lock scripts need five. localsMax
// bounds how many variables a text declares. Lua allows 200 at once.
const (
	depthMax  = 40
	localsMax = 100
)

// A parser reads the subset of Lua that lock scripts use. The only loop is over KEYS. Anything beyond the subset moves
// the parser to the end of the text, where the parser accepts nothing more. Then the parsed part does not count.
type parser struct {
	tokens []token
	at     int
	depth  int
	locals int
	failed bool
}

// parse returns the statements of a text.
func parse(text string) ([]stmt, error) {
	tokens, err := tokenize(text)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	body := p.block()
	if p.failed || p.peek().kind != tokEOF {
		return nil, errNotUnderstood
	}
	return body, nil
}

func (p *parser) fail() { p.failed, p.at = true, len(p.tokens)-1 }

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokEOF {
		p.at++
	}
	return t
}

// accept moves over the next token if it is this keyword or symbol.
func (p *parser) accept(text string) bool {
	if p.peek().is(text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.fail()
	}
}

func (p *parser) name() string {
	t := p.next()
	if t.kind != tokName {
		p.fail()
	}
	return t.text
}

// enter counts one more level of nesting; leave ends the level.
func (p *parser) enter() {
	if p.depth++; p.depth > depthMax {
		p.fail()
	}
}

func (p *parser) leave() { p.depth-- }

// endsBlock says that no further statement can begin here.
func (p *parser) endsBlock() bool {
	t := p.peek()
	return t.kind == tokEOF || t.is("end") || t.is("else") || t.is("elseif")
}

// block reads statements. A return ends the block.
func (p *parser) block() []stmt {
	p.enter()
	defer p.leave()
	var body []stmt
	for !p.endsBlock() {
		s := p.statement()
		body = append(body, s)
		p.accept(";")
		if _, last := s.(returnStmt); last {
			break
		}
	}
	return body
}

// closed reads a block and its end.
func (p *parser) closed() []stmt {
	body := p.block()
	p.expect("end")
	return body
}

func (p *parser) statement() stmt {
	switch {
	case p.accept("local"):
		return p.local()
	case p.accept("if"):
		return p.branches()
	case p.accept("for"):
		return p.loop()
	case p.accept("do"):
		return doStmt{p.closed()}
	case p.accept("return"):
		return p.result()
	}
	return p.assignOrCall()
}

func (p *parser) local() stmt {
	var s localStmt
	for {
		s.names = append(s.names, p.name())
		if p.locals++; p.locals > localsMax {
			p.fail()
		}
		if !p.accept(",") {
			break
		}
	}
	if p.accept("=") {
		s.values = p.expressions()
	}
	return s
}

func (p *parser) branches() stmt {
	var s ifStmt
	for {
		s.conditions = append(s.conditions, p.expression())
		p.expect("then")
		s.blocks = append(s.blocks, p.block())
		if !p.accept("elseif") {
			break
		}
	}
	if p.accept("else") {
		s.otherwise = p.block()
	}
	p.expect("end")
	return s
}

// loop reads the only loop there is: for i, key in ipairs(KEYS) do … end.
func (p *parser) loop() stmt {
	var s keysLoop
	s.index = p.name()
	p.expect(",")
	s.key = p.name()
	for _, want := range []token{{kind: tokKeyword, text: "in"}, {kind: tokName, text: "ipairs"}, {kind: tokSymbol, text: "("},
		{kind: tokName, text: "KEYS"}, {kind: tokSymbol, text: ")"}, {kind: tokKeyword, text: "do"}} {
		if t := p.next(); t.kind != want.kind || t.text != want.text || t.is("(") && p.ambiguous() {
			p.fail()
		}
	}
	s.body = p.closed()
	return s
}

func (p *parser) result() stmt {
	if p.endsBlock() || p.peek().is(";") {
		return returnStmt{}
	}
	return returnStmt{p.expression()}
}

func (p *parser) assignOrCall() stmt {
	if p.peek().kind == tokName {
		switch e := p.suffixed().(type) {
		case callExpr:
			return callStmt{e}
		case nameExpr:
			p.expect("=")
			return assignStmt{e.name, p.expression()}
		}
	}
	p.fail()
	return nil
}

// The syntax tree of the subset. A call carries the line that Redis names in an error of its command.

type expr any

type (
	nilExpr    struct{}
	boolExpr   struct{ value bool }
	numberExpr struct{ value float64 }
	stringExpr struct{ value string }
	nameExpr   struct{ name string }

	indexExpr struct{ object, key expr }
	callExpr  struct {
		function expr
		args     []expr
		line     int
	}
	notExpr    struct{ operand expr }
	minusExpr  struct{ operand expr }
	lengthExpr struct{ operand expr }
	binaryExpr struct {
		op          string
		left, right expr
	}
	tableExpr struct {
		items  []expr
		fields []field
	}
)

type field struct {
	name  string
	value expr
}

type stmt any

type (
	localStmt struct {
		names  []string
		values []expr
	}
	assignStmt struct {
		name  string
		value expr
	}
	callStmt struct{ call callExpr }
	ifStmt   struct {
		conditions []expr // if, elseif, …
		blocks     [][]stmt
		otherwise  []stmt
	}
	doStmt     struct{ body []stmt }
	returnStmt struct{ value expr } // nil: no value
	// keysLoop is for index, key in ipairs(KEYS) do body end.
	keysLoop struct {
		index, key string
		body       []stmt
	}
)
