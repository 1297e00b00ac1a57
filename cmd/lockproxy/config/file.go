package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// An entry is one "key: value" of the file.
type entry struct {
	key   string
	line  int
	raw   raw
	wrong string // the fault of the value; then raw is empty
}

// readYAML returns the entries of a file in their order. The values stay texts. The table gives them a meaning, so that
// 0100, yes and 1_000 mean the same in a file, a variable and a flag.
func readYAML(text []byte) ([]entry, []fault) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // the byte order mark that some editors write
	for n, line := range bytes.Split(text, []byte("\n")) {
		if !utf8.Valid(line) { // otherwise a password would be read wrongly
			return nil, []fault{{n + 1, "is not UTF-8; have your editor save the file so"}}
		}
	}
	tokens := lexer.Tokenize(string(text))
	if excess := excessOf(tokens); excess != nil {
		return nil, []fault{*excess}
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, []fault{yamlFault(err)}
	}
	var body ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || isComment(doc.Body):
		case body != nil:
			return nil, []fault{{lineOf(doc.Body), "a second document begins; keep all settings in one"}}
		default:
			body = doc.Body
		}
	}
	if body == nil {
		return nil, nil
	}
	pairs, ok := pairsOf(body)
	if !ok {
		return nil, []fault{{lineOf(body), "is no mapping; write one \"key: value\" on each line"}}
	}
	var entries []entry
	for _, pair := range pairs {
		r, wrong := rawOf(pair.Value)
		entries = append(entries, entry{keyOf(pair), lineOf(pair.Key), r, wrong})
	}
	return entries, nil
}

// nestMax is how deep brackets may stand in brackets, and dashes behind dashes on one line. The library's memory grows
// with the square of the depth. Nesting by indentation alone needs as much text as depth, and settingsMax bounds the
// text.
const nestMax = 32

// excessOf returns the fault of a file beyond any setting's needs: a value or a key too long to be quoted in one line,
// or brackets too deep.
func excessOf(tokens token.Tokens) *fault {
	brackets, dashes, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			dashes, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets = max(brackets-1, 0)
		case token.SequenceEntryType:
			dashes++
		case token.CommentType, token.InvalidType: // the fault of an invalid token says more
			continue
		}
		switch {
		case len(t.Value) > valueMax:
			return &fault{line, fmt.Sprintf("has a value of more than %s; no setting needs that", sizeText(valueMax))}
		case brackets > nestMax || dashes > nestMax:
			return &fault{line, fmt.Sprintf("nests lists or mappings more than %d deep; no setting needs that", nestMax)}
		}
	}
	return nil
}

// yamlFault puts a syntax error into one line. The library's own text quotes the file, and passwords with it.
func yamlFault(err error) fault {
	var syntax yaml.Error
	if !errors.As(err, &syntax) || syntax.GetToken() == nil {
		return fault{0, "is no YAML"}
	}
	message, _, _ := strings.Cut(syntax.GetMessage(), "\n")
	return fault{syntax.GetToken().Position.Line, "is no YAML: " + message}
}

// pairsOf returns the pairs of a mapping. A mapping of one pair has its own node type.
func pairsOf(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

func isComment(n ast.Node) bool {
	_, ok := n.(*ast.CommentGroupNode)
	return ok
}

func keyOf(pair *ast.MappingValueNode) string { return pair.Key.GetToken().Value }

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// rawOf returns a value as text, list or mapping, or the value's fault.
func rawOf(n ast.Node) (raw, string) {
	r := raw{line: lineOf(n)}
	switch n := n.(type) {
	case *ast.NullNode:
		return r, "has no value; give one, or remove the line"
	case *ast.StringNode:
		r.text = n.Value
		return r, ""
	case *ast.LiteralNode:
		r.text = strings.TrimSuffix(n.Value.Value, "\n")
		return r, ""
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		r.text = n.GetToken().Value
		return r, ""
	case *ast.SequenceNode:
		r.items = []raw{}
		for i, v := range n.Values {
			item, wrong := rawOf(v)
			if wrong != "" {
				return r, fmt.Sprintf("item %d %s", i+1, wrong)
			}
			r.items = append(r.items, item)
		}
		return r, ""
	}
	pairs, ok := pairsOf(n)
	if !ok {
		return r, "is more than a plain value; write it out, without anchors, aliases and tags"
	}
	r.fields = map[string]raw{}
	for _, pair := range pairs {
		v, wrong := rawOf(pair.Value)
		if wrong != "" {
			return r, keyOf(pair) + " " + wrong
		}
		r.fields[keyOf(pair)] = v
	}
	return r, ""
}
