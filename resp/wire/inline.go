package wire

import (
	"encoding/hex"
	"strings"
)

// splitArgs appends to args the words of an inline command, as Redis's sdssplitargs does: "…" knows \n \r \t \b \a
// \xHH, and '…' knows \'. splitArgs returns false if a quote is not closed, or a closing quote has text behind.
func splitArgs(args []string, line []byte) ([]string, bool) {
	i := 0
	for {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) || line[i] == 0 {
			return args, true
		}
		word, n, ok := splitWord(line[i:])
		if !ok {
			return args, false
		}
		args = append(args, word)
		i += n
	}
}

// splitWord reads a word, and returns the word and the number of bytes read.
func splitWord(line []byte) (string, int, bool) {
	var word []byte
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0: // \v and \f only separate where no word has begun
			return string(word), i, true
		case c == '"' || c == '\'':
			var n int
			if c == '"' {
				word, n = appendDoubleQuoted(word, line[i+1:])
			} else {
				word, n = appendSingleQuoted(word, line[i+1:])
			}
			i += 1 + n
			if n == 0 || i < len(line) && !isSpace(line[i]) {
				return "", 0, false
			}
			return string(word), i, true
		default:
			word = append(word, c)
			i++
		}
	}
	return string(word), len(line), true
}

// appendDoubleQuoted reads up to the closing quote, and returns the number of bytes read, 0 without a closing quote.
func appendDoubleQuoted(word, line []byte) ([]byte, int) {
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			return word, i + 1
		case c == 0:
			return word, 0
		case c == '\\' && i+3 < len(line) && line[i+1] == 'x' && isHex(line[i+2]) && isHex(line[i+3]):
			word, _ = hex.AppendDecode(word, line[i+2:i+4])
			i += 3
		case c == '\\' && i+1 < len(line):
			i++
			word = append(word, unescape(line[i]))
		default:
			word = append(word, c)
		}
	}
	return word, 0
}

func appendSingleQuoted(word, line []byte) ([]byte, int) {
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			return word, i + 1
		case c == 0:
			return word, 0
		case c == '\\' && i+1 < len(line) && line[i+1] == '\'':
			i++
			word = append(word, '\'')
		default:
			word = append(word, c)
		}
	}
	return word, 0
}

func unescape(c byte) byte {
	if i := strings.IndexByte("nrtba", c); i >= 0 {
		return "\n\r\t\b\a"[i]
	}
	return c
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
