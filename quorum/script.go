package quorum

import (
	"regexp"
	"strconv"
	"strings"
)

// A Script is a client's Lua text, ready to be run by vote.
type Script struct {
	sha     string
	text    string
	wrapped *lua
	noWrite bool // its first line declares the flag no-writes
}

// NewScript prepares a text, which must compile by itself (Engine.Compile): a wrapper must not be put around one that does not.
func NewScript(text string) *Script {
	s := &Script{sha: shaOf(text), text: text}
	if body := withoutShebang(text); body != text {
		s.noWrite = strings.Contains(text[:len(text)-len(body)], "no-writes")
		text = body
	}
	s.wrapped = wrap(text)
	return s
}

// withoutShebang returns the text with its first line emptied, if that says what is to run it.
func withoutShebang(text string) string {
	if !strings.HasPrefix(text, "#!") {
		return text
	}
	if at := strings.IndexByte(text, '\n'); at >= 0 {
		return text[at:]
	}
	return ""
}

// luaLines ends lines as Lua counts them with one LF each: a CR, an LF, and one of each in whatever order end a line.
var luaLines = strings.NewReplacer("\r\n", "\n", "\n\r", "\n", "\r", "\n")

// linesIn returns how many lines Lua counts in a text.
func linesIn(text string) int { return 1 + strings.Count(luaLines.Replace(text), "\n") }

// raised returns an error that was raised on a line of the script, in Redis's words.
func (s *Script) raised(text, line string) string {
	if line == "0" {
		line = s.tailCallLine()
	}
	return text + " script: " + s.sha + ", on @user_script:" + line + "."
}

var tailCall = regexp.MustCompile(`\breturn\s+[\w.]+\s*\(`)

// tailCallLine guesses the line of an error that does not tell it. The error was raised in a call whose result is returned as it
// is: by then Lua has forgotten who called.
func (s *Script) tailCallLine() string {
	at := tailCall.FindStringIndex(s.text)
	if at == nil {
		return "1"
	}
	return strconv.Itoa(linesIn(s.text[:at[1]]))
}
