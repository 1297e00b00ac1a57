package script

import "strings"

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
