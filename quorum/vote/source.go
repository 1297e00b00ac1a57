package vote

import (
	"regexp"
	"strconv"
	"strings"
)

// A Source is a client's Lua text.
type Source struct {
	SHA  string // the name that Redis gives it
	Text string
}

// luaLines ends lines as Lua counts them with one LF each: a CR, an LF, and one of each in whatever order end a line.
var luaLines = strings.NewReplacer("\r\n", "\n", "\n\r", "\n", "\r", "\n")

// Lines returns how many lines Lua counts in a text.
func Lines(text string) int { return 1 + strings.Count(luaLines.Replace(text), "\n") }

// raised returns an error that was raised on a line of the script, in Redis's words.
func (s *Source) raised(text, line string) string {
	if line == "0" {
		line = s.tailCallLine()
	}
	return text + " script: " + s.SHA + ", on @user_script:" + line + "."
}

var tailCall = regexp.MustCompile(`\breturn\s+[\w.]+\s*\(`)

// tailCallLine guesses the line of an error that does not tell it. The error was raised in a call whose result is returned as it
// is: by then Lua has forgotten who called.
func (s *Source) tailCallLine() string {
	at := tailCall.FindStringIndex(s.Text)
	if at == nil {
		return "1"
	}
	return strconv.Itoa(Lines(s.Text[:at[1]]))
}
