package script

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// shapeOf returns twelve hex digits that are the same for texts with surface differences only: comments, white space,
// semicolons, quotes, the case of command names and of SET's options, identifier names, redis.call or redis.pcall or
// server.call or a local alias, one pair of parentheses around a condition. shapeOf returns false if the text is too
// long, or cannot be cut into Lua tokens.
//
// A shape names a script in tables across the formatting of library versions. A shape never decides the meaning of a
// text.
func shapeOf(text string) (string, bool) {
	if len(text) > maxRecognised {
		return "", false
	}
	tokens, err := tokenize(text)
	if err != nil {
		return "", false
	}
	sum := sha256.Sum256([]byte(strings.Join(normalise(tokens), " ")))
	return hex.EncodeToString(sum[:6]), true
}

// normalise returns the tokens of a shape, as text.
func normalise(tokens []token) []string {
	tokens = withoutConditionParens(tokens)
	n := normaliser{tokens: tokens, names: map[string]string{}, aliases: map[string]bool{}}
	for n.at < len(tokens)-1 { // the last is tokEOF
		n.step()
	}
	return n.out
}

type normaliser struct {
	tokens  []token
	at      int
	out     []string
	names   map[string]string
	aliases map[string]bool // local names for redis.call
}

func (n *normaliser) step() {
	t := n.tokens[n.at]
	switch {
	case t.is(";"):
		n.at++
	case n.isAliasDeclaration():
		n.aliases[n.tokens[n.at+1].text] = true
		n.at += 6
	case n.isCall(n.at):
		n.at += 3
		n.call()
	case t.kind == tokName && n.aliases[t.text]:
		n.at++
		n.call()
	default:
		n.out = append(n.out, n.render(t))
		n.at++
	}
}

// call writes CALL and the command's name.
func (n *normaliser) call() {
	n.out = append(n.out, "CALL")
	if n.tokens[n.at].is("(") && n.tokens[n.at+1].kind == tokString {
		n.out = append(n.out, "(", quoted(lower(n.tokens[n.at+1].text)))
		n.at += 2
	}
}

// isCall reports whether redis.call, redis.pcall, or the same of server, stands at i.
func (n *normaliser) isCall(i int) bool {
	if i+2 >= len(n.tokens) || !n.tokens[i+1].is(".") {
		return false
	}
	library, function := n.tokens[i], n.tokens[i+2]
	return library.kind == tokName && function.kind == tokName &&
		(library.text == "redis" || library.text == "server") &&
		(function.text == "call" || function.text == "pcall")
}

// isAliasDeclaration reports whether local name = redis.call stands here.
func (n *normaliser) isAliasDeclaration() bool {
	return n.at+5 < len(n.tokens) && n.tokens[n.at].is("local") && n.tokens[n.at+1].kind == tokName &&
		n.tokens[n.at+2].is("=") && n.isCall(n.at+3) && !n.tokens[n.at+6].is("(")
}

func (n *normaliser) render(t token) string {
	switch t.kind {
	case tokString:
		if setOptions[strings.ToUpper(t.text)] {
			return quoted(strings.ToUpper(t.text))
		}
		return quoted(t.text)
	case tokName:
		if keptNames[t.text] {
			return t.text
		}
		if n.names[t.text] == "" {
			n.names[t.text] = "v" + strconv.Itoa(len(n.names)+1)
		}
		return n.names[t.text]
	}
	return t.text
}

// keptNames are the names that a shape does not replace. The list has no deeper reason: the known shapes were computed
// with it.
var keptNames = map[string]bool{
	"KEYS": true, "ARGV": true, "redis": true, "status_reply": true, "error_reply": true, "ipairs": true, "pairs": true,
	"tonumber": true, "tostring": true, "unpack": true, "string": true, "sub": true, "table": true, "insert": true,
}

var setOptions = map[string]bool{"NX": true, "XX": true, "PX": true, "EX": true, "PXAT": true, "EXAT": true, "KEEPTTL": true}

func quoted(text string) string { return "'" + text + "'" }

// withoutConditionParens drops the parentheses around a whole condition: if ( … ) then.
func withoutConditionParens(tokens []token) []token {
	drop := make([]bool, len(tokens))
	var open []int // unclosed parentheses
	for i, t := range tokens {
		switch {
		case t.is("("):
			open = append(open, i)
		case t.is(")") && len(open) > 0:
			start := open[len(open)-1]
			open = open[:len(open)-1]
			if start > 0 && (tokens[start-1].is("if") || tokens[start-1].is("elseif")) && tokens[i+1].is("then") {
				drop[start], drop[i] = true, true
			}
		}
	}
	out := make([]token, 0, len(tokens))
	for i, t := range tokens {
		if !drop[i] {
			out = append(out, t)
		}
	}
	return out
}
