package script

import (
	"errors"
	"strconv"
	"strings"
)

// tokenKind is the kind of a Lua token.
type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokName
	tokKeyword
	tokNumber
	tokString // text is the string's content, escapes resolved
	tokSymbol
)

type token struct {
	kind tokenKind
	text string
	line int
}

// is reports whether t is this keyword or symbol.
func (t token) is(text string) bool {
	return (t.kind == tokKeyword || t.kind == tokSymbol) && t.text == text
}

var keywords = map[string]bool{
	"and": true, "break": true, "do": true, "else": true, "elseif": true, "end": true, "false": true,
	"for": true, "function": true, "if": true, "in": true, "local": true, "nil": true, "not": true,
	"or": true, "repeat": true, "return": true, "then": true, "true": true, "until": true, "while": true,
}

// Longest first, so that ".." is not read as two dots.
var symbols = []string{"...", "..", "==", "~=", "<=", ">="}

const singleSymbols = "+-*/%^#<>=(){}[];:,."

// errNotUnderstood is the one error of the lexer, the parser and a run: the text is not Lua, or beyond the subset, or
// has an effect like no operation's.
var errNotUnderstood = errors.New("not in the subset of Lua that is understood")

// A lexer cuts a text into tokens, as Lua 5.1 does.
type lexer struct {
	text string
	at   int
	line int
}

// tokenize returns the tokens of a text, with tokEOF at the end.
func tokenize(text string) ([]token, error) {
	l := lexer{text: text, line: 1}
	tokens := make([]token, 0, 8+len(text)/4)
	for {
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
		if t.kind == tokEOF {
			return tokens, nil
		}
	}
}

func (l *lexer) next() (token, error) {
	if err := l.skipBlank(); err != nil {
		return token{}, err
	}
	t := token{line: l.line}
	if l.at == len(l.text) {
		return t, nil
	}
	var err error
	switch c := l.text[l.at]; {
	case isLetter(c):
		t.kind, t.text = tokName, l.take(func(c byte) bool { return isLetter(c) || isDigit(c) })
		if keywords[t.text] {
			t.kind = tokKeyword
		}
	case isDigit(c), c == '.' && l.at+1 < len(l.text) && isDigit(l.text[l.at+1]):
		t.kind, t.text = tokNumber, l.takeNumber()
		_, err = parseNumber(t.text)
	case c == '"', c == '\'':
		t.kind = tokString
		t.text, err = l.takeString(c)
	case c == '[' && l.longBracket() >= 0:
		t.kind = tokString
		t.text, err = l.takeLong(l.longBracket())
	default:
		t.kind = tokSymbol
		t.text, err = l.takeSymbol()
	}
	return t, err
}

// skipBlank moves to the next token, over white space and comments.
func (l *lexer) skipBlank() error {
	for l.at < len(l.text) {
		switch c := l.text[l.at]; {
		case c == '\n' || c == '\r':
			l.line++
			l.at += lineEnd(l.text[l.at:])
		case c == ' ', c == '\t', c == '\v', c == '\f':
			l.at++
		case strings.HasPrefix(l.text[l.at:], "--"):
			l.at += 2
			if level := l.longBracket(); level >= 0 {
				if _, err := l.takeLong(level); err != nil {
					return err
				}
				continue
			}
			l.take(func(c byte) bool { return c != '\n' && c != '\r' })
		default:
			return nil
		}
	}
	return nil
}

func (l *lexer) take(in func(byte) bool) string {
	start := l.at
	for l.at < len(l.text) && in(l.text[l.at]) {
		l.at++
	}
	return l.text[start:l.at]
}

// takeNumber takes the same bytes as Lua: letters too, so that 3x is one malformed number and not two tokens.
func (l *lexer) takeNumber() string {
	start := l.at
	for l.at < len(l.text) {
		c := l.text[l.at]
		sign := (c == '+' || c == '-') && strings.ContainsRune("eE", rune(l.text[max(l.at-1, start)]))
		if !isLetter(c) && !isDigit(c) && c != '.' && !sign {
			break
		}
		l.at++
	}
	return l.text[start:l.at]
}

func (l *lexer) takeSymbol() (string, error) {
	for _, s := range symbols {
		if strings.HasPrefix(l.text[l.at:], s) {
			l.at += len(s)
			return s, nil
		}
	}
	if strings.IndexByte(singleSymbols, l.text[l.at]) < 0 {
		return "", errNotUnderstood
	}
	l.at++
	return l.text[l.at-1 : l.at], nil
}

// takeString takes a string in quotes and resolves its escapes.
func (l *lexer) takeString(quote byte) (string, error) {
	var b strings.Builder
	for l.at++; l.at < len(l.text); l.at++ {
		switch c := l.text[l.at]; c {
		case quote:
			l.at++
			return b.String(), nil
		case '\n', '\r':
			return "", errNotUnderstood
		case '\\':
			l.at++
			e, err := l.escape()
			if err != nil {
				return "", err
			}
			b.WriteByte(e)
		default:
			b.WriteByte(c)
		}
	}
	return "", errNotUnderstood
}

// escape reads the escape after a backslash and leaves the lexer at its last byte.
func (l *lexer) escape() (byte, error) {
	if l.at == len(l.text) {
		return 0, errNotUnderstood
	}
	c := l.text[l.at]
	if i := strings.IndexByte("abfnrtv", c); i >= 0 {
		return "\a\b\f\n\r\t\v"[i], nil
	}
	if c == '\n' || c == '\r' {
		return 0, errNotUnderstood // Lua allows such an escape; nobody writes it
	}
	if !isDigit(c) {
		return c, nil
	}
	digits := l.text[l.at:min(l.at+3, len(l.text))]
	for i := range len(digits) {
		if !isDigit(digits[i]) {
			digits = digits[:i]
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 8)
	if err != nil {
		return 0, errNotUnderstood
	}
	l.at += len(digits) - 1
	return byte(n), nil
}

// longBracket returns the number of = in an opening [==[ at the lexer's place, and -1 if there is none.
func (l *lexer) longBracket() int {
	rest := l.text[l.at:]
	if !strings.HasPrefix(rest, "[") {
		return -1
	}
	level := 0
	for 1+level < len(rest) && rest[1+level] == '=' {
		level++
	}
	if 1+level < len(rest) && rest[1+level] == '[' {
		return level
	}
	return -1
}

// takeLong takes a long string or a long comment.
func (l *lexer) takeLong(level int) (string, error) {
	body := l.text[l.at+level+2:]
	end := strings.Index(body, "]"+strings.Repeat("=", level)+"]")
	if end < 0 {
		return "", errNotUnderstood
	}
	body = body[:end]
	l.at += end + 2*(level+2)
	body = unixLines(body)
	l.line += strings.Count(body, "\n")
	return strings.TrimPrefix(body, "\n"), nil
}

// lineEnd returns the length of the line end with which s begins: a CR, an LF, or one of each in either order.
func lineEnd(s string) int {
	if len(s) > 1 && s[0] != s[1] && (s[1] == '\n' || s[1] == '\r') {
		return 2
	}
	return 1
}

// unixLines ends every line with a newline, as Lua does in a long string.
func unixLines(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	var b strings.Builder
	for {
		at := strings.IndexAny(s, "\r\n")
		if at < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:at])
		b.WriteByte('\n')
		s = s[at+lineEnd(s[at:]):]
	}
}

func isLetter(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// lower changes ASCII letters only, as Redis does in the names of commands.
func lower(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// parseNumber reads a number as Lua's tonumber does, except for numbers that only strtod knows (inf, nan, hex
// fractions).
func parseNumber(text string) (float64, error) {
	text = strings.Trim(text, " \t\n\v\f\r")
	if hex, ok := cutHexPrefix(text); ok {
		n, err := strconv.ParseUint(hex, 16, 32)
		if err != nil {
			return 0, errNotUnderstood
		}
		return float64(n), nil
	}
	for i := range len(text) {
		if c := text[i]; !isDigit(c) && strings.IndexByte("+-.eE", c) < 0 {
			return 0, errNotUnderstood
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, errNotUnderstood
	}
	return n, nil
}

func cutHexPrefix(text string) (string, bool) {
	if len(text) > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') && text[2] != '+' && text[2] != '-' {
		return text[2:], true
	}
	return "", false
}

// FindString returns the first wanted string literal in a text, with its escapes resolved; "" if there is none.
// FindString skips the command names in redis.call, and stops where the text is no Lua any more.
func FindString(text string, wanted func(string) bool) string {
	l := lexer{text: text, line: 1}
	if strings.HasPrefix(text, "#!") {
		l.at = len(text)
		if end := strings.IndexByte(text, '\n'); end >= 0 {
			l.at = end
		}
	}
	var before [2]token
	for {
		t, err := l.next()
		if err != nil && t.kind != tokNumber || t.kind == tokEOF {
			return ""
		}
		if t.kind == tokString && !opensCall(before) && wanted(t.text) {
			return strings.Clone(t.text)
		}
		before[0], before[1] = before[1], t
	}
}

// opensCall reports whether these tokens are the end of redis.call( or redis.pcall(.
func opensCall(tokens [2]token) bool {
	return tokens[0].kind == tokName && (tokens[0].text == "call" || tokens[0].text == "pcall") && tokens[1].is("(")
}
